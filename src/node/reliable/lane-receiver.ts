import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { ReliableFrame } from '../../domain/reliable/frame.js'
import { KEYS, laneText, type Lane } from '../../domain/reliable/keys.js'
import {
  ACK_AFTER_MS,
  isNextOf,
  MAX_BUFFERED,
  MAX_BUFFERED_BYTES,
  openReceiver,
  stepReceiver,
  type Arrived,
  type LaneReceiver,
  type ReceiverInput
} from '../../domain/reliable/lane-receiver.js'
import { receiverRecord } from '../../domain/reliable/records.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { MAX_NAMED_LANES, type ControlBody } from '../../domain/channel/control.js'
import type { NextHop } from '../relay/next-hop.js'
import type { TidyLedger } from './tidy-ledger.js'

/** An inbound message of a lane. */
export interface LaneMessage {
  readonly lane: Lane
  readonly messageId: string
  /** The request of the message; null when it has none. */
  readonly requestId: string | null
  /** The encoded envelope, not read yet. */
  readonly envelope: Uint8Array
  /** The nodes that relayed it, in order. */
  readonly hops: readonly NodeId[]
}

/** The ledger changes of a message, and the steps after their commit. */
export interface Admission {
  readonly changes: readonly LedgerChange[]
  done(): void
  /** The commit failed; the message will come again. */
  failed(): void
}

/** Bytes in memory, shared by all lanes of one node. */
interface BufferBudget {
  bytes: number
}

/** Bytes in memory for messages of all lanes of one node; further messages are dropped and sent again. */
const MAX_BUDGET_BYTES = 64 * 1024 * 1024
/** Bytes of the budget for messages that arrived out of order; the rest is for the messages before them. */
const MAX_GAP_BYTES = MAX_BUDGET_BYTES / 2
/** Receiving ends of one node kept open. */
const MAX_OPEN = 1024
/** Lanes that one node may begin while this process runs: each leaves a record. */
const MAX_BEGUN = 4096
/** Bytes counted per message beside its envelope. */
const MESSAGE_BYTES = 1024

/**
 * The last durable number and its message. `isAll`: nothing else is about to become durable. `isAnswer`: answers a
 * greeting.
 */
interface Acknowledged {
  readonly ack: number
  readonly messageId: string | null
  readonly isAll: boolean
  readonly isAnswer: boolean
}

/** Dependencies of the receiving end of a lane. */
export interface IncomingLaneDeps extends Pick<TidyLedger, 'commit'> {
  readonly budget: BufferBudget
  readonly clock: Clock
  readonly ledger: Pick<Ledger, 'get'>
  readonly telemetry: Telemetry
  /** May this lane begin, which the ledger does not know? */
  mayBegin(): boolean
  /** Returns the changes of a message. */
  admit(message: LaneMessage): Promise<Admission>
  /** Tells the lane's sender the last durable number. */
  acknowledge(lane: Lane, at: Acknowledged): void
}

type Content = Omit<LaneMessage, 'lane' | 'messageId' | 'envelope'> & { readonly envelope: Uint8Array | null }

const NOTHING = { waiting: new Map<number, unknown>(), waitingBytes: 0 }

/** The receiving end of one lane: commits messages in order, and acknowledges them. */
class IncomingLane {
  readonly #lane: Lane
  readonly #text: string
  /** Key of the receiver's record, which each commit changes. */
  readonly #key: string
  readonly #deps: IncomingLaneDeps
  /** null until it was read from the ledger. */
  #state: LaneReceiver<Content> | null = null
  /** Inputs until then. */
  #early: ReceiverInput<Content>[] = []
  #toCommit: Arrived<Content>[] = []
  #isCommitting = false
  /** Its peer has begun too many lanes: all messages are dropped. */
  #isRefused = false
  /** Messages that are neither durable nor dropped, and their bytes. */
  #unsettled = 0
  #unsettledBytes = 0
  /** Bytes of the shared budget that this lane uses. */
  #taken = 0
  #ackTimer: Timer | null = null

  constructor(deps: IncomingLaneDeps, lane: Lane) {
    this.#lane = lane
    this.#text = laneText(lane)
    this.#key = KEYS.receiver(this.#text)
    this.#deps = deps
    void this.#open()
  }

