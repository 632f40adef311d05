import type { Adapter, AdapterPayload } from 'oidc-provider'
import { type DeniableToken } from './oauth-denials.js'
import { hashText, type OAuthStore, type StoredClient } from './oauth-store.js'

/** Grant type of the device flow (RFC 8628). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** Letters of codes that people type: not confusable, and without vowels, so no words arise. */
const CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

/** Represents an access token, which is not stored, at the revocation endpoint. Never leaves the process. */
export interface TokenHandle extends DeniableToken {
  /** End of its acceptance, unix milliseconds. */
  readonly endsAt: number
}

/** Storage of oidc-provider in the home of the node, one adapter per model. */
export class OAuthAdapter implements Adapter {
  readonly #model: string
  readonly #store: OAuthStore
  readonly #handles: ReadonlyMap<string, TokenHandle>

  constructor(
    model: string,
    { store, handles }: { readonly store: OAuthStore; readonly handles: ReadonlyMap<string, TokenHandle> }
  ) {
    this.#model = model
    this.#store = store
    this.#handles = handles
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const isAsked = this.#model === 'Interaction'
    const reported = isAsked ? { ...payload, userCode: consentCode(id) } : payload
    this.#store.put(this.#model, id, { payload: reported, ttlMs: expiresIn * 1000 })
    await this.#store.save()
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    if (this.#model === 'Client') return clientMetadata(this.#store.clients.get(id))
    const handle = this.#handles.get(id)
    if (handle !== undefined) return this.#ofHandle(id, handle)
    return this.#store.find(this.#model, id)?.payload
  }

  /** Not used: the operator approves codes at the command line. */
  findByUserCode(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return Promise.resolve(this.#store.sessionOf(uid) ?? undefined)
  }

  /** Of two concurrent calls one fails. */
  async consume(id: string): Promise<void> {
    if (!this.#store.consume(this.#model, id)) throw new Error('it was used already')
    await this.#store.save()
  }

  async destroy(id: string): Promise<void> {
    const handle = this.#handles.get(id)
    if (handle !== undefined) this.#store.denials.token(handle, handle.endsAt)
    else if (this.#model === 'Grant') this.#store.endGrant(id)
    else this.#store.remove(this.#model, id)
    await this.#store.save()
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    this.#store.removeWhere((one) => one.model === this.#model && one.grantId === grantId)
    await this.#store.save()
  }

  #ofHandle(id: string, token: TokenHandle): AdapterPayload | undefined {
    const { clientId, grantId, endsAt } = token
    const kind = grantId === null ? 'ClientCredentials' : 'AccessToken'
    if (kind !== this.#model || this.#store.denials.has(token)) return undefined
    return { kind, jti: id, clientId, exp: Math.ceil(endsAt / 1000), ...(grantId === null ? {} : { grantId }) }
  }
}

/** The code by which the operator identifies a sign-in in a browser. */
export function consentCode(uid: string): string {
  const bytes = Buffer.from(hashText(`consent ${uid}`), 'base64url')
  const letters = [...bytes.subarray(0, 8)].map((byte) => CODE_LETTERS[byte % CODE_LETTERS.length] ?? '')
  return `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`
}

function clientMetadata(client: StoredClient | undefined): AdapterPayload | undefined {
  if (client === undefined) return undefined
  const { id, name, isPublic, secret, redirectUris } = client
  const hasCode = redirectUris.length > 0
  return {
    client_id: id,
    client_name: name,
    ...(secret === null ? {} : { client_secret: secret }),
    token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_basic',
    redirect_uris: [...redirectUris],
    response_types: hasCode ? ['code'] : [],
    response_modes: ['query'],
    grant_types: [
      ...(isPublic ? [] : ['client_credentials']),
      ...(hasCode ? ['authorization_code'] : []),
      DEVICE_GRANT,
      'refresh_token'
    ],
    // RFC 8252, section 7.3: a loopback redirect URI of a native client may have any port.
    application_type: hasCode && redirectUris.every((uri) => uri.startsWith('http://')) ? 'native' : 'web'
  }
}
