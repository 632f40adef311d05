import { createHash } from 'node:crypto'
import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { Emitter } from '../../../kit/events.js'
import type { Tier } from '../../../domain/routing/tier.js'
import type { KnownClients } from '../../../ports/gateway.js'
import type { NodeStore } from '../../../ports/storage.js'
import { type Denial, MAX_ACCESS_TOKEN_MS, OAuthDenials } from './oauth-denials.js'

/** Most clients. */
export const MAX_OAUTH_CLIENTS = 128
/**
 * Most pending sign-ins of each kind. Anybody can begin one, so beyond it the oldest of the client with the most is
 * dropped.
 */
export const MAX_OAUTH_WAITING = 256
/**
 * Most codes, grants and refresh tokens, of each kind. Beyond it used refresh tokens go, then issuing fails until some
 * expire.
 */
export const MAX_OAUTH_RECORDS = 2048
/** Used refresh tokens kept for one grant. The reuse of an older one is refused, but does not end the grant. */
export const MAX_USED_REFRESH_TOKENS = 32

/** Names of the documents of the home. */
const CLIENTS = 'oauth-clients'
const STATE = 'oauth-state'
/** Kinds that anybody can create; the others need an authenticated client or the operator. */
const WAITING: ReadonlySet<string> = new Set(['Session', 'Interaction', 'DeviceCode'])
/** Replaces the id in a record, since the id is the secret. */
const HIDDEN = '\uE000'

/** A stored client. */
export interface StoredClient {
  readonly id: string
  readonly name: string
  readonly isPublic: boolean
  /** SHA-256 of its secret, as base64url; with 256 random bits it needs no slower hash. Null: public. */
  readonly secret: string | null
  readonly tier: Tier
  readonly scopes: readonly string[]
  readonly redirectUris: readonly string[]
  readonly createdAt: number
}

/** A private key (JWK), current or retired. */
export interface StoredKey {
  readonly jwk: Readonly<Record<string, string>>
  readonly createdAt: number
  /** Null: it is the signing key. */
  readonly retiredAt: number | null
}

/** A record of oidc-provider; only the hash of its id is stored. */
export interface OAuthRecord {
  readonly key: string
  readonly model: string
  /** JSON with the id replaced. */
  readonly body: string
  /** Unix milliseconds. */
  readonly expiresAt: number
  readonly clientId: string | null
  readonly grantId: string | null
  /** Hash of the code for the operator. */
  readonly userCode: string | null
  /** Unix seconds. */
  readonly consumed: number | null
  readonly decision: 'allowed' | 'denied' | null
}

interface ClientsDocument {
  readonly clients: readonly StoredClient[]
  readonly keys: readonly StoredKey[]
  readonly cookieKey: string
}

interface StateDocument {
  readonly records: readonly OAuthRecord[]
  readonly denials: readonly Denial[]
}

/** The store of the OAuth server in the home of its node. */
export class OAuthStore {
  readonly clients = new Map<string, StoredClient>()
  readonly denials: OAuthDenials
  /** Revoked clients whose removal is not written yet: a restart would restore them. */
  readonly unwritten = new Map<string, StoredClient>()
  keys: readonly StoredKey[] = []
  cookieKey = ''
  readonly #store: Pick<NodeStore, 'read' | 'write'>
  readonly #clock: Pick<Clock, 'now'>
  readonly #records = new Map<string, OAuthRecord>()
  /** Emits the id of each revoked client, once its tokens are refused. */
  readonly #gone = new Emitter<string>(() => {})
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null

  constructor(store: Pick<NodeStore, 'read' | 'write'>, clock: Pick<Clock, 'now'>) {
    this.#store = store
    this.#clock = clock
    this.denials = new OAuthDenials(clock)
  }

  /** Loads the stored documents. @throws NodeError STORE_DAMAGED */
  async open(): Promise<void> {
    const kept = await this.#store.read<ClientsDocument>(CLIENTS)
    for (const one of kept?.clients ?? []) this.clients.set(one.id, one)
    this.keys = kept?.keys ?? []
    this.cookieKey = kept?.cookieKey ?? ''
    const state = await this.#store.read<StateDocument>(STATE)
    for (const one of state?.records ?? []) this.#records.set(one.key, one)
    this.denials.load(state?.denials ?? [])
  }