  /** True when nothing waits here: the lane may be closed, and opened again later. */
  get isIdle(): boolean {
    if (this.#isRefused) return true
    return (
      this.#state !== null &&
      this.#toCommit.length === 0 &&
      !this.#isCommitting &&
      this.#state.waiting.size === 0 &&
      this.#state.ackAt === null
    )
  }

  /** A message arrived. While the ledger is slow, messages over the limits are dropped and sent again. */
  arrive(message: Arrived<Content>): void {
    if (this.#unsettled >= MAX_BUFFERED || this.#unsettledBytes >= MAX_BUFFERED_BYTES) return
    const isNext = this.#state !== null && isNextOf(this.#state, message)
    if (this.#deps.budget.bytes + message.bytes > (isNext ? MAX_BUDGET_BYTES : MAX_GAP_BYTES)) return
    this.step({ type: 'arrived', message })
  }

  /** Applies an input to the lane. */
  step(input: ReceiverInput<Content>): void {
    if (this.#isRefused) return
    if (this.#state === null) {
      this.#early.push(input)
      if (input.type === 'arrived') this.#hold([input.message], 1)
      return
    }
    const effects = stepReceiver(this.#state, input, this.#deps.clock.monotonic())
    this.#count()
    for (const effect of effects) {
      if (effect.type === 'take') this.#take(effect.messages)
      else {
        const { contig: ack, lastId: messageId, taken } = this.#state
        this.#deps.acknowledge(this.#lane, { ack, messageId, isAll: taken === ack, isAnswer: effect.isAnswer })
      }
    }
    if (this.#state.ackAt !== null) this.#ackTimer ??= this.#deps.clock.after(ACK_AFTER_MS, () => this.#tick())
  }

  /** Ends its timer. Pending acknowledgements go out when the sender asks. */
  close(): void {
    this.#deps.clock.clear(this.#ackTimer)
  }

  #tick(): void {
    this.#ackTimer = null
    this.step({ type: 'tick' })
  }

  async #open(): Promise<void> {
    try {
      const bytes = await this.#deps.ledger.get(this.#key)
      if (bytes === null && !this.#deps.mayBegin()) return this.#refuse()
      this.#state = openReceiver<Content>(bytes === null ? { contig: 0, lastId: null } : receiverRecord.decode(bytes))
    } catch (error) {
      this.#note('a lane could not be read', error)
      // Its sender asks again; messages without a number here are taken from the sender's position on.
      this.#state = openReceiver<Content>({ contig: 0, lastId: null })
    }
    for (const input of this.#early.splice(0)) {
      if (input.type === 'arrived') this.#hold([input.message], -1)
      this.step(input)
    }
  }

  #refuse(): void {
    this.#isRefused = true
    this.#early = []
    this.#unsettled = 0
    this.#unsettledBytes = 0
    this.#count()
    this.#deps.telemetry.count('errors', 'lane')
  }

  #hold(messages: readonly Arrived<Content>[], by: 1 | -1): void {
    this.#unsettled += by * messages.length
    for (const { bytes } of messages) this.#unsettledBytes += by * bytes
    this.#count()
  }

  #count(): void {
    const { waiting, waitingBytes } = this.#state ?? NOTHING
    const now = this.#unsettledBytes + waitingBytes + (this.#unsettled + waiting.size) * MESSAGE_BYTES
    this.#deps.budget.bytes += now - this.#taken
    this.#taken = now
  }

  #take(messages: readonly Arrived<Content>[]): void {
    this.#toCommit.push(...messages)
    this.#hold(messages, 1)
    if (!this.#isCommitting) void this.#commitAll()
  }

  /** One commit for all messages that arrived during the last commit. */
  async #commitAll(): Promise<void> {
    this.#isCommitting = true
    while (this.#toCommit.length > 0) {
      const messages = this.#toCommit
      this.#toCommit = []
      await this.#commit(messages)
      this.#hold(messages, -1)
    }
    this.#isCommitting = false
  }

  async #commit(messages: readonly Arrived<Content>[]): Promise<void> {
    const last = messages.at(-1)
    if (last === undefined) return
    const admissions: Admission[] = []
    try {
      // All at once, so that their lookups are read together; each begins in the order of the lane.
      const admitted = await Promise.allSettled(messages.flatMap((message) => this.#admit(message)))
      for (const one of admitted) if (one.status === 'fulfilled') admissions.push(one.value)
      for (const one of admitted) if (one.status === 'rejected') throw one.reason
      const value = receiverRecord.encode({ contig: last.seq, lastId: last.messageId })
      await this.#deps.commit([...admissions.flatMap(({ changes }) => changes), { key: this.#key, value }])
      this.step({ type: 'committed', seq: last.seq, messageId: last.messageId })
    } catch (error) {
      for (const admission of admissions) admission.failed()
      this.#note('messages could not be recorded; their sender will send them again', error)
      this.#hold(this.#toCommit.splice(0), -1)
      return this.step({ type: 'failed' })
    }
    for (const admission of admissions) this.#finish(admission)
  }

  #admit({ messageId, content: { requestId, envelope, hops } }: Arrived<Content>): readonly Promise<Admission>[] {
    return envelope === null ? [] : [this.#deps.admit({ lane: this.#lane, messageId, requestId, envelope, hops })]
  }

  /** A fault after the commit does not undo it: the next start repeats the step. */
  #finish(admission: Admission): void {
    try {
      admission.done()
    } catch (error) {
      this.#note('a recorded message could not be handled', error)
    }
  }

  #note(what: string, error: unknown): void {
    this.#deps.telemetry.count('errors', 'lane')
    this.#deps.telemetry.log('error', what, { lane: this.#text, reason: messageOf(error) })
  }
}

/** Dependencies of the receiving ends of lanes. */
interface IncomingLanesDeps extends Omit<IncomingLaneDeps, 'budget' | 'mayBegin'> {
  readonly self: NodeId
}

