import type { NoiseStream } from 'hyperswarm'
import type Protomux from 'protomux'
import c from 'compact-encoding'
import type { Clock } from '../../kit/clock.js'
import type { ErrorCode } from '../../kit/errors.js'
import { keyToText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import type { Hash, Verify } from '../../kit/sign.js'
import { chainOf } from '../../domain/membership/chain.js'
import { judge } from '../../domain/membership/gate.js'
import type { CertificateChain, MembershipView, SignedCertificate } from '../../domain/membership/types.js'
import { decodeGateMessage, encodeGateMessage, GATE_VERSION, meshProof } from './hello.js'
import type { GateMessage } from './hello.js'

/** A stranger has this long to prove its membership, in milliseconds. */
export const GATE_TIMEOUT_MS = 10_000
/** Bytes a stranger may send before it is through. */
const STRANGER_BYTES = 256 * 1024

/** What this node is in its mesh; absent while it pairs. */
export interface GateIdentity {
  readonly meshKey: Uint8Array
  readonly encryptionKey: Uint8Array
  view(): MembershipView
  /** Are the channels behind the gate ready? Until then nobody is let through. */
  isReady(): boolean
  /** Own chain, leaf first; null until the certificate has come. */
  chain(): CertificateChain | null
  /** A peer gave this node its certificate. */
  onGrant(chain: CertificateChain): void
  /** A member told that it refuses this node, and why. A hint, not a proof. */
  onRefused(code: ErrorCode, reason: string, peer: NodeId): void
}

/** What the gate of one stream needs. */
export interface GateParts {
  readonly stream: NoiseStream
  readonly mux: Protomux
  readonly software: string
  readonly clock: Clock
  readonly hash: Hash
  readonly verify: Verify
  /** Both ends are satisfied: replication and channels may be attached. Called at most once. */
  onPassed(peerSoftware: string, certificate: SignedCertificate): void
  /** The stream is to be cut. */
  onCut(code: ErrorCode | 'TIMEOUT' | 'MALFORMED' | 'LEFT', reason: string): void
}

/** The gate of one stream: one hello channel, nothing else, until both ends have proved themselves. */
export interface Gate {
  readonly peer: NodeId
  readonly passed: boolean
  /** The node has a mesh now (after pairing), or its view changed: judge again. */
  review(identity: GateIdentity): void
  /** Tells an admitted peer why it is out, and cuts the stream. */
  expel(code: ErrorCode, reason: string): void
}

/** Opens the hello channel of a fresh stream and judges the peer. */
export function openGate(parts: GateParts, first: GateIdentity | null): Gate {
  const { stream, clock } = parts
  const peer = keyToText(stream.remotePublicKey)
  let identity = first
  let helloSent = false
  let proof: string | null = null
  let software = ''
  let chain: CertificateChain | null = null
  let hasCredentials = false
  let sentCredentials = ''
  let ownVerdict: SignedCertificate | null = null
  let peerVerdict = false
  let done = false

  const timer = clock.after(GATE_TIMEOUT_MS, () => cut('TIMEOUT', 'no proof of membership in time'))
  let bytes = 0
  stream.on('data', countBytes)
  stream.on('close', () => clock.clear(timer))

  const channel = parts.mux.createChannel({
    protocol: 'a2a-node/gate',
    messages: [{ encoding: c.raw, onmessage: onMessage }],
    onclose: () => {
      if (!done) cut('LEFT', 'the peer closed the hello channel')
    }
  })
  const message = channel?.messages[0]
  if (channel === null || message === undefined) cut('LEFT', 'the stream is gone')
  else channel.open()
  sendHello()

  function onMessage(raw: Uint8Array): void {
    // Anything thrown in here would end the process: a handler of a peer's bytes is total.
    try {
      const decoded = decodeGateMessage(raw)
      if (decoded === null) cut('MALFORMED', 'not a message of the gate')
      else handle(decoded)
    } catch (error) {
      cut('MALFORMED', error instanceof Error ? error.message : 'unreadable')
    }
  }

  function handle(one: GateMessage): void {
    if (one.type === 'refused') {
      identity?.onRefused(one.code, one.reason, peer)
      if (done) return
      return cut('LEFT', `the peer refused: ${one.reason}`)
    }
    if (one.type === 'hello') {
      if (one.version !== GATE_VERSION) return refuse('FORBIDDEN', `gate version ${GATE_VERSION} is spoken here, not ${one.version}`)
      proof = one.proof
      software = one.software
    } else if (one.type === 'credentials') {
      hasCredentials = true
      chain = one.chain
      if (one.grant !== null) identity?.onGrant(one.grant)
    } else if (one.type === 'passed') {
      peerVerdict = true
    }
    step()
  }

  /** Everything that may be possible now; safe to call at any time. */
  function step(): void {
    if (done || identity === null || proof === null) return
    if (proof !== expectedProof(identity)) return refuse('FORBIDDEN', 'the peer does not know this mesh')
    sendCredentials(identity)
    if (ownVerdict === null) decide(identity)
    if (ownVerdict !== null && peerVerdict && !done) {
      done = true
      clock.clear(timer)
      stream.off('data', countBytes)
      parts.onPassed(software, ownVerdict)
    }
  }

  function decide(current: GateIdentity): void {
    // Judged only by what the peer presents or the own view shows; before its credentials come, nothing is owed.
    if (!hasCredentials || !current.isReady()) return
    const verdict = judge(current.view(), { remote: peer, chain, now: clock.now(), verify: parts.verify })
    if (verdict.verdict === 'refuse') return refuse(verdict.code, verdict.reason)
    if (verdict.verdict === 'wait') return
    ownVerdict = verdict.certificate
    send({ type: 'passed' })
  }

  function sendHello(): void {
    if (helloSent || identity === null) return
    helloSent = true
    send({ type: 'hello', version: GATE_VERSION, software: parts.software, proof: proofOf(identity, stream.isInitiator) })
  }

  function sendCredentials(current: GateIdentity): void {
    const grant = chainOf(current.view(), peer)
    const own = current.chain()
    // Sent again when something changed: a newcomer's chain, or the admission that this view now shows.
    const state = `${own === null}/${grant === null}`
    if (state === sentCredentials) return
    sentCredentials = state
    send({ type: 'credentials', chain: own, grant })
  }

  function expectedProof(current: GateIdentity): string {
    return proofOf(current, !stream.isInitiator)
  }

  function proofOf(current: GateIdentity, isInitiator: boolean): string {
    const { meshKey, encryptionKey } = current
    return meshProof({ meshKey, encryptionKey, handshakeHash: stream.handshakeHash, isInitiator }, parts.hash)
  }

  function send(one: GateMessage): void {
    message?.send(encodeGateMessage(one))
  }

  function refuse(code: ErrorCode, reason: string): void {
    send({ type: 'refused', code, reason })
    cut(code, reason)
  }

  function cut(code: Parameters<GateParts['onCut']>[0], reason: string): void {
    if (done) return
    done = true
    clock.clear(timer)
    stream.off('data', countBytes)
    parts.onCut(code, reason)
  }

  function countBytes(chunk: Uint8Array): void {
    bytes += chunk.byteLength
    if (bytes > STRANGER_BYTES) cut('MALFORMED', 'a stranger sent too much')
  }

  return {
    peer,
    get passed() {
      return done && ownVerdict !== null && peerVerdict
    },
    review(next) {
      identity = next
      if (done) return
      sendHello()
      step()
    },
    expel(code, reason) {
      send({ type: 'refused', code, reason })
      parts.onCut(code, reason)
    }
  }
}
