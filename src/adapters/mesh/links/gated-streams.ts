import { randomBytes } from 'node:crypto'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { Clock } from '../../../kit/clock.js'
import { keyToText } from '../../../kit/ids.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Hash, Verify } from '../../../kit/sign.js'
import type { PeerClock } from '../../../domain/membership/clock-skew.js'
import { type FoundCopies, RunningCopies } from '../../../domain/membership/running-copies.js'
import type { MembershipView, SignedCertificate } from '../../../domain/membership/types.js'
import { isActive, isRevoked } from '../../../domain/membership/view.js'
import type { AuditEvent } from '../../../ports/audit.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { STREAM_TIMEOUT_MS } from '../network/network.js'
import type { OpenStreams } from '../pairing/pairing-swarm.js'
import { rankOf } from '../transport/stream-transport.js'
import { ConnectionLimits } from './connection-limits.js'
import { FrameGuard } from './frame-guard.js'
import { Gate } from './gate.js'
import type { CutCode, GateIdentity } from './gate.js'
import { guardMux } from './guarded-mux.js'
import type { PeerStream } from './peer-stream.js'

/** Milliseconds that a cut stream may take to flush its output. */
const LINGER_MS = 250
/** The same for one that a better one replaces: messages are on their way in it. */
const REPLACED_LINGER_MS = 1000

/** A peer's data from its gate, and the multiplexer of its stream. */
export interface ShownAtGate {
  readonly mux: Protomux
  readonly peerVersion: string
  readonly certificate: SignedCertificate
}

/** Dependencies of {@link GatedStreams}. */
export interface GatedStreamsDeps {
  readonly software: string
  readonly clock: Clock
  readonly hash: Hash
  readonly verify: Verify
  readonly telemetry: Telemetry
  view(): MembershipView
  /** This node at its gates; null before it is in a mesh. */
  identity(): GateIdentity | null
  isKeptOut(peer: NodeId): boolean
  /** Both ends of a stream proved their membership. */
  onPassed(one: PeerStream, shown: ShownAtGate): void
  onClosed(one: PeerStream): void
  /** A peer broke the protocol. The stream is destroyed, or its link closed, afterwards. */
  onFault(peer: NodeId, reason: string): void
  /** For the audit. */
  onRefused(refusal: AuditEvent): void
}

/** Every open stream, from its first byte on: limits, guards and the gate, behind which links begin. */
export class GatedStreams implements OpenStreams {
  readonly #deps: GatedStreamsDeps
  readonly #limits: ConnectionLimits
  readonly #all = new Set<PeerStream>()
  /** Revoked members that were notified of it. */
  readonly #announced = new Set<NodeId>()
  readonly #copies = new RunningCopies()
  /** Names this process for others: a copy of the home has another one. */
  readonly #process = randomBytes(8).toString('hex')
  readonly #listeners = new Set<(stream: NoiseStream) => void>()
  #isClosed = false

  constructor(deps: GatedStreamsDeps) {
    this.#deps = deps
    this.#limits = new ConnectionLimits(deps.clock)
  }

