import type { NoiseStream } from 'hyperswarm'
import type { Channel } from 'protomux'
import type Protomux from 'protomux'
import c from 'compact-encoding'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { keyToText } from '../../../kit/ids.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Hash, Verify } from '../../../kit/sign.js'
import { chainOf } from '../../../domain/membership/chain.js'
import { MAX_FRAME_BYTES as CHANNEL_FRAME_BYTES } from '../../../domain/channel/frames.js'
import { type GateVerdict, judge } from '../../../domain/membership/gate.js'
import type { ProcessInfo } from '../../../domain/membership/running-copies.js'
import type { CertificateChain, MembershipView, SignedCertificate } from '../../../domain/membership/types.js'
import { decodeGateMessage, encodeGateMessage, GATE_OPENING, GATE_VERSION, meshProof } from './hello.js'
import type { GateMessage, GateOpening, GateRefusal } from './hello.js'

/** A stranger has this long to prove its membership, in milliseconds. */
export const GATE_TIMEOUT_MS = 10_000

/** The refusal of a member when there is no slot for it. */
export const FULL: GateRefusal = { code: 'OVERLOADED', reason: 'this node has as many links as it may' }

const UNKNOWN_PROCESS: ProcessInfo = { process: null, isDoubled: false }

/** This node's identity in its mesh; absent while it pairs. */
export interface GateIdentity {
  readonly meshKey: Uint8Array
  readonly encryptionKey: Uint8Array
  view(): MembershipView
  /** Are the channels behind the gate ready? Until then no peer passes. */
  isReady(): boolean
  /** Are all slots taken for a peer? Then members are refused as well. */
  isFull(peer: NodeId): boolean
  /** Own chain, leaf first; null until the certificate arrives. */
  chain(): CertificateChain | null
  /** A peer that knows the mesh gave this node its certificate; the chain is not checked yet. */
  onGrant(chain: CertificateChain): void
  /** A member refuses this node. */
  onRefused(refusal: GateRefusal, peer: NodeId): void
}

/** Why a stream is cut: an error's code, or a fault before any verdict. */
export type CutCode = ErrorCode | 'TIMEOUT' | 'MALFORMED' | 'LEFT'

/** Dependencies of {@link Gate}. */
export interface GateDeps {
  readonly stream: NoiseStream
  readonly mux: Protomux
  readonly software: string
  readonly clock: Clock
  readonly hash: Hash
  readonly verify: Verify
  /** For the peer: the process of this node. Absent: as an older build, which says nothing of it. */
  readonly processInfo?: ProcessInfo
  /** Both ends are satisfied: replication and channels may be attached. Called at most once. */
  onPassed(peerSoftware: string, certificate: SignedCertificate): void
  /** The stream is to be cut. */
  onCut(code: CutCode, reason: string): void
}

/** The gate of one stream: one hello channel, nothing else, until both ends have proved themselves. */
export class Gate {
  /** The key of the stream's other end. */
  readonly peer: NodeId
  readonly #deps: GateDeps
  readonly #timer: Timer
  #channel: Channel | null = null
  #identity: GateIdentity | null
  #helloSent = false
  #credentialsSent = ''
  /** Messages of the peer. */
  #proof: string | null = null
  #software = ''
  #hasCredentials = false
  #chain: CertificateChain | null = null
  #grant: CertificateChain | null = null
  /** Each end's verdict on the other. */
  #ownVerdict: SignedCertificate | null = null
  #peerVerdict = false
  /** The peer's clock less the monotonic one; null when the peer did not tell its time. */
  #peerClockMs: number | null = null
  #process: ProcessInfo = UNKNOWN_PROCESS
  #isDone = false
  #isPassed = false
  #isCut = false

