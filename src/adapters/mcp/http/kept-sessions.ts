import { createHash } from 'node:crypto'
import type { Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import type { RpcMessage } from '../../../kit/mcp/rpc-message.js'
import { SessionState } from '../../../kit/mcp/session-state.js'

/** Sessions that are kept, the last used ones; as many as can be open. */
const MAX_KEPT = 256
/** Characters of the JSON of one; a larger one ends with the node. */
const MAX_KEPT_CHARS = 16_384
/** Milliseconds after its last use in which a session can go on. */
export const KEPT_MS = 86_400_000

/** Where the sessions of a node are between two of its processes. */
export interface SessionStore {
  /** The stored value; null for none. */
  read(): Promise<unknown>
  write(value: unknown): Promise<void>
}

/** Dependencies of {@link KeptSessions}. */
export interface KeptSessionsDeps {
  readonly store: SessionStore
  readonly clock: Pick<Clock, 'now'>
  /** A fault of the store: the sessions end with this process then. */
  note(reason: unknown): void
}

interface KeptSession {
  readonly owner: string
  readonly state: SessionState
  /** Unix milliseconds. */
  usedAt: number
}

/**
 * The handshakes and subscriptions of open sessions, so that these continue after a restart of the node: clients do not
 * begin another session by themselves. Calls and answers are not kept, and of a caller only a digest.
 */
export class KeptSessions {
  readonly #deps: KeptSessionsDeps
  readonly #sessions: Map<string, KeptSession>
  #writing: Promise<void> | null = null
  #isChanged = false

  private constructor(deps: KeptSessionsDeps, sessions: Map<string, KeptSession>) {
    this.#deps = deps
    this.#sessions = sessions
  }

  /** Reads the sessions of the last process. A store that cannot be read has none. */
  static async open(deps: KeptSessionsDeps): Promise<KeptSessions> {
    const value = await deps.store.read().catch((error: unknown) => {
      deps.note(error)
      return null
    })
    return new KeptSessions(deps, sessionsIn(value))
  }

  /** A session began, or took a message of its client. */
  took(id: string, caller: unknown, message: RpcMessage): void {
    const { method } = message
    const session = this.#sessions.get(id) ?? this.#begun(id, caller)
    session.usedAt = this.#deps.clock.now()
    if (!CHANGES.has(method)) return
    if ('id' in message) session.state.answered(message)
    else session.state.notified(message)
    this.#change()
  }

  /** The state of a session of this caller that is not open; null for none. */
  find(id: string, caller: unknown): SessionState | null {
    const session = this.#sessions.get(id)
    const isAlive = session !== undefined && this.#deps.clock.now() - session.usedAt < KEPT_MS
    return isAlive && session.owner === digest(caller) ? session.state : null
  }

  /** A session ended for good. */
  ended(id: string): void {
    if (this.#sessions.delete(id)) this.#change()
  }

  /** Resolves when all is on disk, also the times of the last use. */
  async close(): Promise<void> {
    if (this.#sessions.size > 0) this.#change()
    await this.#writing
  }

  #begun(id: string, caller: unknown): KeptSession {
    const session = { owner: digest(caller), state: new SessionState(), usedAt: 0 }
    this.#sessions.set(id, session)
    return session
  }

  #change(): void {
    this.#isChanged = true
    this.#writing ??= this.#write().finally(() => (this.#writing = null))
  }

  async #write(): Promise<void> {
    while (this.#isChanged) {
      this.#isChanged = false
      this.#drop()
      await this.#deps.store.write(this.#value()).catch((error: unknown) => this.#deps.note(error))
    }
  }

  /** Old ones, and those used least. */
  #drop(): void {
    const oldest = this.#deps.clock.now() - KEPT_MS
    const all = [...this.#sessions].sort(([, one], [, other]) => other.usedAt - one.usedAt)
    for (const [at, [id, { usedAt }]] of all.entries())
      if (at >= MAX_KEPT || usedAt <= oldest) this.#sessions.delete(id)
  }

  #value(): unknown {
    const sessions = [...this.#sessions].map(([id, { owner, usedAt, state }]) => {
      return { id, owner, usedAt, requests: state.requests() }
    })
    return { sessions: sessions.filter((one) => JSON.stringify(one).length <= MAX_KEPT_CHARS) }
  }
}

/** Methods that change the state of a session. */
const CHANGES: ReadonlySet<unknown> = new Set([
  'initialize',
  'notifications/initialized',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe'
])

function digest(caller: unknown): string {
  return createHash('sha256').update(JSON.stringify(caller)).digest('base64url')
}

function sessionsIn(value: unknown): Map<string, KeptSession> {
  const { sessions } = isRecord(value) ? value : {}
  const found = new Map<string, KeptSession>()
  for (const one of Array.isArray(sessions) ? (sessions as unknown[]).slice(0, MAX_KEPT) : []) {
    const { id, owner, usedAt, requests } = isRecord(one) ? one : {}
    if (typeof id !== 'string' || typeof owner !== 'string' || typeof usedAt !== 'number') continue
    const state = new SessionState()
    for (const request of Array.isArray(requests) ? (requests as unknown[]) : [])
      if (isRecord(request)) state.answered(request)
    // A kill may come before the end of the handshake is on disk, and its client does not repeat it.
    state.notified({ method: 'notifications/initialized' })
    found.set(id, { owner, usedAt, state })
  }
  return found
}