  all(): readonly PeerStream[] {
    return [...this.#all]
  }

  streams(): Iterable<NoiseStream> {
    return this.all().map(({ stream }) => stream)
  }

  /**
   * Clocks of the linked members; of all peers while none is linked, as for a newcomer. Peers without a measurement are
   * left out.
   */
  clocks(): readonly PeerClock[] {
    const all = this.all()
    const linked = all.filter(({ session }) => session !== null)
    return (linked.length > 0 ? linked : all).flatMap(({ peer, gate }) => {
      const aheadMs = gate?.aheadMs() ?? null
      return aheadMs === null ? [] : [{ peer, aheadMs }]
    })
  }

  /** Members whose key two running processes use. */
  copies(): FoundCopies {
    return this.#copies.found(this.#deps.clock.monotonic())
  }

  onStream(listener: (stream: NoiseStream) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The view or this node's part in it changed: every gate judges again. */
  review(identity: GateIdentity): void {
    for (const { gate } of this.all()) gate?.review(identity)
  }

  /** Is every stream of the peer to be denied? Only for revoked keys, and only after they were told the reason. */
  denies(peer: NodeId): boolean {
    return this.#announced.has(peer) && isRevoked(this.#deps.view(), peer)
  }

  /** Accepts no stream any more. Open ones end with their transport. */
  close(): void {
    this.#isClosed = true
  }

  /** A transport opened a stream. */
  add(stream: NoiseStream): void {
    stream.on('error', () => {})
    if (this.#isClosed) return stream.destroy()
    stream.setTimeout(STREAM_TIMEOUT_MS)
    const peer = keyToText(stream.remotePublicKey)
    const isMember = isActive(this.#deps.view(), peer)
    const fault = this.#deps.isKeptOut(peer)
      ? 'strikes'
      : this.#limits.refuses({ peer, isInbound: !stream.isInitiator, isMember, strangers: this.#strangers() })
    if (fault !== null) {
      this.#deps.telemetry.count('strangers_cut', fault)
      return stream.destroy()
    }
    this.#toGate({ stream, peer, isMember, guard: null, gate: null, session: null })
  }

  /** Ends the stream after its output is sent, or after a while. */
  end(stream: NoiseStream, lingerMs = LINGER_MS): void {
    stream.end()
    this.#deps.clock.after(lingerMs, () => stream.destroy())
  }

  /** A link to the peer opened: those of worse paths than the best end, once their output is sent. */
  endWorse(peer: NodeId): void {
    const open = this.all().flatMap(({ peer: other, stream, session }) =>
      other === peer && session?.link.closed === false ? [{ stream, link: session.link }] : []
    )
    const best = Math.min(...open.map(({ link }) => rankOf(link.path)))
    for (const { stream, link } of open.filter((one) => rankOf(one.link.path) > best)) {
      // Else it would write further messages into the ended stream, where they are lost.
      link.retire()
      this.end(stream, REPLACED_LINGER_MS)
    }
  }

  /** The peer broke the protocol: its data is lost, so the stream ends at once. */
  broken({ peer, stream, session }: PeerStream, reason: string): void {
    // One frame may carry thousands of messages, and those behind the first fault are still read: it is recorded once.
    if (stream.destroying) return
    const { telemetry } = this.#deps
    telemetry.count('frames_malformed')
    telemetry.log('warn', 'a peer broke the protocol', { peer, reason })
    this.#deps.onRefused({ kind: 'strike', code: 'MALFORMED', rule: 'protocol', reason, peer })
    this.#deps.onFault(peer, reason)
    if (session !== null) return session.link.close(reason)
    telemetry.count('strangers_cut', 'MALFORMED')
    stream.destroy()
  }

  #toGate(one: PeerStream): void {
    const { stream } = one
    this.#all.add(one)
    stream.on('close', () => {
      this.#all.delete(one)
      this.#deps.onClosed(one)
    })
    // Before the multiplexer: it must see each frame first.
    one.guard = new FrameGuard(stream, this.#deps.clock, (reason) => this.broken(one, reason))
    const mux = Protomux.from(stream)
    guardMux(mux, (reason) => this.broken(one, reason))
    const { software, clock, hash, verify } = this.#deps
    const { peer } = one
    const openedAt = clock.monotonic()
    const onPassed = (peerVersion: string, certificate: SignedCertificate): void => {
      if (one.gate !== null) this.#copies.passed({ peer, ...one.gate.process, openedAt, now: clock.monotonic() })
      this.#deps.onPassed(one, { mux, peerVersion, certificate })
    }
    const processInfo = { process: this.#process, isDoubled: this.#copies.isDoubled(peer, openedAt) }
    const onCut = (code: CutCode, reason: string): void => this.#refused(one, code, reason)
    one.gate = new Gate(
      { stream, mux, software, clock, hash, verify, processInfo, onPassed, onCut },
      this.#deps.identity()
    )
    for (const listener of this.#listeners) listener(stream)
  }

  #strangers(): number {
    return this.all().filter((one) => one.session === null && !one.isMember).length
  }

  #refused({ peer, stream }: PeerStream, code: CutCode, reason: string): void {
    const { telemetry, view, onRefused } = this.#deps
    // Only keys that the log names: a revoked admin can make any number of certificates for others.
    if (code === 'REVOKED' && isRevoked(view(), peer)) this.#announced.add(peer)
    if (code === 'OVERLOADED') telemetry.count('strangers_cut', 'full')
    else if (code !== 'LEFT') {
      telemetry.count('strangers_cut', code)
      onRefused({ kind: 'refusal', code, rule: 'gate', reason, peer })
    }
    this.end(stream)
  }
}
