import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../kit/clock.js'
import { canonicalJson, isRecord } from '../../../kit/json.js'

/** How long a client may take to return a state, in milliseconds. */
export const STATE_TTL_MS = 600_000

/** Dependencies of {@link RequestStates}. */
export interface RequestStateDeps {
  /** 32 bytes that nobody else has. */
  readonly key: Uint8Array
  readonly clock: Pick<Clock, 'monotonic'>
  /** Owner of the states; other callers are refused. */
  readonly caller: string
}

/**
 * Seals a handler's state between two rounds; its client carries it. The client can read it, but cannot change it. It
 * is refused for another caller, for another request, and after {@link STATE_TTL_MS}. Within that time it can be used
 * again.
 */
export class RequestStates {
  readonly #deps: RequestStateDeps

  constructor(deps: RequestStateDeps) {
    this.#deps = deps
  }

  /** A state as text, valid for one request: `about` holds all of the request that counts. */
  seal(about: unknown, value: unknown): string {
    const until = this.#deps.clock.monotonic() + STATE_TTL_MS
    const body = Buffer.from(JSON.stringify({ value, until })).toString('base64url')
    return `${body}.${this.#tag(about, body)}`
  }

  /** The sealed value; null when the text is no state of this request, or an old one. */
  open(about: unknown, text: string): { readonly value: unknown } | null {
    const [body = '', tag = '', ...rest] = text.split('.')
    const [given, right] = [Buffer.from(tag), Buffer.from(this.#tag(about, body))]
    if (rest.length > 0 || given.length !== right.length || !timingSafeEqual(given, right)) return null
    const { value, until } = sealed(body)
    return until >= this.#deps.clock.monotonic() ? { value } : null
  }

  #tag(about: unknown, body: string): string {
    const { key, caller } = this.#deps
    return createHmac('sha256', key)
      .update(canonicalJson([caller, about, body]))
      .digest('base64url')
  }
}

/** Only text that this process has sealed itself is read. */
function sealed(body: string): { readonly value: unknown; readonly until: number } {
  const read = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as unknown
  const { value, until } = isRecord(read) ? read : {}
  return { value, until: typeof until === 'number' ? until : Number.NEGATIVE_INFINITY }
}
