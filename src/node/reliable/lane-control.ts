import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { MAX_NAMED_LANES } from '../../domain/channel/control.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { laneText } from '../../domain/reliable/keys.js'
import type { Lane } from '../../domain/reliable/keys.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { NextHop } from '../relay/next-hop.js'

type Greet = ControlBody<'greet'>['lanes'][number]
type Ack = ControlBody<'ack'>['lanes'][number]

/** What goes to one node in one message, gathered for the rest of the turn. */
interface Gathered {
  readonly greets: Map<string, Greet>
  readonly acks: Map<string, Ack>
}

/** What sending control messages of lanes needs. */
export interface LaneControlDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'sendControl'>
}

/** Greetings and acknowledgements of lanes: those of one turn for one node go in one message. */
export class LaneControl {
  readonly #deps: LaneControlDeps
  readonly #gathered = new Map<NodeId, Gathered>()

  constructor(deps: LaneControlDeps) {
    this.#deps = deps
  }

  /** Asks the receiver of a lane what it has; `base`: the lowest number that still comes. */
  greet(lane: Lane, base: number): void {
    const { source, target } = lane
    this.#gather(target.nodeId).greets.set(laneText(lane), { source: source.agentId, target: target.agentId, base })
  }

  /** Tells the sender of a lane what is here. */
  acknowledge(lane: Lane, at: Omit<Ack, 'source' | 'target' | 'isAnswer'> & { readonly isAnswer: boolean }): void {
    const { source, target } = lane
    const { acks } = this.#gather(source.nodeId)
    const before = acks.get(laneText(lane))
    // One that was asked for stays an answer, whatever else became durable in the same turn.
    const isAnswer = at.isAnswer || (before !== undefined && before.isAnswer !== false)
    acks.set(laneText(lane), { source: source.agentId, target: target.agentId, ...at, isAnswer: isAnswer ? undefined : false })
  }

  /** Drops what is gathered for a node: it was for another path. */
  drop(peer: NodeId): void {
    this.#gathered.delete(peer)
  }

  #gather(peer: NodeId): Gathered {
    const known = this.#gathered.get(peer)
    if (known !== undefined) return known
    const fresh: Gathered = { greets: new Map(), acks: new Map() }
    this.#gathered.set(peer, fresh)
    void Promise.resolve().then(() => {
      if (this.#gathered.get(peer) !== fresh) return
      this.#gathered.delete(peer)
      this.#send(peer, fresh)
    })
    return fresh
  }

  /** Nothing of it has to arrive: what is lost is asked again. */
  #send(peer: NodeId, { greets, acks }: Gathered): void {
    const { nextHop, telemetry } = this.#deps
    try {
      for (const lanes of inParts([...acks.values()])) nextHop.sendControl(peer, 'ack', { lanes })
      for (const lanes of inParts([...greets.values()])) nextHop.sendControl(peer, 'greet', { lanes })
    } catch (error) {
      telemetry.log('debug', 'a lane could not be asked or answered', { peer, reason: messageOf(error) })
    }
  }
}

/** One control message names at most {@link MAX_NAMED_LANES} lanes. */
function inParts<T>(lanes: readonly T[]): T[][] {
  const all: T[][] = []
  for (let at = 0; at < lanes.length; at += MAX_NAMED_LANES) all.push(lanes.slice(at, at + MAX_NAMED_LANES))
  return all
}
