import Hyperswarm from 'hyperswarm'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { keyFromText, keyToText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import type { Hash, Verify } from '../../kit/sign.js'
import { judge } from '../../domain/membership/gate.js'
import type { SignedCertificate } from '../../domain/membership/types.js'
import type { Link, LinkHandlers, Links } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { openGate } from './gate.js'
import type { Gate, GateIdentity } from './gate.js'
import { startKeeper } from './keeper.js'
import type { Keeper } from './keeper.js'
import { STREAM_TIMEOUT_MS } from './network.js'
import type { Network } from './network.js'
import { openSession } from './session.js'
import type { Session } from './session.js'

/** Streams that have not proved their membership yet, at most. */
export const MAX_STRANGERS = 8
/** Links to members, at most. */
export const MAX_LINKS = 64
/** A cut stream may flush its last words for this long, in milliseconds. */
const LINGER_MS = 250

/** What the swarm needs. */
export interface SwarmParts {
  readonly network: Network
  readonly networkKind: 'public' | 'private' | 'local'
  readonly keyPair: { readonly publicKey: Uint8Array; readonly secretKey: Uint8Array }
  readonly software: string
  readonly clock: Clock
  readonly hash: Hash
  readonly verify: Verify
  readonly telemetry: Telemetry
  /** A stream was refused at the gate: for the audit. */
  onRefused(peer: NodeId, code: string, reason: string): void
}

/** What the links need of the log, once there is one. */
export interface MeshBinding {
  readonly identity: Omit<GateIdentity, 'isReady'>
  readonly topic: Uint8Array
  replicate(stream: NoiseStream): void
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean>
  /** A link opened: waiting log entries may go now. */
  onLink(): void
}

/** The swarm: streams, gates and links of this node. */
export interface MeshLinks extends Links {
  readonly swarm: Hyperswarm
  /** The node is in a mesh now: gates may judge, and members are looked for. */
  bind(binding: MeshBinding): void
  /** The view changed: judge everybody again. */
  review(): void
  /** Hands a log entry to any member; true when one appended it. */
  courier(entry: Uint8Array): Promise<boolean>
}

interface Stream {
  readonly stream: NoiseStream
  readonly peer: NodeId
  gate: Gate | null
  session: Session | null
}

/** Makes the swarm on an open network. */
export function openLinks(parts: SwarmParts): MeshLinks {
  const { clock, telemetry } = parts
  const streams = new Set<Stream>()
  const swarm = new Hyperswarm({
    dht: parts.network.dht,
    keyPair: parts.keyPair,
    maxPeers: MAX_LINKS * 4,
    maxParallel: 16,
    // Only revoked keys are denied here: denying unknown ones would ban newcomers for good.
    firewall: (key) => binding !== null && (binding.identity.view().members.get(keyToText(key))?.revoked ?? null) !== null
  })
  let binding: MeshBinding | null = null
  let handlers: LinkHandlers | null = null
  let keeper: Keeper | null = null
  let nextLinkId = 1
  let closing = false
  const dialing = new Map<NodeId, Set<(link: Link) => void>>()

  swarm.on('connection', (stream) => {
    stream.on('error', () => {})
    stream.setTimeout(STREAM_TIMEOUT_MS)
    const peer = keyToText(stream.remotePublicKey)
    if (closing) return stream.destroy()
    const entry: Stream = { stream, peer, gate: null, session: null }
    const strangers = [...streams].filter((one) => one.session === null).length
    if (strangers >= MAX_STRANGERS) {
      telemetry.count('strangers_cut', 'full')
      return stream.destroy()
    }
    streams.add(entry)
    stream.on('close', () => dropped(entry))
    const mux = Protomux.from(stream)
    entry.gate = openGate(
      {
        stream,
        mux,
        software: parts.software,
        clock,
        hash: parts.hash,
        verify: parts.verify,
        onPassed: (software, certificate) => admitted(entry, { mux, peerVersion: software, certificate }),
        onCut: (code, reason) => refused(entry, code, reason)
      },
      identityNow()
    )
  })

  function identityNow(): GateIdentity | null {
    return binding === null ? null : { ...binding.identity, isReady: () => handlers !== null }
  }

  /** Shows the gates of strangers what changed, and expels members that are out now. */
  function review(): void {
    const identity = identityNow()
    if (identity === null) return
    const view = identity.view()
    for (const one of [...streams]) {
      if (one.session === null) {
        one.gate?.review(identity)
      } else if (view.members.has(one.peer) || view.refusals.has(one.peer)) {
        // A member that this view does not know yet passed by its chain; only an explicit word puts it out.
        const verdict = judge(view, { remote: one.peer, chain: null, now: clock.now(), verify: parts.verify })
        if (verdict.verdict === 'refuse') one.gate?.expel(verdict.code, verdict.reason)
      }
    }
  }

  function refused(entry: Stream, code: ErrorCode | 'TIMEOUT' | 'MALFORMED' | 'LEFT', reason: string): void {
    if (code !== 'LEFT') {
      telemetry.count('strangers_cut', code)
      parts.onRefused(entry.peer, code, reason)
    }
    cut(entry.stream)
  }

  /** Ends a stream so that its last words still go out, then for sure. */
  function cut(stream: NoiseStream): void {
    stream.end()
    clock.after(LINGER_MS, () => stream.destroy())
  }

  function admitted(entry: Stream, shown: { mux: Protomux; peerVersion: string; certificate: SignedCertificate }): void {
    if (binding === null || handlers === null) return entry.stream.destroy()
    if (linkCount() >= MAX_LINKS) return entry.stream.destroy()
    const bound = binding
    bound.replicate(entry.stream)
    const session = openSession({
      id: nextLinkId++,
      peer: entry.peer,
      ...shown,
      stream: entry.stream,
      onFrame: (link, frame) => handlers?.onFrame(link, frame),
      onMalformed: (reason) => {
        telemetry.count('frames_malformed')
        telemetry.log('warn', 'a malformed frame', { peer: entry.peer, reason })
      },
      onChannelClosed: () => entry.stream.destroy(),
      appendFor: (bytes, peer) => bound.appendFor(bytes, peer)
    })
    entry.session = session
    telemetry.count('links_opened')
    keeper?.connected(entry.peer)
    handlers.onOpen(session.link)
    for (const resolve of dialing.get(entry.peer) ?? []) resolve(session.link)
    bound.onLink()
  }

  function dropped(entry: Stream): void {
    streams.delete(entry)
    const session = entry.session
    if (session === null) return
    telemetry.count('links_closed')
    keeper?.lost(entry.peer)
    handlers?.onClose(session.link, 'the stream ended')
  }

  function linkCount(): number {
    let count = 0
    for (const one of streams) if (one.session !== null) count++
    return count
  }

  function linkTo(peer: NodeId): Link | null {
    for (const one of streams) if (one.peer === peer && one.session !== null && !one.session.link.closed) return one.session.link
    return null
  }

  return {
    swarm,
    start: async (next) => {
      handlers = next
      if (binding === null) throw new NodeError('INTERNAL', 'links start only inside a mesh')
      await swarm.listen()
      swarm.join(binding.topic, { server: true, client: true })
      keeper = startKeeper({
        swarm,
        clock,
        networkKind: parts.networkKind,
        isConnected: (peer) => linkTo(peer) !== null,
        linkCount
      })
      parts.network.onTakeover(() => keeper?.refreshNow())
      review()
    },
    bind: (next) => {
      binding = next
      review()
    },
    review,
    dial: (peer, timeoutMs) =>
      new Promise((resolve, reject) => {
        const open = linkTo(peer)
        if (open !== null) return resolve(open)
        const waiters = dialing.get(peer) ?? new Set()
        dialing.set(peer, waiters)
        const timer = clock.after(timeoutMs, () => {
          forget()
          reject(new NodeError('PEER_OFFLINE', 'the peer does not answer', { data: { peer } }))
        })
        function done(link: Link): void {
          forget()
          resolve(link)
        }
        function forget(): void {
          clock.clear(timer)
          waiters.delete(done)
          if (waiters.size === 0) dialing.delete(peer)
        }
        waiters.add(done)
        swarm.joinPeer(keyFromText(peer))
      }),
    want: (peers) => keeper?.want(peers),
    list: () => [...streams].flatMap((one) => (one.session === null ? [] : [one.session.link])),
    courier: async (entry) => {
      for (const one of [...streams]) {
        if (one.session !== null && (await one.session.courier(entry))) return true
      }
      return false
    },
    close: async () => {
      closing = true
      keeper?.close()
      await swarm.destroy()
    }
  }
}
