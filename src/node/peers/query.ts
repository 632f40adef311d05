import type { Clock } from '../../kit/clock.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import type { PeerTable } from './peer-table.js'

/** The control messages of questions, each with the one of its answer. */
interface Answers {
  lookup: 'found'
  way: 'way-found'
  linked: 'linked-to'
}

type AnswerTo<Q extends keyof Answers> = ControlBody<Answers[Q]>

/** Dependencies of {@link Queries}. */
export interface QueriesDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly peers: Pick<PeerTable, 'send'>
}

/** A question to several neighbours. */
export interface Query<Q extends keyof Answers> {
  /** Time limit of the answers, in milliseconds. */
  readonly patienceMs: number
  /** The control message. */
  body(id: string): ControlBody<Q>
  /** Called with the first answer of each. */
  onAnswer(peer: NodeId, answer: AnswerTo<Q>): void
}

interface Open<Q extends keyof Answers> {
  readonly missing: Set<NodeId>
  readonly onAnswer: Query<Q>['onAnswer']
  readonly done: () => void
}

/** Questions of one kind to several neighbours at once. Only asked neighbours are heard, each once. */
export class Queries<Q extends keyof Answers> {
  readonly #deps: QueriesDeps
  readonly #name: Q
  readonly #open = new Map<string, Open<Q>>()

  constructor(deps: QueriesDeps, name: Q) {
    this.#deps = deps
    this.#name = name
  }

  /** Resolves when all have answered, or at the time limit; at once with no neighbours. */
  async ask(asked: readonly NodeId[], { patienceMs, body, onAnswer }: Query<Q>): Promise<void> {
    if (asked.length === 0) return
    const { clock, ids } = this.#deps
    const id = ids.next(this.#name)
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clock.clear(timer)
        this.#open.delete(id)
        resolve()
      }
      const timer = clock.after(patienceMs, done)
      this.#open.set(id, { missing: new Set(asked), onAnswer, done })
      for (const peer of asked) this.#send(peer, this.#name, body(id))
    })
  }

  /** Takes the answer of a neighbour. */
  answered(peer: NodeId, answer: AnswerTo<Q>): void {
    const open = this.#open.get(answer.id)
    if (open?.missing.delete(peer) !== true) return
    open.onAnswer(peer, answer)
    if (open.missing.size === 0) open.done()
  }

  /** Answers a neighbour that asked. */
  answer(peer: NodeId, name: Answers[Q], body: AnswerTo<Q>): void {
    this.#send(peer, name, body)
  }

  /** Ends all waits. */
  close(): void {
    for (const { done } of [...this.#open.values()]) done()
  }

  #send<N extends Q | Answers[Q]>(peer: NodeId, name: N, body: ControlBody<N>): void {
    try {
      this.#deps.peers.send(peer, { kind: 'control', name, body })
    } catch {
      // The peer disconnected just now: it counts as one that does not answer.
    }
  }
}
