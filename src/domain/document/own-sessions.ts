import * as Y from 'yjs'
import { NodeError } from '../../kit/errors.js'
import type { Hash } from '../../kit/sign.js'
import { clientIdOf, MAX_SESSIONS, type StreamKey } from './client-ids.js'
import type { StreamTable } from './stream-table.js'

/** The session of a stream under which its node edits by itself; those behind it are of programs. */
const OWN_SESSION = 0

/** The sessions of this node in a document: the clientIDs under which it and its programs edit. */
export class OwnSessions {
  readonly #deps: { readonly own: StreamKey | null; readonly hash: Hash }
  readonly #streams: StreamTable
  readonly #doc: Y.Doc
  /** The clientID that stands in for that of the first session. */
  #meanwhile: number | null = null

  constructor(
    deps: { readonly own: StreamKey | null; readonly hash: Hash },
    { streams, doc }: { readonly streams: StreamTable; readonly doc: Y.Doc }
  ) {
    this.#deps = deps
    this.#streams = streams
    this.#doc = doc
  }

  /**
   * The clientID for edits of this node: always that of the stream's first session, so that a node never runs out of
   * them. While an update of that one waits for dependencies, another session is used.
   * @throws NodeError as {@link open}
   */
  clientId(): number {
    const own = this.#mustOwn()
    this.#streams.ids.open(own, 1)
    const first = clientIdOf({ stream: own, number: OWN_SESSION }, this.#deps.hash)
    const isWhole = this.#streams.of(own)?.clockOf(first) === Y.getState(this.#doc.store, first)
    return isWhole ? first : (this.#meanwhile ??= this.open())
  }

  /**
   * Opens a session for a program of this node. Returns the clientID to write with. The own stream must have been read
   * back whole; call `takeBlocks` of the replica before a program gets the clientID.
   * @throws NodeError FORBIDDEN without a stream of its own, OVERLOADED beyond 4,096 sessions
   */
  open(): number {
    const own = this.#mustOwn()
    const number = Math.max(OWN_SESSION + 1, this.#streams.ids.sessionsOf(own))
    if (number >= MAX_SESSIONS)
      throw new NodeError('OVERLOADED', `this node has had ${MAX_SESSIONS} sessions of the document`)
    this.#streams.ids.open(own, number + 1)
    return clientIdOf({ stream: own, number }, this.#deps.hash)
  }

  /** Is it the clientID of a session that programs of this node may have? */
  isOfPrograms(clientId: number): boolean {
    const { own, hash } = this.#deps
    if (
      own === null ||
      clientId === this.#meanwhile ||
      clientId === clientIdOf({ stream: own, number: OWN_SESSION }, hash)
    )
      return false
    return this.#streams.ids.ownerOf(clientId) === own
  }

  #mustOwn(): StreamKey {
    if (this.#deps.own === null) throw new NodeError('FORBIDDEN', 'this node may not write the document')
    return this.#deps.own
  }
}
