import type { NoiseStream } from 'hyperswarm'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Hash, Verify } from '../../../kit/sign.js'
import { formatDuration } from '../../../kit/units.js'
import type { PeerClock } from '../../../domain/membership/clock-skew.js'
import type { FoundCopies } from '../../../domain/membership/running-copies.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import { EMPTY_VIEW } from '../../../domain/membership/view.js'
import type { AuditEvent } from '../../../ports/audit.js'
import type { Link, LinkHandlers, Links, Strike } from '../../../ports/mesh.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { EntryRelay, type EntryRelayOptions } from '../log/entry-relay.js'
import { Dials } from './dials.js'
import { EntrySender } from './entry-sender.js'
import { FULL, type GateIdentity } from './gate.js'
import { GatedStreams, type ShownAtGate } from './gated-streams.js'
import type { GateRefusal } from './hello.js'
import { Keeper } from './keeper.js'
import { StreamLink } from './link.js'
import { IDLE, LinkSlots } from './link-slots.js'
import type { MeshBinding } from '../network/mesh-binding.js'
import type { OpenStreams } from '../pairing/pairing-swarm.js'
import type { StreamTransport } from '../transport/stream-transport.js'
import type { PeerStream } from './peer-stream.js'
import { Strikes } from './strikes.js'

/** Upper bound of links to members, whatever the config says. */
export const MAX_LINKS = 64
/** Dependencies of {@link PeerLinks}. */
export interface PeerLinksDeps {
  readonly transport: StreamTransport
  readonly networkKind: 'public' | 'private' | 'local'
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

/** The links of this node: one for each member whose stream passed the gate. */
export class PeerLinks implements Links, OpenStreams {
  /** See {@link GatedStreams}. */
  readonly clocks = (): readonly PeerClock[] => this.#gated.clocks()
  readonly copies = (): FoundCopies => this.#gated.copies()
  readonly #deps: PeerLinksDeps
  readonly #gated: GatedStreams
  readonly #dials: Dials
  readonly #strikes: Strikes
  readonly #entries: EntrySender
  readonly #slots: LinkSlots
  #binding: MeshBinding | null = null
  #handlers: LinkHandlers | null = null
  #keeper: Keeper | null = null
  #nextLinkId = 1
  #isClosing = false

