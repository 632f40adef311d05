import { fromBase64, toBase64 } from '../../kit/bytes.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { addressText, OPERATOR } from '../../domain/card/card.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { AWARENESS_LIMITS, goneAwareness, type Presence, readAwareness } from '../../domain/document/awareness.js'
import { CRDTSyncChannel } from '../../domain/document/sync-channel.js'
import type { CRDTSyncMessage } from '../../domain/document/sync-message.js'
import type { DocumentLiveEvent } from '../../ports/document-api.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { memberAccess } from './access.js'
import type { Documents } from './documents.js'
import type { NodeEvents } from '../observe/events.js'
import type { OpenDocument } from './open-document.js'
import type { PeerTable } from '../peers/peer-table.js'

/** Dependencies of {@link DocumentSessions}. */
export interface DocumentSessionsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly log: MemberLog
  readonly documents: Documents
  readonly peers: PeerTable
  readonly events: NodeEvents
  readonly self: NodeId
}

/** One program with an open document. */
interface Session {
  readonly id: string
  readonly name: string
  readonly document: OpenDocument
  clientId: number | null
  /** Its last presence by clientID. */
  readonly presence: Map<number, Presence>
  push(event: DocumentLiveEvent): void
  /** The session cannot go on. */
  end(error: unknown): void
}

/** The arguments of a new session. */
interface SessionOpening extends Pick<Session, 'push' | 'end'> {
  readonly mayWrite: boolean
  /** The former clientID; null for none. */
  readonly clientId: number | null
}

/** The presence channel of a document. */
interface PresenceChannel {
  readonly id: string
  readonly channel: CRDTSyncChannel
  hear(payload: unknown, from: string): void
}

/**
 * Programs with open documents. They receive changes, their updates go into the document, and their presence goes to
 * all.
 */
export class DocumentSessions {
  readonly #deps: DocumentSessionsDeps
  readonly #sessions = new Map<string, Session>()
  /** By name of the document. */
  readonly #presences = new Map<string, PresenceChannel>()

  constructor(deps: DocumentSessionsDeps) {
    this.#deps = deps
  }

