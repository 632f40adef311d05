import Hyperswarm from 'hyperswarm'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Hash, Verify } from '../../../kit/sign.js'
import { formatDuration } from '../../../kit/units.js'
import type { MembershipView, SignedCertificate } from '../../../domain/membership/types.js'
import { EMPTY_VIEW, isActive, isRevoked, isWriter } from '../../../domain/membership/view.js'
import type { AuditEvent } from '../../../ports/audit.js'
import type { Link, LinkHandlers, Links, Strike } from '../../../ports/mesh.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { type EntryRelayOptions, EntryRelay, handToAny } from '../log/entry-relay.js'
import { Dials } from './dials.js'
import { ConnectionLimits } from './connection-limits.js'
import { FrameGuard } from './frame-guard.js'
import { FULL, Gate } from './gate.js'
import { guardMux } from './guarded-mux.js'
import type { CutCode, GateIdentity } from './gate.js'
import type { GateRefusal } from './hello.js'
import { Keeper } from './keeper.js'
import { StreamLink } from './link.js'
import { STREAM_TIMEOUT_MS } from '../network/network.js'
import type { MeshBinding } from '../network/mesh-binding.js'
import type { Network } from '../network/network.js'
import type { PeerStream } from './peer-stream.js'
import { Strikes } from './strikes.js'

/** Links to members, at most, whatever is asked for. */
export const MAX_LINKS = 64
/** A cut stream may flush its last words for this long, in milliseconds. */
const LINGER_MS = 250
/** How long a writer may take to have a link when there is none to any, in milliseconds. */
const WRITER_DIAL_MS = 2500
/** What a peer hears whose link made room for another. */
const IDLE: GateRefusal = { code: 'OVERLOADED', reason: 'nobody used this link, and another needs its place' }

/** What the swarm needs. */
export interface SwarmDeps {
  readonly network: Network
  readonly networkKind: 'public' | 'private' | 'local'
  readonly keyPair: { readonly publicKey: Uint8Array; readonly secretKey: Uint8Array }
  readonly software: string
  readonly clock: Clock
  readonly hash: Hash
  readonly verify: Verify
  readonly telemetry: Telemetry
  /** Links to members, at most; see {@link MAX_LINKS}. */
  readonly maxLinks: number
  /** A stream was refused at the gate, or its peer broke the protocol: for the audit. */
  onRefused(refusal: AuditEvent): void
}

/** What the gate learnt of a peer, and the multiplexer of its stream. */
interface ShownAtGate {
  readonly mux: Protomux
  readonly peerVersion: string
  readonly certificate: SignedCertificate
}

/** The swarm: streams, gates and links of this node. */
export class SwarmLinks implements Links {
  /** For pairing, which uses the same swarm. */
  readonly swarm: Hyperswarm
  readonly #deps: SwarmDeps
  readonly #streams = new Set<PeerStream>()
  readonly #dials: Dials
  readonly #limits: ConnectionLimits
  readonly #strikes: Strikes
  /** Revoked members that were told so. */
  readonly #announced = new Set<NodeId>()
  #binding: MeshBinding | null = null
  #handlers: LinkHandlers | null = null
  #keeper: Keeper | null = null
  #nextLinkId = 1
  /** How often a writer's word was not true: each time another one is asked first. */
  #liars = 0
  /** How often a writer beyond the places was dialled: each time another one. */
  #sought = 0
  #isClosing = false

