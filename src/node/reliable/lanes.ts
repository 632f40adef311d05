import { type Clock, ExpiryClock, type Timer } from '../../kit/clock.js'
import { messageOf, NodeError, type ErrorCode } from '../../kit/errors.js'
import { fromUtf8, utf8, type IdSource, type NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import type { ReliableFrame } from '../../domain/reliable/frame.js'
import { KEYS, type Lane } from '../../domain/reliable/keys.js'
import { firstNumber } from '../../domain/reliable/lane-sender.js'
import { MAX_AGE_MS } from '../../domain/routing/replays.js'
import type { Ledger, LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { storedLanes } from './lane-messages.js'
import { agentsOf, LaneControl, IncomingLanes, type IncomingLaneDeps } from './lane-receiver.js'
import { OutgoingLane, type GivenUp, type Outgoing } from './lane-sender.js'
import { TidyLedger } from './tidy-ledger.js'
import type { RefusedFrame, NextHop } from '../relay/next-hop.js'

/** Messages that may wait for one node; then OVERLOADED. */
const MAX_WAITING = 10_000
/** Bytes that may wait for one node; then OVERLOADED. */
const MAX_WAITING_BYTES = 256 * 1024 * 1024
/** Milliseconds between two checks of lanes with messages under way. */
const TICK_MS = 500
/**
 * Milliseconds for which a relayed frame may still arrive: its timestamp may differ from the reader's clock by half of
 * it, either way.
 */
const LINGER_MS = 2 * MAX_AGE_MS
/** Unanswered questions in a row until another relay is preferred. */
const MAX_SILENCE = 2

/** A relay has no route to the node, or no room, now. */
const AWAY: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'OVERLOADED'])

/** Dependencies of reliable delivery. */
export interface LanesDeps extends Pick<IncomingLaneDeps, 'admit'> {
  readonly clock: Clock
  readonly ledger: Ledger
  readonly telemetry: Telemetry
  readonly ids: IdSource
  readonly self: NodeId
  /** In [0, 1). */
  readonly chance: () => number
  /** Is there a link? */
  isOnline(peer: NodeId): boolean
  /** Sends frames to peers: over a link, or over relays. */
  readonly nextHop: Pick<NextHop, 'isReachable' | 'sendFrame' | 'sendControl' | 'seek' | 'doubt'>
  /** See {@link OutgoingLaneDeps.onAcknowledged}. */
  onAcknowledged(requestId: string): void
  onGivenUp(messages: readonly GivenUp[]): void
  /** See {@link OutgoingLaneDeps.onUndelivered}. */
  onUndelivered(peer: NodeId, requestIds: readonly string[]): void
}

/** Every lane of this node: the outgoing and incoming messages that must not be lost. */
export class Lanes {
  /** The receiving ends. */
  readonly incoming: IncomingLanes
  readonly #deps: LanesDeps
  readonly #out = new LaneTable()
  readonly #ledger: TidyLedger
  readonly #control: LaneControl
  readonly #expiry: ExpiryClock
  /** Monotonic milliseconds until which frames for a node may linger at relays. */
  readonly #lingers = new Map<NodeId, number>()
  #timer: Timer | null = null
  /** Name of the ledger; null until it is open. */
  #ledgerName: string | null = null

