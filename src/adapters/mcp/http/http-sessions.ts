import type { Clock, Timer } from '../../../kit/clock.js'
import type { Unsubscribe } from '../../../kit/events.js'
import type { Principal } from '../../../ports/node-api.js'
import type { RpcMessage } from '../../../kit/mcp/rpc-message.js'
import type { SessionState } from '../../../kit/mcp/session-state.js'
import type { HttpConnection } from './http-connection.js'
import type { KeptSessions } from './kept-sessions.js'

/**
 * Sessions at once, of all callers. A new one replaces the session idle longest of the caller with the most sessions.
 * No caller loses one to a caller with as many.
 */
export const MAX_SESSIONS = 256
/** Milliseconds after which a session without a request or stream ends. */
export const SESSION_IDLE_MS = 1_800_000
/** Milliseconds between two searches for idle sessions. */
const SWEEP_MS = 60_000

/** Prefix of the ids of connections that are no session; no session id has it. */
const SHARED = 'shared '

/** Dependencies of {@link HttpSessions}. */
export interface HttpSessionsDeps {
  readonly clock: Clock
  readonly newId: () => string
  /** Sessions that continue after a restart of the node. Absent: all end with it. */
  readonly kept?: KeptSessions
  connect(principal: Principal): HttpConnection
}

/** The caller that opens a session, or sends without one. */
export interface SessionCaller {
  readonly principal: Principal
  /** Calls back once when its token ends; at once when it has. */
  onTokenEnd(run: () => void): Unsubscribe
}

/** The client has the answers to renewed requests already. */
const ANSWERED = { note: () => true, answer: () => {}, end: () => {} }

interface McpSession {
  readonly connection: HttpConnection
  readonly owner: string
  usedAt: number
  /** Stops waiting for the end of its token. */
  release: Unsubscribe
}

/**
 * The sessions of clients with a handshake, by an id that nobody guesses. A session is its caller's alone, and ends
 * with its token.
 */
export class HttpSessions {
  readonly #deps: HttpSessionsDeps
  readonly #sessions = new Map<string, McpSession>()
  /** Sessions of the last process of the node, whose clients have not been notified of changes. */
  readonly #renewed = new WeakSet<HttpConnection>()
  #sweeper: Timer | null = null

  constructor(deps: HttpSessionsDeps) {
    this.#deps = deps
  }

  /**
   * Opens a session. When there are too many, it replaces an idle one (see {@link MAX_SESSIONS}); null when none may
   * go.
   */
  open(caller: SessionCaller): { readonly id: string; readonly connection: HttpConnection } | null {
    const id = this.#deps.newId()
    const connection = this.#open(id, caller)
    return connection === null ? null : { id, connection }
  }

  /** The one connection of a caller for all messages without a session, until its token ends; null as above. */
  shared(caller: SessionCaller): HttpConnection | null {
    const id = SHARED + JSON.stringify(caller.principal)
    const connection = this.#used(id, caller.principal)
    if (connection !== null) return connection
    const closed = this.#sessions.get(id)
    if (closed !== undefined) this.#drop(id, closed)
    return this.#open(id, caller)
  }

  /** The connection of a session of this caller, also of one from before a restart; null when there is none. */
  find(id: string, caller: SessionCaller): HttpConnection | null {
    if (id.startsWith(SHARED)) return null
    const { principal } = caller
    const connection = this.#used(id, principal)
    if (connection !== null || this.#sessions.has(id)) return connection
    const state = this.#deps.kept?.find(id, principal) ?? null
    return state === null ? null : this.#renew(id, caller, state)
  }

  /** A session takes a message of its client. */
  took(id: string, { principal }: SessionCaller, message: RpcMessage): void {
    this.#deps.kept?.took(id, principal, message)
  }

  /** Is it a session from before a restart, whose client must be notified of changed lists? True once. */
  isNewlyRenewed(connection: HttpConnection): boolean {
    return this.#renewed.delete(connection)
  }

  /** Brings a new connection to the state of a session of the last process. */
  #renew(id: string, caller: SessionCaller, state: SessionState): HttpConnection | null {
    const connection = this.#open(id, caller)
    if (connection === null || connection.isClosed) return null
    for (const [at, request] of state.requests().entries()) {
      connection.request({ ...request, id: `renewed ${at}` }, ANSWERED)
      if (at === 0) connection.notify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    }
    this.#renewed.add(connection)
    return connection
  }

  #open(id: string, caller: SessionCaller): HttpConnection | null {
    const { clock, connect } = this.#deps
    const { principal } = caller
    const owner = JSON.stringify(principal)
    if (this.#sessions.size >= MAX_SESSIONS && !this.#evict(owner)) return null
    const session: McpSession = { connection: connect(principal), owner, usedAt: clock.monotonic(), release: () => {} }
    this.#sessions.set(id, session)
    this.#sweeper ??= clock.every(SWEEP_MS, () => this.#sweep())
    // A call continues without its client: nothing else would end it here.
    session.release = caller.onTokenEnd(() => this.#drop(id, session))
    return session.connection
  }

  #used(id: string, principal: Principal): HttpConnection | null {
    const session = this.#sessions.get(id)
    if (session === undefined || session.owner !== JSON.stringify(principal) || session.connection.isClosed) return null
    session.usedAt = this.#deps.clock.monotonic()
    return session.connection
  }

  /** Ends a session of this caller; false when there is none. */
  end(id: string, caller: SessionCaller): boolean {
    const session = this.find(id, caller) === null ? undefined : this.#sessions.get(id)
    if (session === undefined) return false
    this.#drop(id, session)
    return true
  }

  /** Ends all. */
  async close(): Promise<void> {
    this.#deps.clock.clear(this.#sweeper)
    this.#sweeper = null
    const all = [...this.#sessions.values()]
    this.#sessions.clear()
    for (const { release } of all) release()
    await Promise.all(all.map(({ connection }) => connection.close()))
    await this.#deps.kept?.close()
  }

  #sweep(): void {
    const now = this.#deps.clock.monotonic()
    for (const [id, session] of this.#sessions) {
      // Its time begins when its last call has ended.
      if (!isIdle(session)) session.usedAt = now
      if (session.connection.isClosed || session.usedAt < now - SESSION_IDLE_MS) this.#drop(id, session)
    }
  }

  #evict(asker: string): boolean {
    const counts = new Map<string, number>()
    for (const { owner } of this.#sessions.values()) counts.set(owner, (counts.get(owner) ?? 0) + 1)
    const share = (owner: string): number => counts.get(owner) ?? 0
    let least: [string, McpSession] | null = null
    for (const entry of this.#sessions) {
      const { owner, usedAt } = entry[1]
      if (!isIdle(entry[1]) || (owner !== asker && share(owner) <= share(asker))) continue
      const more = least === null ? 1 : share(owner) - share(least[1].owner)
      if (least === null || more > 0 || (more === 0 && usedAt < least[1].usedAt)) least = entry
    }
    if (least === null) return false
    this.#drop(...least)
    return true
  }

  #drop(id: string, { connection, release }: McpSession): void {
    this.#sessions.delete(id)
    this.#deps.kept?.ended(id)
    release()
    void connection.close()
  }
}

function isIdle({ connection }: McpSession): boolean {
  return connection.inFlight === 0 && !connection.isListenedTo
}
