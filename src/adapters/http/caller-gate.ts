import type { TokenGrant } from '../../ports/token-api.js'
import { type AddressLimit, countedAddress } from './address-limit.js'
import type { Authority, CallerHeaders, HttpRefusal } from './authority.js'
import { authorize, NO_TOKEN, type TokenCheck } from './authorize.js'
import { HttpError } from './http-error.js'

/** Dependencies of a {@link CallerGate}. */
export interface CallerGateDeps extends TokenCheck {
  readonly authority: Authority
  readonly addressLimit: AddressLimit
  /** Called with every refused call, for the audit log. */
  onRefusal(refusal: HttpRefusal): void
}

/** Where a call came from and to. */
export interface CallerPlace {
  readonly remoteAddress: string
  readonly localAddress: string
}

/** Admits the calls of a listener whose every call needs a token, by the rules of the HTTP listener. */
export class CallerGate {
  readonly #deps: CallerGateDeps

  constructor(deps: CallerGateDeps) {
    this.#deps = deps
  }

  /**
   * The rights of a caller.
   * @throws HttpError 401, 403, and 429 when its address sends too many without a valid token
   */
  async admit(headers: CallerHeaders, { remoteAddress, localAddress }: CallerPlace): Promise<TokenGrant> {
    const address = countedAddress(remoteAddress)
    const { refusal } = this.#deps.authority.admit(headers, { url: '/', localAddress })
    if (refusal !== null) throw this.#refusal(refusal, address)
    const { grant, reason } = await authorize(this.#deps, headers.authorizations)
    if (grant !== null) return grant
    throw this.#refusal({ status: 401, rule: 'http-token', reason: reason ?? NO_TOKEN }, address)
  }

  #refusal(refusal: HttpRefusal, address: string): HttpError {
    const { status, rule, reason } = refusal
    const isWrong = rule === 'http-token' && reason !== NO_TOKEN
    const limited = this.#deps.addressLimit.refusal(address, isWrong)
    if (limited !== null) return limited
    this.#deps.onRefusal(refusal)
    const headers = isWrong ? { 'www-authenticate': 'Bearer error="invalid_token"' } : {}
    const code = status === 401 ? 'UNAUTHORIZED' : 'FORBIDDEN'
    return new HttpError(status, { code, message: `refused: ${reason}`, headers })
  }
}