/** The receiving ends of all lanes to this node. */
export class IncomingLanes {
  readonly #deps: IncomingLanesDeps
  readonly #lanes = new Map<NodeId, Map<string, IncomingLane>>()
  readonly #begun = new Map<NodeId, Set<string>>()
  readonly #budgets = new Map<NodeId, BufferBudget>()

  constructor(deps: IncomingLanesDeps) {
    this.#deps = deps
  }

  /** A message of a lane from a peer, over its link or relayed by `hops`. */
  onMessage(peer: NodeId, frame: ReliableFrame, hops: readonly NodeId[] = []): void {
    const { seq, base, messageId, requestId, envelope } = frame
    const content = { requestId, envelope, hops }
    this.#lane(peer, frame)?.arrive({ seq, base, messageId, bytes: envelope?.byteLength ?? 0, content })
  }

  /** A peer asks for the state of its lanes here. */
  onGreet(peer: NodeId, { lanes }: ControlBody<'greet'>): void {
    for (const lane of lanes) this.#lane(peer, lane)?.step({ type: 'greeted' })
  }

  /** The last link to a peer is gone. */
  onOffline(peer: NodeId): void {
    for (const lane of this.#lanes.get(peer)?.values() ?? []) lane.step({ type: 'down' })
  }

  /** Ends all timers. */
  close(): void {
    for (const lanes of this.#lanes.values()) for (const lane of lanes.values()) lane.close()
  }

  #lane(peer: NodeId, { source, target }: Pick<ReliableFrame, 'source' | 'target'>): IncomingLane | null {
    const lane = { source: { agentId: source, nodeId: peer }, target: { agentId: target, nodeId: this.#deps.self } }
    const ofPeer = this.#lanes.get(peer) ?? new Map<string, IncomingLane>()
    this.#lanes.set(peer, ofPeer)
    const text = agentsOf(lane)
    const known = ofPeer.get(text)
    if (known !== undefined) return known
    if (ofPeer.size >= MAX_OPEN && !closeIdle(ofPeer)) return null
    const budget = this.#budgets.get(peer) ?? { bytes: 0 }
    this.#budgets.set(peer, budget)
    const fresh = new IncomingLane({ ...this.#deps, budget, mayBegin: () => this.#mayBegin(peer, text) }, lane)
    ofPeer.set(text, fresh)
    return fresh
  }

  #mayBegin(peer: NodeId, text: string): boolean {
    const begun = this.#begun.get(peer) ?? new Set()
    this.#begun.set(peer, begun)
    return begun.has(text) || (begun.size < MAX_BEGUN && begun.add(text).has(text))
  }
}

/** The two agents of a lane as text: its key among the lanes between this node and one other in one direction. */
export function agentsOf({ source, target }: Lane): string {
  return `${source.agentId}>${target.agentId}`
}

/** Closes an idle lane; false when all are in use. */
function closeIdle(lanes: Map<string, IncomingLane>): boolean {
  for (const [text, lane] of lanes) {
    if (!lane.isIdle) continue
    lane.close()
    lanes.delete(text)
    return true
  }
  return false
}

type Greet = ControlBody<'greet'>['lanes'][number]
type Ack = ControlBody<'ack'>['lanes'][number]

/** Control messages of one turn to one node, sent as one. */
interface Gathered {
  readonly greets: Map<string, Greet>
  readonly acks: Map<string, Ack>
}

/** Dependencies of the lane control. */
interface LaneControlDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'sendControl'>
}

/** Sends greetings and acknowledgements of lanes: one message per turn and node. */
export class LaneControl {
  readonly #deps: LaneControlDeps
  readonly #gathered = new Map<NodeId, Gathered>()

  constructor(deps: LaneControlDeps) {
    this.#deps = deps
  }

  /** Asks the receiver of a lane for its state; `base`: the lowest number that still comes. */
  greet(lane: Lane, base: number): void {
    const { source, target } = lane
    this.#gather(target.nodeId).greets.set(agentsOf(lane), { source: source.agentId, target: target.agentId, base })
  }

  /** Tells the sender of a lane the state here. */
  acknowledge(lane: Lane, at: Omit<Ack, 'source' | 'target' | 'isAnswer'> & { readonly isAnswer: boolean }): void {
    const { source, target } = lane
    const { acks } = this.#gather(source.nodeId)
    const text = agentsOf(lane)
    const before = acks.get(text)
    // An answer to a greeting stays one, whatever else became durable in the same turn.
    const isAnswer = at.isAnswer || (before !== undefined && before.isAnswer !== false)
    acks.set(text, { source: source.agentId, target: target.agentId, ...at, isAnswer: isAnswer ? undefined : false })
  }

  /** Drops the gathered messages for a node: they were for another path. */
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

  /** Delivery is not required: lost messages are asked for again. */
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

/** Parts of at most {@link MAX_NAMED_LANES} lanes, one per control message. */
function inParts<T>(lanes: readonly T[]): T[][] {
  const all: T[][] = []
  for (let at = 0; at < lanes.length; at += MAX_NAMED_LANES) all.push(lanes.slice(at, at + MAX_NAMED_LANES))
  return all
}