  /** Opens the hello channel of a fresh stream. `identity`: null while this node is in no mesh. */
  constructor(deps: GateDeps, identity: GateIdentity | null) {
    const { stream, clock } = deps
    this.peer = keyToText(stream.remotePublicKey)
    this.#deps = deps
    this.#identity = identity
    this.#timer = clock.after(GATE_TIMEOUT_MS, () => this.#cut('TIMEOUT', 'no proof of membership in time'))
    stream.on('close', () => clock.clear(this.#timer))
    this.#open()
  }

  /** The node has a mesh now (after pairing), or its view changed: judges again, also a peer that had passed. */
  review(identity: GateIdentity): void {
    this.#identity = identity
    if (this.#isPassed) return this.#reviewMember(identity)
    if (this.#isDone) return
    this.#sendHello()
    this.#step()
  }

  /**
   * Milliseconds by which the clock of this machine is ahead of the peer's, also after this clock was set. Null when
   * the peer did not tell its time. The peer may lie, and its message took time: the value is for people.
   */
  aheadMs(): number | null {
    const { clock } = this.#deps
    return this.#peerClockMs === null ? null : clock.now() - clock.monotonic() - this.#peerClockMs
  }

  /** The process of the peer, by its opening. */
  get process(): ProcessInfo {
    return this.#process
  }

  /** Tells a peer that has passed why its stream ends; the caller ends the stream. */
  dismiss(refusal: GateRefusal): void {
    this.#isCut = true
    this.#sendRefusal(refusal)
  }

  #open(): void {
    this.#channel = this.#deps.mux.createChannel({
      protocol: 'a2a-node/gate',
      handshake: GATE_OPENING,
      onopen: (opening) => this.#opened(opening),
      messages: [{ encoding: c.raw, onmessage: (raw) => this.#received(raw) }],
      onclose: () => this.#cut('LEFT', 'the peer closed the hello channel')
    })
    if (this.#channel === null) return this.#cut('LEFT', 'the stream is gone')
    const { clock, processInfo = UNKNOWN_PROCESS } = this.#deps
    this.#channel.open({ time: clock.now(), ...processInfo })
    this.#sendHello()
  }

  #opened(opening: GateOpening): void {
    const { time } = opening
    this.#process = opening
    if (time !== null) this.#peerClockMs = time - this.#deps.clock.monotonic()
  }

  #received(raw: Uint8Array): void {
    // A cut stream lingers for its last messages; later messages of the peer are ignored.
    if (this.#isCut) return
    // Anything thrown in here would end the process: a handler of a peer's bytes is total.
    try {
      const message = decodeGateMessage(raw)
      if (message === null) this.#cut('MALFORMED', 'not a message of the gate')
      else this.#handle(message)
    } catch (error) {
      this.#cut('MALFORMED', messageOf(error))
    }
  }

  #handle(message: GateMessage): void {
    if (message.type === 'refused') return this.#refused(message)
    // A peer that has passed stays judged by its earlier messages.
    if (this.#isDone) return
    if (message.type === 'hello') {
      const { version, maxFrameBytes } = message
      if (version !== GATE_VERSION)
        return this.#refuse({
          code: 'FORBIDDEN',
          reason: `gate version ${GATE_VERSION} is spoken here, not ${version}`
        })
      if (maxFrameBytes < CHANNEL_FRAME_BYTES)
        return this.#refuse({ code: 'FORBIDDEN', reason: `frames of ${CHANNEL_FRAME_BYTES} bytes must be taken` })
      this.#proof = message.proof
      this.#software = message.software
    } else if (message.type === 'credentials') {
      this.#hasCredentials = true
      if (this.#ownVerdict === null) this.#chain = message.chain
      this.#grant = message.grant
    } else {
      this.#peerVerdict = true
    }
    this.#step()
  }

  #refused(refusal: GateRefusal): void {
    const identity = this.#identity
    // Only a peer that proved to know this mesh counts; a stranger's refusal could make a newcomer give up.
    if (identity !== null && this.#proof === this.#proofOf(identity, !this.#deps.stream.isInitiator))
      identity.onRefused(refusal, this.peer)
    this.#cut('LEFT', `the peer refused: ${refusal.reason}`)
  }

  /** Everything that may be possible now; safe to call at any time. */
  #step(): void {
    const identity = this.#identity
    if (this.#isDone || identity === null || this.#proof === null) return
    if (this.#proof !== this.#proofOf(identity, !this.#deps.stream.isInitiator)) {
      return this.#refuse({ code: 'FORBIDDEN', reason: 'the peer does not know this mesh' })
    }
    this.#takeGrant(identity)
    this.#sendCredentials(identity)
    if (this.#ownVerdict === null) this.#decide(identity)
    if (this.#ownVerdict === null || !this.#peerVerdict || !this.#end()) return
    this.#isPassed = true
    this.#deps.onPassed(this.#software, this.#ownVerdict)
  }

  /** Only of a peer that proved to know the mesh. */
  #takeGrant(identity: GateIdentity): void {
    const grant = this.#grant
    this.#grant = null
    if (grant !== null) identity.onGrant(grant)
  }

  #decide(identity: GateIdentity): void {
    // Judges only by the peer's credentials and the own view; no verdict is due before its credentials come.
    if (!this.#hasCredentials || !identity.isReady()) return
    const verdict = this.#judge(identity)
    if (verdict.verdict === 'refuse') return this.#refuse(verdict)
    if (verdict.verdict === 'wait') return
    if (identity.isFull(this.peer)) return this.#refuse(FULL)
    this.#ownVerdict = verdict.certificate
    this.#send({ type: 'passed' })
  }

  /** The chain with which it passed still counts: a peer that this view does not know yet goes when neither holds. */
  #reviewMember(identity: GateIdentity): void {
    const verdict = this.#judge(identity)
    if (verdict.verdict === 'pass') return
    const refusal: GateRefusal = verdict.verdict === 'refuse' ? verdict : { code: 'FORBIDDEN', reason: verdict.reason }
    this.#isPassed = false
    this.#isCut = true
    this.#sendRefusal(refusal)
    this.#deps.onCut(refusal.code, refusal.reason)
  }

  #judge(identity: GateIdentity): GateVerdict {
    const { clock, verify } = this.#deps
    return judge(identity.view(), { remote: this.peer, chain: this.#chain, now: clock.now(), verify })
  }

  #sendHello(): void {
    if (this.#helloSent || this.#identity === null) return
    this.#helloSent = true
    const proof = this.#proofOf(this.#identity, this.#deps.stream.isInitiator)
    this.#send({
      type: 'hello',
      version: GATE_VERSION,
      maxFrameBytes: CHANNEL_FRAME_BYTES,
      software: this.#deps.software,
      proof
    })
  }

  #sendCredentials(identity: GateIdentity): void {
    const grant = chainOf(identity.view(), this.peer)
    const chain = identity.chain()
    // Sent again when something changed: a newcomer's chain, or the admission that this view now shows.
    const state = `${chain === null}/${grant === null}`
    if (state === this.#credentialsSent) return
    this.#credentialsSent = state
    this.#send({ type: 'credentials', chain, grant })
  }

  #proofOf({ meshKey, encryptionKey }: GateIdentity, isInitiator: boolean): string {
    const { stream, hash } = this.#deps
    return meshProof({ meshKey, encryptionKey, handshakeHash: stream.handshakeHash, isInitiator }, hash)
  }

  #send(message: GateMessage): void {
    this.#channel?.messages[0]?.send(encodeGateMessage(message))
  }

  #refuse(refusal: GateRefusal): void {
    this.#sendRefusal(refusal)
    this.#cut(refusal.code, refusal.reason)
  }

  #sendRefusal({ code, reason, inviteId }: GateRefusal): void {
    this.#send({ type: 'refused', code, reason, ...(inviteId === undefined ? {} : { inviteId }) })
  }

  #cut(code: CutCode, reason: string): void {
    if (!this.#end()) return
    this.#isCut = true
    this.#deps.onCut(code, reason)
  }

  /** Stops judging. False when it had stopped already. */
  #end(): boolean {
    if (this.#isDone) return false
    this.#isDone = true
    this.#deps.clock.clear(this.#timer)
    return true
  }
}