  /** Makes the swarm on an open network. */
  constructor(deps: SwarmDeps) {
    this.#deps = deps
    this.#dials = new Dials(deps.clock)
    this.#limits = new ConnectionLimits(deps.clock)
    this.#strikes = new Strikes(deps.clock)
    this.swarm = new Hyperswarm({
      dht: deps.network.dht,
      keyPair: deps.keyPair,
      maxPeers: MAX_LINKS * 4,
      maxParallel: 16,
      // Only revoked keys are denied here, and only once they were told why: denying unknown ones would ban newcomers for good.
      firewall: (key, payload) => this.#denies(keyToText(key)) || (payload === null && !this.#welcomes(keyToText(key)))
    })
    // Whom the swarm found and must not dial may come by itself all the same.
    this.swarm.on('ban', (info) => info.ban(this.#denies(keyToText(info.publicKey))))
    this.swarm.on('connection', (stream) => this.#connected(stream))
  }

  async start(handlers: LinkHandlers): Promise<void> {
    this.#handlers = handlers
    if (this.#binding === null) throw new NodeError('INTERNAL', 'links start only inside a mesh')
    const { clock, network, networkKind } = this.#deps
    // Announcing may take long where the DHT does not answer; the node is up all the same, and the keeper announces again.
    this.swarm.listen().catch((error: unknown) => this.#deps.telemetry.log('warn', 'announcing failed', { reason: messageOf(error) }))
    this.swarm.join(this.#binding.topic, { server: true, client: true })
    this.#keeper = new Keeper({
      swarm: this.swarm,
      clock,
      networkKind,
      isConnected: (peer) => this.#linkTo(peer) !== null,
      linkCount: () => this.list().length,
      places: this.#places()
    })
    network.onTakeover(() => this.#keeper?.refreshNow())
    this.review()
  }

  /** The node is in a mesh now: gates may judge, and members are looked for. */
  bind(binding: MeshBinding): void {
    this.#binding = binding
    this.review()
  }

  /** The view changed: every gate judges again. */
  review(): void {
    const identity = this.#identity()
    if (identity === null) return
    for (const { gate } of [...this.#streams]) gate?.review(identity)
  }

  async dial(peer: NodeId, timeoutMs: number): Promise<Link> {
    const open = this.#linkTo(peer)
    if (open !== null) return open
    if (!this.#hasPlace()) throw new NodeError('PEER_OFFLINE', 'all places for links of this node are taken', { data: { peer } })
    const key = keyFromText(peer)
    const opened = this.#dials.wait(peer, timeoutMs)
    this.swarm.joinPeer(key)
    try {
      return await opened
    } finally {
      // Else the swarm would dial it for ever.
      if (this.#keeper?.wants(peer) !== true) this.swarm.leavePeer(key)
    }
  }

  want(peers: readonly NodeId[]): void {
    this.#keeper?.want(peers)
  }

  beyond(): readonly NodeId[] {
    return this.#keeper?.beyond() ?? []
  }

  strike(peer: NodeId, strike: Strike, reason: string): void {
    const forMs = this.#strikes.add(peer, strike)
    if (forMs === 0) return
    const { telemetry } = this.#deps
    const words = `kept out for ${formatDuration(forMs)}, the last strike being: ${reason}`
    telemetry.log('warn', 'a peer has too many strikes', { peer, reason: words })
    this.#deps.onRefused({ kind: 'strike', code: 'FORBIDDEN', rule: 'strikes', reason: words, peer })
    for (const link of this.list()) if (link.peer === peer) link.close('too many strikes')
  }

  isKeptOut(peer: NodeId): boolean {
    return this.#strikes.isOut(peer)
  }

  list(): readonly Link[] {
    return [...this.#streams].flatMap((one) => (one.session === null ? [] : [one.session.link]))
  }

  /**
   * Hands a log entry to a connected writer; true when one says that it appended it. Without a link to a writer an own entry goes to
   * all members that have a link here, which hand it to writers: `from` is the one that asks this node to, and gets it not again.
   * `isAgain`: a node said that the entry was appended, and the log does not show it.
   */
  relay(entry: Uint8Array, { isAgain = false, from = null, isForAll = false }: EntryRelayOptions = {}): Promise<boolean> {
    if (isAgain) this.#liars++
    const view = this.#view()
    const linked = [...this.#streams].flatMap(({ peer, session }) => (session === null || peer === from ? [] : [{ peer, session }]))
    const writers = linked.filter(({ peer }) => isWriter(view, peer))
    // For entries of others this node dials nobody: else they could have it dial as often as they like.
    if (writers.length === 0 && from === null) this.#seekWriter(view)
    // One relay is enough, and an entry of another node that went to relays could go in circles.
    const takers = isForAll || (writers.length === 0 && from === null) ? linked : writers
    const first = takers.length === 0 ? 0 : this.#liars % takers.length
    const inTurn = [...takers.slice(first), ...takers.slice(0, first)].map(({ session }) => session.relay)
    return handToAny(inTurn, entry, { clock: this.#deps.clock, atOnce: isAgain || isForAll })
  }

  /** Those for whom there is no place have none either. */
  #seekWriter(view: MembershipView): void {
    const away = this.beyond().filter((peer) => isWriter(view, peer))
    const writer = away[this.#sought++ % Math.max(1, away.length)]
    if (writer !== undefined) this.dial(writer, WRITER_DIAL_MS).catch(() => {})
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#keeper?.close()
    await this.swarm.destroy()
  }

  #connected(stream: NoiseStream): void {
    stream.on('error', () => {})
    stream.setTimeout(STREAM_TIMEOUT_MS)
    if (this.#isClosing) return stream.destroy()
    const peer = keyToText(stream.remotePublicKey)
    if (this.#strikes.isOut(peer)) {
      this.#deps.telemetry.count('strangers_cut', 'strikes')
      return stream.destroy()
    }
    const isMember = isActive(this.#view(), peer)
    const fault = this.#limits.refuses({ peer, isInbound: !stream.isInitiator, isMember, strangers: this.#strangers() })
    if (fault !== null) {
      this.#deps.telemetry.count('strangers_cut', fault)
      return stream.destroy()
    }
    this.#stand({ stream, peer, isMember, guard: null, gate: null, session: null })
  }

  /** A stream stands at the gate. */
  #stand(one: PeerStream): void {
    const { stream } = one
    this.#streams.add(one)
    stream.on('close', () => this.#dropped(one))
    // Before the multiplexer: it must see each frame first.
    one.guard = new FrameGuard(stream, this.#deps.clock, (reason) => this.#broken(one, reason))
    const mux = Protomux.from(stream)
    guardMux(mux, (reason) => this.#broken(one, reason))
    const { software, clock, hash, verify } = this.#deps
    const onPassed = (peerVersion: string, certificate: SignedCertificate): void => this.#passed(one, { mux, peerVersion, certificate })
    const onCut = (code: CutCode, reason: string): void => this.#refused(one, code, reason)
    one.gate = new Gate({ stream, mux, software, clock, hash, verify, onPassed, onCut }, this.#identity())
  }

  #places(): number {
    return Math.min(this.#deps.maxLinks, MAX_LINKS)
  }

  #isFull(): boolean {
    return this.list().filter((link) => !link.closed).length >= this.#places()
  }

  /** Is there a place for another link, or would one be made for it? */
  #hasPlace(): boolean {
    return !this.#isFull() || this.#spare() !== undefined
  }

  #spare(): PeerStream | undefined {
    const link = this.#handlers?.spare() ?? null
    return link === null ? undefined : [...this.#streams].find(({ session }) => session?.link === link)
  }

  /** Sees to a place, now. False: every link is in use. */
  #evict(): boolean {
    if (!this.#isFull()) return true
    const spare = this.#spare()
    if (spare === undefined) return false
    spare.gate?.dismiss(IDLE)
    this.#rest(spare)
    return true
  }

  /** Nobody uses this link, and its place is needed here or there: it ends, and neither end dials the other at once. */
  #rest({ peer, stream, session }: PeerStream): void {
    session?.link.rest()
    this.#keeper?.rest(peer)
    this.#end(stream)
  }

  /** Its last words still go out, then it ends for sure. */
  #end(stream: NoiseStream): void {
    stream.end()
    this.#deps.clock.after(LINGER_MS, () => stream.destroy())
  }

  /** The peer says why this node has no link to it any more, or gets none. */
  #onMessage(refusal: GateRefusal, peer: NodeId): void {
    this.#binding?.identity.onRefused(refusal, peer)
    if (refusal.code !== 'OVERLOADED') return
    this.#keeper?.rest(peer)
    this.#dials.refused(peer, refusal.reason)
    for (const one of this.#streams) if (one.peer === peer && one.session !== null && !one.session.link.closed) this.#rest(one)
  }

  #view(): MembershipView {
    return this.#binding?.identity.view() ?? EMPTY_VIEW
  }

  #denies(peer: NodeId): boolean {
    return this.#announced.has(peer) && isRevoked(this.#view(), peer)
  }

  /** May it be dialled, whoever found it? */
  #welcomes(peer: NodeId): boolean {
    return this.#keeper === null || this.#dials.awaits(peer) || this.#keeper.welcomes(peer)
  }

  #strangers(): number {
    return [...this.#streams].filter((one) => one.session === null && !one.isMember).length
  }

  #identity(): GateIdentity | null {
    if (this.#binding === null) return null
    return {
      ...this.#binding.identity,
      isReady: () => this.#handlers !== null,
      isFull: () => !this.#hasPlace(),
      onRefused: (refusal, peer) => this.#onMessage(refusal, peer)
    }
  }

  #refused({ peer, stream }: PeerStream, code: CutCode, reason: string): void {
    const { telemetry } = this.#deps
    // Only keys that the log names: a revoked admin can make any number of certificates for others.
    if (code === 'REVOKED' && isRevoked(this.#view(), peer)) this.#announced.add(peer)
    if (code === 'OVERLOADED') telemetry.count('strangers_cut', 'full')
    else if (code !== 'LEFT') {
      telemetry.count('strangers_cut', code)
      this.#deps.onRefused({ kind: 'refusal', code, rule: 'gate', reason, peer })
    }
    this.#end(stream)
  }

  #passed(one: PeerStream, shown: ShownAtGate): void {
    const binding = this.#binding
    const handlers = this.#handlers
    if (this.#isClosing || binding === null || handlers === null) return one.stream.destroy()
    // Its place was free when it was judged.
    if (!this.#evict()) {
      one.gate?.dismiss(FULL)
      return this.#end(one.stream)
    }
    try {
      this.#admit(one, shown, { binding, handlers })
    } catch (error) {
      // Half attached it would hold its place for ever.
      this.#broken(one, messageOf(error))
    }
  }

  #admit(one: PeerStream, shown: ShownAtGate, { binding, handlers }: { binding: MeshBinding; handlers: LinkHandlers }): void {
    const { stream, peer } = one
    const { clock, telemetry } = this.#deps
    one.guard?.trust()
    binding.replicate(stream)
    const onMalformed = (reason: string): void => this.#broken(one, reason)
    const onFrame = (link: Link, frame: Uint8Array): void => handlers.onFrame(link, frame)
    const onCredit = (link: Link): void => handlers.onCredit(link)
    const onChannelClosed = (): void => stream.destroy()
    const link = new StreamLink({ id: this.#nextLinkId++, peer, stream, ...shown, onFrame, onCredit, onMalformed, onChannelClosed })
    if (link.closed) return stream.destroy()
    const relay = new EntryRelay({ peer, mux: shown.mux, clock, onMalformed, appendFor: binding.appendFor })
    one.session = { link, relay }
    telemetry.count('links_opened')
    this.#keeper?.connected(peer)
    handlers.onOpen(link)
    this.#dials.opened(link)
    binding.onLink(relay)
  }

  /** The peer broke the protocol: what it sent is lost, so the stream ends at once. */
  #broken({ peer, stream, session }: PeerStream, reason: string): void {
    // One frame may carry thousands of messages, and those behind the first fault are still read: it is on record once.
    if (stream.destroying) return
    const { telemetry } = this.#deps
    telemetry.count('frames_malformed')
    telemetry.log('warn', 'a peer broke the protocol', { peer, reason })
    this.#deps.onRefused({ kind: 'strike', code: 'MALFORMED', rule: 'protocol', reason, peer })
    this.strike(peer, 'fault', reason)
    if (session !== null) return session.link.close(reason)
    telemetry.count('strangers_cut', 'MALFORMED')
    stream.destroy()
  }

  #dropped(one: PeerStream): void {
    this.#streams.delete(one)
    const { session, peer } = one
    if (session === null) return
    this.#deps.telemetry.count('links_closed')
    this.#keeper?.lost(peer)
    const { link } = session
    this.#handlers?.onClose(link, link.closeReason ?? (link.isResting ? IDLE.reason : 'the stream ended'), link.isResting)
  }

  #linkTo(peer: NodeId): Link | null {
    return this.list().find((link) => link.peer === peer && !link.closed) ?? null
  }
}