  constructor(deps: PeerLinksDeps) {
    this.#deps = deps
    const { clock, transport } = deps
    this.#dials = new Dials(clock)
    this.#strikes = new Strikes(clock)
    this.#gated = new GatedStreams({
      ...deps,
      view: () => this.#view(),
      identity: () => this.#identity(),
      isKeptOut: (peer) => this.isKeptOut(peer),
      onPassed: (one, shown) => this.#passed(one, shown),
      onClosed: (one) => this.#closed(one),
      onFault: (peer, reason) => this.strike(peer, 'fault', reason),
      onRefused: (refusal) => deps.onRefused(refusal)
    })
    this.#slots = new LinkSlots(Math.min(deps.maxLinks, MAX_LINKS), {
      streams: () => this.#gated.all(),
      spare: () => this.#handlers?.spare() ?? null,
      rest: (one) => this.#rest(one)
    })
    this.#entries = new EntrySender({
      clock,
      view: () => this.#view(),
      relays: () =>
        this.#gated.all().flatMap(({ peer, session }) => (session === null ? [] : [{ peer, relay: session.relay }])),
      beyond: () => this.beyond(),
      dial: (peer, timeoutMs) => this.dial(peer, timeoutMs)
    })
    // Unknown keys are not denied: a swarm would ban newcomers for good.
    transport.firewall((peer, direction) => {
      const isOpen = direction === 'in' || this.#dials.awaits(peer) || this.#keeper?.welcomes(peer) !== false
      return isOpen && !this.#gated.denies(peer)
    })
    transport.onStream((stream) => this.#gated.add(stream))
  }

  async start(handlers: LinkHandlers): Promise<void> {
    this.#handlers = handlers
    if (this.#binding === null) throw new NodeError('INTERNAL', 'links start only inside a mesh')
    const { clock, transport, networkKind, telemetry } = this.#deps
    // Announcing may take long where the DHT does not answer; the node is up all the same, and the keeper announces
    // again.
    transport
      .listen(this.#binding.topic)
      .catch((error: unknown) => telemetry.log('warn', 'announcing failed', { reason: messageOf(error) }))
    this.#keeper = new Keeper({
      transport,
      clock,
      networkKind,
      isConnected: (peer) => this.#linkTo(peer) !== null,
      linkCount: () => this.list().length,
      places: this.#slots.count
    })
    this.review()
  }

  /** Announces and looks up now, e.g. because the bootstrap node is a new one with empty records. */
  refresh(): void {
    this.#keeper?.refreshNow()
  }

  /** The node is in a mesh now: gates may judge, and members are looked for. */
  bind(binding: MeshBinding): void {
    this.#binding = binding
    this.review()
  }

  /** The view changed: every gate judges again. */
  review(): void {
    const identity = this.#identity()
    if (identity !== null) this.#gated.review(identity)
  }

  async dial(peer: NodeId, timeoutMs: number): Promise<Link> {
    const { transport } = this.#deps
    const open = this.#linkTo(peer)
    // A better path may be there by now. One that is not wanted would be dialled for ever.
    if (open !== null && this.#keeper?.wants(peer) === true) transport.dial(peer)
    if (open !== null) return open
    if (!this.#slots.isFree(peer))
      throw new NodeError('PEER_OFFLINE', 'all places for links of this node are taken', { data: { peer } })
    const opened = this.#dials.wait(peer, timeoutMs)
    transport.dial(peer)
    try {
      return await opened
    } finally {
      // Else the transport would dial it for ever.
      if (this.#keeper?.wants(peer) !== true) transport.undial(peer)
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
    const words = `kept out for ${formatDuration(forMs)}, the last strike being: ${reason}`
    this.#deps.telemetry.log('warn', 'a peer has too many strikes', { peer, reason: words })
    this.#deps.onRefused({ kind: 'strike', code: 'FORBIDDEN', rule: 'strikes', reason: words, peer })
    for (const link of this.list()) if (link.peer === peer) link.close('too many strikes')
  }

  isKeptOut(peer: NodeId): boolean {
    return this.#strikes.isOut(peer)
  }

  list(): readonly Link[] {
    return this.#gated.all().flatMap(({ session }) => (session === null ? [] : [session.link]))
  }

  /** Hands a log entry to a linked writer; see {@link EntrySender.send}. */
  relay(entry: Uint8Array, options: EntryRelayOptions = {}): Promise<boolean> {
    return this.#entries.send(entry, options)
  }

  streams(): Iterable<NoiseStream> {
    return this.#gated.streams()
  }

  onStream(listener: (stream: NoiseStream) => void): () => void {
    return this.#gated.onStream(listener)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#gated.close()
    this.#keeper?.close()
    await this.#deps.transport.close()
  }

  /** Ends an idle link whose slot is needed here or there; neither end dials the other at once. */
  #rest({ peer, stream, session }: PeerStream): void {
    session?.link.rest()
    this.#keeper?.rest(peer)
    this.#gated.end(stream)
  }

  /** The peer says why it ended or refused the link. */
  #onMessage(refusal: GateRefusal, peer: NodeId): void {
    this.#binding?.identity.onRefused(refusal, peer)
    if (refusal.code !== 'OVERLOADED') return
    this.#keeper?.rest(peer)
    this.#dials.refused(peer, refusal.reason)
    for (const one of this.#gated.all())
      if (one.peer === peer && one.session !== null && !one.session.link.closed) this.#rest(one)
  }

  #view(): MembershipView {
    return this.#binding?.identity.view() ?? EMPTY_VIEW
  }

  #identity(): GateIdentity | null {
    if (this.#binding === null) return null
    return {
      ...this.#binding.identity,
      isReady: () => this.#handlers !== null,
      isFull: (peer) => !this.#slots.isFree(peer),
      onRefused: (refusal, peer) => this.#onMessage(refusal, peer)
    }
  }

  #passed(one: PeerStream, shown: ShownAtGate): void {
    const binding = this.#binding
    const handlers = this.#handlers
    if (this.#isClosing || binding === null || handlers === null) return one.stream.destroy()
    // Its slot was free when it was judged.
    if (!this.#slots.free(one.peer)) {
      one.gate?.dismiss(FULL)
      return this.#gated.end(one.stream)
    }
    try {
      this.#admit(one, shown, { binding, handlers })
    } catch (error) {
      // Half attached it would hold its place for ever.
      this.#gated.broken(one, messageOf(error))
    }
  }

  #admit(
    one: PeerStream,
    shown: ShownAtGate,
    { binding, handlers }: { binding: MeshBinding; handlers: LinkHandlers }
  ): void {
    const { stream, peer } = one
    const { clock, telemetry } = this.#deps
    one.guard?.trust()
    binding.replicate(stream)
    const onMalformed = (reason: string): void => this.#gated.broken(one, reason)
    const onFrame = (link: Link, frame: Uint8Array): void => handlers.onFrame(link, frame)
    const onCredit = (link: Link): void => handlers.onCredit(link)
    const onChannelClosed = (): void => stream.destroy()
    const link = new StreamLink({
      id: this.#nextLinkId++,
      peer,
      stream,
      ...shown,
      onFrame,
      onCredit,
      onMalformed,
      onChannelClosed
    })
    if (link.closed) return stream.destroy()
    const relay = new EntryRelay({ peer, mux: shown.mux, clock, onMalformed, appendFor: binding.appendFor })
    one.session = { link, relay }
    telemetry.count('links_opened')
    this.#keeper?.connected(peer)
    handlers.onOpen(link)
    this.#gated.endWorse(peer)
    this.#dials.opened(link)
    binding.onLink(relay)
  }

  #closed({ session, peer }: PeerStream): void {
    if (session === null) return
    const { link } = session
    this.#deps.telemetry.count('links_closed')
    this.#keeper?.lost(peer)
    this.#handlers?.onClose(
      link,
      link.closeReason ?? (link.isResting ? IDLE.reason : 'the stream ended'),
      link.isResting
    )
  }

  #linkTo(peer: NodeId): Link | null {
    return this.list().find((link) => link.peer === peer && !link.closed) ?? null
  }
}