  /** Writes clients and keys. @throws NodeError DISK_FULL, NO_PERMISSION */
  async saveClients(): Promise<void> {
    await this.#store.write(CLIENTS, {
      clients: [...this.clients.values()],
      keys: this.keys,
      cookieKey: this.cookieKey
    })
    this.unwritten.clear()
  }

  /**
   * Resolves when all earlier changes are on disk; concurrent calls share a write.
   * @throws NodeError DISK_FULL, NO_PERMISSION
   */
  save(): Promise<void> {
    if (this.#next !== null) return this.#next
    const next = this.#writing
      .catch(() => {})
      .then(async () => {
        this.#next = null
        this.#tidy()
        const state: StateDocument = { records: [...this.#records.values()], denials: this.denials.entries() }
        await this.#store.write(STATE, state)
      })
    this.#next = next
    this.#writing = next
    return next
  }

  /** Null when it is missing or has expired. */
  find(model: string, id: string): { readonly record: OAuthRecord; readonly payload: Record<string, unknown> } | null {
    const record = this.#records.get(keyOf(model, id))
    if (record === undefined || record.expiresAt <= this.#clock.now()) return null
    const payload = JSON.parse(record.body.replaceAll(HIDDEN, id)) as Record<string, unknown>
    return { record, payload: record.consumed === null ? payload : { ...payload, consumed: record.consumed } }
  }

  /** The session with this uid; null: none. */
  sessionOf(uid: string): Record<string, unknown> | null {
    for (const { model, body } of this.#records.values()) {
      const payload = model === 'Session' ? (JSON.parse(body) as Record<string, unknown>) : null
      if (payload?.['uid'] === uid) return payload
    }
    return null
  }

  /** The pending sign-in with a displayed code; null: none. */
  byCode(code: string): OAuthRecord | null {
    const userCode = hashText(normalCode(code))
    return this.waiting().find((one) => one.userCode === userCode) ?? null
  }

  /** Sign-ins without a decision of the operator. */
  waiting(): readonly OAuthRecord[] {
    const now = this.#clock.now()
    return [...this.#records.values()].filter(
      (one) => one.userCode !== null && one.decision === null && one.expiresAt > now
    )
  }

  /** Stores or updates a record. @throws NodeError OVERLOADED when there are too many of its kind */
  put(
    model: string,
    id: string,
    { payload, ttlMs }: { readonly payload: Record<string, unknown>; readonly ttlMs: number }
  ): void {
    const key = keyOf(model, id)
    const before = this.#records.get(key)
    if (before === undefined) this.#evict(model)
    const { userCode, ...rest } = payload
    const code = typeof userCode === 'string' ? hashText(normalCode(userCode)) : (before?.userCode ?? null)
    const params = rest['params'] as Record<string, unknown> | undefined
    this.#records.set(key, {
      key,
      model,
      body: JSON.stringify(rest).replaceAll(HIDDEN, '').replaceAll(id, HIDDEN),
      expiresAt: this.#clock.now() + ttlMs,
      clientId: textOf(rest['clientId']) ?? textOf(params?.['client_id']),
      grantId: model === 'Grant' ? id : textOf(rest['grantId']),
      userCode: code,
      consumed: before?.consumed ?? null,
      decision: before?.decision ?? null
    })
  }

  /** Replaces the record of the same key. */
  replace(record: OAuthRecord): void {
    this.#records.set(record.key, record)
  }

  /** Removes one record. */
  remove(model: string, id: string): void {
    this.#records.delete(keyOf(model, id))
  }

  /** Marks a record as consumed; false when it is missing or was consumed before. */
  consume(model: string, id: string): boolean {
    const record = this.#records.get(keyOf(model, id))
    if (record === undefined || record.consumed !== null) return false
    this.#records.set(record.key, { ...record, consumed: Math.floor(this.#clock.now() / 1000) })
    if (model === 'RefreshToken') this.#forgetUsed(record.grantId)
    return true
  }

  /** Removes all matching records. */
  removeWhere(isGone: (record: OAuthRecord) => boolean): void {
    for (const record of [...this.#records.values()]) if (isGone(record)) this.#records.delete(record.key)
  }

  /** The existing client ids, for other parts of the node. */
  get known(): KnownClients {
    return { has: (id) => this.clients.has(id), onGone: (listener) => this.#gone.on(listener) }
  }

  /** Removes a client with its records. */
  endClient(clientId: string): void {
    this.clients.delete(clientId)
    this.removeWhere((one) => one.clientId === clientId)
    this.#gone.emit(clientId)
  }

  /** Removes a grant and denies its access tokens, which are not stored. */
  endGrant(grantId: string): void {
    const clientId = this.#records.get(keyOf('Grant', grantId))?.clientId ?? null
    this.remove('Grant', grantId)
    // An unknown grant has no valid tokens, or was ended before.
    if (clientId !== null) this.denials.grant({ clientId, grantId })
  }

  #evict(model: string): void {
    const max = WAITING.has(model) ? MAX_OAUTH_WAITING : MAX_OAUTH_RECORDS
    const all = (): OAuthRecord[] => [...this.#records.values()].filter((one) => one.model === model)
    if (all().length < max) return
    this.#tidy()
    const left = all()
    if (left.length < max) return
    const gone = WAITING.has(model)
      ? oldestOfMost(left, ({ clientId }) => clientId)
      : oldestOfMost(
          left.filter(({ consumed }) => model === 'RefreshToken' && consumed !== null),
          ({ grantId }) => grantId
        )
    if (gone === undefined) throw new NodeError('OVERLOADED', 'there are too many tokens at once', { retryable: true })
    this.#records.delete(gone.key)
  }

  #forgetUsed(grantId: string | null): void {
    const used = [...this.#records.values()].filter(
      (one) => one.model === 'RefreshToken' && one.grantId === grantId && one.consumed !== null
    )
    for (const one of used.slice(0, -MAX_USED_REFRESH_TOKENS)) this.#records.delete(one.key)
  }

  #tidy(): void {
    const now = this.#clock.now()
    // The last tokens of a grant outlive it, and its record is needed to deny them.
    this.removeWhere(({ expiresAt, model }) => expiresAt + (model === 'Grant' ? MAX_ACCESS_TOKEN_MS : 0) <= now)
    this.denials.tidy()
  }
}

/** The oldest record of the holder with the most, so that a flood of one holder does not evict records of others. */
function oldestOfMost(
  records: readonly OAuthRecord[],
  holderOf: (record: OAuthRecord) => string | null
): OAuthRecord | undefined {
  const shares = new Map<string | null, OAuthRecord[]>()
  for (const one of records) shares.set(holderOf(one), [...(shares.get(holderOf(one)) ?? []), one])
  return [...shares.values()].toSorted((a, b) => b.length - a.length)[0]?.[0]
}

/** SHA-256 as base64url. */
export function hashText(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function keyOf(model: string, id: string): string {
  return `${model}:${hashText(`${model} ${id}`)}`
}

/** Normalizes a typed code: ignores case, blanks and dashes. */
function normalCode(code: string): string {
  return code.toUpperCase().replace(/[^A-Z0-9]/g, '')
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