  constructor(deps: LanesDeps) {
    this.#deps = deps
    this.#control = new LaneControl(deps)
    this.#expiry = new ExpiryClock(deps.clock)
    this.#ledger = new TidyLedger(deps)
    this.incoming = new IncomingLanes({
      ...deps,
      commit: (changes) => this.#ledger.commit(changes),
      acknowledge: (lane, { isAll, ...at }) =>
        this.#control.acknowledge(lane, {
          ...at,
          ...(isAll && this.#ledgerName !== null ? { ledger: this.#ledgerName } : {})
        })
    })
  }

  /** Reads the messages that were unacknowledged when this node stopped. @throws NodeError STORE_DAMAGED */
  async open(): Promise<void> {
    const { ledger, telemetry, clock } = this.#deps
    const first = firstNumber(clock.now())
    const isOlder = await this.#nameLedger()
    let isNumbered = true
    for (const { lane, ...stored } of await storedLanes(ledger, { telemetry, first })) {
      const out = this.#addOut(lane, stored)
      if (isOlder && !(await out.renumber(Math.max(first, stored.next)))) isNumbered = false
      // The previous process may have sent them over relays.
      if (stored.live.length > 0) this.#lingers.set(lane.target.nodeId, clock.monotonic() + LINGER_MS)
    }
    // A start renumbers only a ledger without a name. So the name is recorded once all lanes have new numbers.
    if (isOlder && isNumbered) this.#ledger.tidy([{ key: KEYS.ledger, value: utf8(this.#ledgerName ?? '') }])
  }

  /** Name of this node's ledger: a new name tells peers that the old content is lost. null until it is open. */
  get ledgerName(): string | null {
    return this.#ledgerName
  }

  /** Names a ledger without a name: a lost one, or one restored from an older copy. Resolves to whether it had none. */
  async #nameLedger(): Promise<boolean> {
    const known = await this.#deps.ledger.get(KEYS.ledger)
    this.#ledgerName = known === null || known.byteLength === 0 ? this.#deps.ids.next('ledger') : fromUtf8(known)
    return this.#ledgerName !== (known && fromUtf8(known))
  }

  /** Starts the checks of messages under way. */
  start(): void {
    this.#timer = this.#deps.clock.every(TICK_MS, () => {
      for (const peer of this.#out.peers()) this.#tick(peer, this.#out.of(peer))
    })
  }

  /**
   * Looks for a route to an unreachable node with waiting messages; prefers another relay when a node does not answer
   * over one.
   */
  #tick(peer: NodeId, lanes: readonly OutgoingLane[]): void {
    const { nextHop, isOnline } = this.#deps
    const waiting = lanes.filter(({ load }) => load.count > 0)
    if (waiting.length > 0 && !isOnline(peer)) {
      const isSilent = waiting.some(({ silence }) => silence >= MAX_SILENCE)
      if (isSilent) nextHop.doubt(peer)
      const isReachable = nextHop.isReachable(peer)
      for (const lane of waiting) if (isSilent || lane.isDown === isReachable) this.#turn(peer, lane, isReachable)
      if (!isReachable) nextHop.seek(peer)
    }
    for (const lane of lanes) lane.tick()
  }

  #turn(peer: NodeId, lane: OutgoingLane, isReachable: boolean): void {
    lane.step(isReachable ? { type: 'up', mayLinger: this.#mayLinger(peer) } : { type: 'down' })
  }

  #mayLinger(peer: NodeId): boolean {
    const { clock, isOnline } = this.#deps
    return !isOnline(peer) || clock.monotonic() < (this.#lingers.get(peer) ?? 0)
  }

  /** Ends all timers, and commits pending removals. Never rejects. */
  async stop(): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    this.incoming.close()
    await this.#ledger.stop()
  }

  /**
   * Records a message together with other changes, and delivers it: now, or when its node is reachable. `also` gives
   * the changes at the moment of the commit; its error is passed on.
   * @throws NodeError OVERLOADED, or the ledger's error. Then no change was made.
   */
  record(lane: Lane, message: Outgoing, also: () => readonly LedgerChange[] = () => []): Promise<void> {
    const load = this.load(lane.target.nodeId)
    if (load.count >= MAX_WAITING || load.bytes >= MAX_WAITING_BYTES) {
      return Promise.reject(new NodeError('OVERLOADED', 'too many messages wait for this node'))
    }
    return this.#outLane(lane).record(message, also)
  }

  /**
   * Commits changes that no message depends on. Resolves when they are durable.
   * @throws NodeError the ledger's error; then no change was made.
   */
  commit(changes: readonly LedgerChange[]): Promise<void> {
    return changes.length > 0 ? this.#ledger.commit(changes) : Promise.resolve()
  }

  /** Gives up the unacknowledged messages of a request. */
  giveUp(peer: NodeId, requestId: string): void {
    for (const lane of this.#out.of(peer)) lane.giveUp(requestId)
  }

  /** Is a message of the request on its way? */
  holds(peer: NodeId, requestId: string): boolean {
    return this.#out.of(peer).some((lane) => lane.holds(requestId))
  }

  /** Drops all messages for a node that was removed from the mesh. Never rejects. */
  async forget(peer: NodeId): Promise<void> {
    const lanes = this.#out.of(peer)
    this.#out.delete(peer)
    const removed = (await Promise.all(lanes.map((lane) => lane.removal()))).flat()
    await this.commit(removed).catch((error: unknown) => {
      this.#deps.telemetry.log('warn', 'messages for a revoked node could not be removed', {
        peer,
        reason: messageOf(error)
      })
    })
  }

  /** Number of the last recorded message of a lane; 0 when there is none. */
  lastSequence(lane: Lane): number {
    return (this.#out.find(lane)?.next ?? 1) - 1
  }

  /** The unacknowledged messages of a lane, in order. @throws NodeError STORE_DAMAGED */
  async unacknowledged(
    lane: Lane
  ): Promise<{ readonly messageId: string; readonly seq: number; readonly envelope: Uint8Array }[]> {
    const messages = this.#out.find(lane)?.messages ?? []
    const contents = await Promise.all(messages.map(({ messageId }) => this.#deps.ledger.get(KEYS.content(messageId))))
    return messages.flatMap((message, at) => {
      const envelope = contents[at] ?? null
      return envelope === null ? [] : [{ ...message, envelope }]
    })
  }

  /** Messages that no node has acknowledged yet. */
  get waiting(): number {
    return this.#out.peers().reduce((count, peer) => count + this.load(peer).count, 0)
  }

  /** Count and bytes of messages that a node has not acknowledged. */
  load(peer: NodeId): { readonly count: number; readonly bytes: number } {
    return this.#out.load(peer)
  }

  /** There is a new path to a node: a link, or relays. */
  onPath(peer: NodeId): void {
    this.#control.drop(peer)
    for (const lane of this.#out.of(peer)) this.#turn(peer, lane, true)
  }

  /** Its last link is gone: it may be reachable over relays. */
  onOffline(peer: NodeId): void {
    this.#control.drop(peer)
    for (const lane of this.#out.of(peer)) lane.step({ type: 'down' })
    this.incoming.onOffline(peer)
    if (this.#deps.nextHop.isReachable(peer)) this.onPath(peer)
  }

  /**
   * A relay refused a message. True when it is given up: it is an opening message, a rule of the relay refused it, and
   * no other transmission is under way. All other messages are sent again.
   */
  onRefused({ to, source, target, messageId, code, isOpening }: RefusedFrame): boolean {
    const out = this.#laneTo(to, source, target)
    const isLast = out?.refused(messageId) ?? false
    if (code === 'PEER_OFFLINE') this.#rerouted(to)
    const isFinal = isLast && isOpening && !AWAY.has(code)
    if (isFinal) out?.step({ type: 'give-up', messageIds: new Set([messageId]) })
    return isFinal
  }

  /** The route of the frames does not work: they take another one, or wait. */
  #rerouted(peer: NodeId): void {
    const isReachable = this.#deps.nextHop.isReachable(peer)
    for (const lane of this.#out.of(peer)) if (!lane.isDown || isReachable) this.#turn(peer, lane, isReachable)
  }

  /** A peer reports the state of this node's lanes. */
  onAck(peer: NodeId, { lanes }: ControlBody<'ack'>): void {
    for (const { source, target, ...ack } of lanes) this.#laneTo(peer, source, target)?.step({ type: 'ack', ...ack })
  }

  #laneTo(peer: NodeId, source: string, target: string): OutgoingLane | undefined {
    return this.#out.find({
      source: { agentId: source, nodeId: this.#deps.self },
      target: { agentId: target, nodeId: peer }
    })
  }

  #outLane(lane: Lane): OutgoingLane {
    const known = this.#out.find(lane)
    if (known !== undefined) return known
    const fresh = this.#addOut(lane, { next: firstNumber(this.#deps.clock.now()), live: [] })
    const peer = lane.target.nodeId
    if (this.#deps.nextHop.isReachable(peer)) this.#turn(peer, fresh, true)
    return fresh
  }

  #addOut(lane: Lane, stored: ConstructorParameters<typeof OutgoingLane>[2]): OutgoingLane {
    const peer = lane.target.nodeId
    const out = new OutgoingLane(
      {
        ...this.#deps,
        expiryNow: () => this.#expiry.now(),
        onUndelivered: (requestIds) => this.#deps.onUndelivered(peer, requestIds),
        send: (frame) => this.#send(peer, frame),
        greet: (base) => this.#control.greet(lane, base),
        commit: (changes) => this.#ledger.commit(changes),
        tidy: (changes) => this.#ledger.tidy(changes)
      },
      lane,
      stored
    )
    this.#out.add(out)
    return out
  }

  #send(peer: NodeId, frame: ReliableFrame): void {
    const { nextHop, isOnline, clock } = this.#deps
    if (!isOnline(peer)) this.#lingers.set(peer, clock.monotonic() + LINGER_MS)
    nextHop.sendFrame(peer, frame)
  }
}

/** The sending ends by their receivers. */
class LaneTable {
  readonly #byPeer = new Map<NodeId, Map<string, OutgoingLane>>()

  peers(): NodeId[] {
    return [...this.#byPeer.keys()]
  }

  of(peer: NodeId): OutgoingLane[] {
    return [...(this.#byPeer.get(peer)?.values() ?? [])]
  }

  find(lane: Lane): OutgoingLane | undefined {
    return this.#byPeer.get(lane.target.nodeId)?.get(agentsOf(lane))
  }

  add(out: OutgoingLane): void {
    const { nodeId } = out.lane.target
    const ofPeer = this.#byPeer.get(nodeId) ?? new Map<string, OutgoingLane>()
    this.#byPeer.set(nodeId, ofPeer.set(agentsOf(out.lane), out))
  }

  delete(peer: NodeId): void {
    this.#byPeer.delete(peer)
  }

  /** Count and bytes of messages that a node has not acknowledged. */
  load(peer: NodeId): { readonly count: number; readonly bytes: number } {
    const load = { count: 0, bytes: 0 }
    for (const lane of this.#byPeer.get(peer)?.values() ?? []) {
      load.count += lane.load.count
      load.bytes += lane.load.bytes
    }
    return load
  }
}