  /**
   * Opens a session: pushes the document, then each change. Returns its end function.
   * @throws NodeError as opening a document does
   */
  async open(name: string, { mayWrite, clientId: wanted, ...to }: SessionOpening): Promise<() => void> {
    const { documents, ids } = this.#deps
    const { document, release } = await documents.hold(name)
    try {
      const clientId = mayWrite ? await document.openSession(wanted) : null
      const session: Session = { id: ids.next('doc'), name, document, clientId, presence: new Map(), ...to }
      const stop = await this.#begin(session)
      this.#sessions.set(session.id, session)
      this.#presence(name)
      return () => {
        stop()
        this.#end(session)
        release()
      }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Writes an update of a program. @throws NodeError INVALID_INPUT, FORBIDDEN, OVERLOADED, PAYLOAD_TOO_LARGE */
  async apply(id: string, name: string, update: Uint8Array): Promise<void> {
    const session = this.#of(id, name)
    if (session.clientId === null) throw new NodeError('FORBIDDEN', 'this session may not write the document')
    await session.document.write(update, id)
  }

  /** Spreads the presence of a program. @throws NodeError INVALID_INPUT */
  async tell(id: string, name: string, update: Uint8Array): Promise<void> {
    const session = this.#of(id, name)
    const presence = readAwareness(update)
    if (presence === null) throw new NodeError('INVALID_INPUT', 'invalid or oversized awareness update')
    // A program without the right to write chooses its clientID itself, and might choose ever new ones.
    if (session.clientId !== null && presence.some(({ client }) => client !== session.clientId))
      throw new NodeError('INVALID_INPUT', 'the presence of another clientID')
    if (
      new Set([...session.presence.keys(), ...presence.map(({ client }) => client)]).size > AWARENESS_LIMITS.maxClients
    )
      throw new NodeError('INVALID_INPUT', `a session has told of ${AWARENESS_LIMITS.maxClients} clientIDs`)
    for (const one of presence) session.presence.set(one.client, one)
    await this.#spread(session, update)
  }

  /** Takes the presence of a peer's programs. */
  onPresence(peer: NodeId, { document, message }: ControlBody<'presence'>): void {
    for (const [name, presenceChannel] of this.#presences) {
      if (presenceChannel.id !== document) continue
      const record = this.#deps.log.view().documents.get(name)
      if (record === undefined || !memberAccess(this.#deps.log.view(), record, peer).maySee) return
      presenceChannel.hear(message, addressText({ agentId: OPERATOR, nodeId: peer }))
    }
  }

  #of(id: string, name: string): Session {
    const session = this.#sessions.get(id)
    if (session?.name === name) return session
    throw new NodeError('CHANNEL_CLOSED', 'this session of the document is over', { next: [] })
  }

  /** Pushes the state, then the changes, without a gap between them. */
  async #begin(session: Session): Promise<() => void> {
    const { id, document, push } = session
    let hasBegun = false
    const begin = async (type: 'open' | 'reset', isMoved = false): Promise<void> => {
      hasBegun = false
      if (isMoved && session.clientId !== null) session.clientId = await document.openSession()
      await document.read((replica) => {
        push({ type, session: id, clientId: session.clientId, update: replica.state() })
        hasBegun = true
      })
    }
    const stop = document.onChange((change) => {
      if (change.type === 'reset') begin('reset', change.isMoved).catch((error: unknown) => session.end(error))
      else if (hasBegun && change.by !== id) push({ type: 'update', update: change.update })
    })
    await begin('open')
    return stop
  }

  #end(session: Session): void {
    this.#sessions.delete(session.id)
    if (session.clientId !== null) session.document.closeSession(session.clientId)
    if (session.presence.size > 0)
      this.#spread(session, goneAwareness([...session.presence.values()])).catch((error: unknown) =>
        this.#failed(error)
      )
    if ([...this.#sessions.values()].some(({ name }) => name === session.name)) return
    const presenceChannel = this.#presences.get(session.name)
    this.#presences.delete(session.name)
    presenceChannel?.channel.close().catch((error: unknown) => this.#failed(error))
  }

  /** Sends to programs of this node, and to programs of online members. */
  async #spread({ id, name }: Session, update: Uint8Array): Promise<void> {
    this.#push(name, update, id)
    await this.#presences
      .get(name)
      ?.channel.broadcast(toBase64(update), addressText({ agentId: OPERATOR, nodeId: this.#deps.self }))
  }

  #push(name: string, update: Uint8Array, except: string | null): void {
    for (const session of this.#sessions.values())
      if (session.name === name && session.id !== except) session.push({ type: 'awareness', update })
  }

  #presence(name: string): void {
    if (this.#presences.has(name)) return
    const { clock, documents } = this.#deps
    const id = documents.known.idOf(name)
    let hear: PresenceChannel['hear'] = () => {}
    const channel = new CRDTSyncChannel({
      now: () => clock.now(),
      faultOf: (payload) => (awarenessOf(payload) === null ? 'invalid awareness update' : null),
      onError: (error) => this.#failed(error),
      onSkipped: ({ code, source, reason }) => {
        this.#deps.telemetry.log('warn', 'presence in a document is skipped', {
          code,
          source,
          document: shown(name),
          reason
        })
        this.#deps.events.add('document', `presence in a document is skipped: ${reason}`, {
          code,
          source,
          document: shown(name)
        })
      },
      wire: {
        send: async (message) => this.#send(name, id, message),
        listen: (handler) => {
          hear = handler
          return () => {
            hear = () => {}
          }
        }
      }
    })
    channel.onUpdate(({ payload }) => {
      const update = awarenessOf(payload)
      if (update !== null) this.#push(name, update, null)
    })
    this.#presences.set(name, { id, channel, hear: (payload, from) => hear(payload, from) })
  }

  #send(name: string, document: string, message: CRDTSyncMessage): void {
    const { log, peers } = this.#deps
    const record = log.view().documents.get(name)
    for (const peer of peers.online()) {
      if (record === undefined || !memberAccess(log.view(), record, peer).maySee) continue
      try {
        peers.send(peer, { kind: 'control', name: 'presence', body: { document, message } })
      } catch (error) {
        // The peer disconnected, or is too slow: presence is sent again soon.
        this.#deps.telemetry.log('debug', 'presence in a document was not told', { peer, reason: messageOf(error) })
      }
    }
  }

  #failed(error: unknown): void {
    this.#deps.telemetry.log('error', 'a live document', { reason: messageOf(error) })
  }
}

function awarenessOf(payload: unknown): Uint8Array | null {
  const bytes = typeof payload === 'string' ? fromBase64(payload) : null
  return bytes === null || readAwareness(bytes) === null ? null : bytes
}
