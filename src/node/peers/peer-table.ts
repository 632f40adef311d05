import type { Clock, Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import { formatDuration } from '../../kit/units.js'
import type { NodeId } from '../../kit/ids.js'
import type { ChannelMessage } from '../../domain/channel/frames.js'
import { type LinkUse, spareLink } from '../../domain/membership/neighbours.js'
import type { Certificate, MemberRecord, MembershipView } from '../../domain/membership/types.js'
import { activeMembers } from '../../domain/membership/view.js'
import type { Link, Links, MemberLog } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { ChannelState } from '../../domain/channel/machine.js'
import type { LinkChannel } from './link-channel.js'
import { CreditShares } from './credit-shares.js'
import { PeerSession } from './peer-session.js'
import { SendBudget } from './send-budget.js'

/** Time limit of a dial on demand, in milliseconds. */
const DIAL_TIMEOUT_MS = 2500
/** Time limit of one ping, in milliseconds. */
const PING_TIMEOUT_MS = 5000

/** A member without a use of this node for this long counts as away for the shares of others, in milliseconds. */
const ALONE_MS = 1000

/** Dependencies of {@link PeerTable}. */
export interface PeerTableDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly links: Links
  readonly log: MemberLog
  readonly nodeId: NodeId
  /** The longest time of a channel without a link, in milliseconds. */
  readonly giveUpMs: number
}

/** Events of peers for the node. */
export interface PeerHandlers {
  /** The first link to a peer without one. */
  onOnline(peer: NodeId): void
  /** A further link to a connected peer: the same process, or one that has just restarted. */
  onRelinked(peer: NodeId): void
  /** One of its links closed, and it has another. */
  onLinkLost(peer: NodeId): void
  /** Its last link closed. `isRest`: the link was unused and made room for another. */
  onOffline(peer: NodeId, isRest: boolean): void
  /** True when work with the peer is under way. */
  isInUse(peer: NodeId): boolean
  /** It did not come back in time: the channel is closed, and `lost` waiting messages are lost. */
  onGivenUp(peer: NodeId, lost: number): void
  /** Takes a message. Returns the fault of a message that no honest peer sends; null for none. */
  onMessage(peer: NodeId, message: ChannelMessage): string | null
}

/** The connected peers: a table of live links, and the way to send to each. `online` means connected, nothing else. */
export class PeerTable {
  /** Counts the bytes of waiting messages. */
  readonly budget = new SendBudget()
  readonly #deps: PeerTableDeps
  readonly #shares: CreditShares
  readonly #lines = new Map<NodeId, PeerSession>()
  readonly #lastSeen = new Map<NodeId, number>()
  /** Open pings, by peer and nonce. */
  readonly #pings = new Map<string, (at: number) => void>()
  #handlers: PeerHandlers | null = null
  #nextNonce = 1
  /** Monotonic milliseconds. */
  #usedHereAt = Number.NEGATIVE_INFINITY
  #generation = 0
  #stop: () => void = () => {}

  constructor(deps: PeerTableDeps) {
    this.#deps = deps
    this.#shares = new CreditShares(deps.clock)
  }

  /** Opens the links and starts to look for every member. */
  async start(handlers: PeerHandlers): Promise<void> {
    this.#handlers = handlers
    const { links, log } = this.#deps
    await links.start({
      onOpen: (link) => this.#opened(link),
      onFrame: (link, frame) => this.#frame(link, frame),
      onCredit: (link) => this.#lines.get(link.peer)?.over(link)?.onCredit(),
      onClose: (link, _reason, isRest) => this.#closed(link, isRest),
      spare: () => this.#spare()
    })
    this.#stop = log.onChange((view) => this.#want(view))
    this.#want(log.view())
  }

  /** Stops looking for members. The owner of the links closes them. */
  stop(): void {
    this.#stop()
    for (const [peer, line] of this.#lines) if (!this.isOnline(peer)) line.close('this node stopped')
  }

  /** True with a live link. */
  isOnline(peer: NodeId): boolean {
    return this.#newest(peer) !== null
  }

  /** Peers with a live link. */
  online(): NodeId[] {
    return [...this.#lines.keys()].filter((peer) => this.isOnline(peer))
  }

  /** Increases whenever a link opens or closes. */
  get generation(): number {
    return this.#generation
  }

  /** The newest link to a peer, or null. */
  link(peer: NodeId): Link | null {
    return this.#newest(peer)?.link ?? null
  }

  /** The state of the channel to a peer, in monotonic times; null when it never opened, or closed since. */
  channel(peer: NodeId): ChannelState | null {
    return this.#lines.get(peer)?.state ?? null
  }

  /** When the peer last had a link, now for a connected one; null for none since this node started. */
  lastSeenAt(peer: NodeId): number | null {
    return this.isOnline(peer) ? this.#deps.clock.now() : (this.#lastSeen.get(peer) ?? null)
  }

  /** The certificate in force: the view's, else the one of the peer's handshake; null for strangers. */
  certificate(peer: NodeId): Certificate | null {
    const member: MemberRecord | undefined = this.#deps.log.view().members.get(peer)
    if (member !== undefined) return member.revoked === null ? member.certificate.body : null
    return this.link(peer)?.certificate.body ?? null
  }

  /** Sends over the live link. @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED. */
  send(peer: NodeId, message: ChannelMessage): void {
    const channel = this.#newest(peer)
    if (channel === null) throw new NodeError('PEER_OFFLINE', 'the peer is not connected', { data: { peer } })
    channel.send(message)
    if (isUse(message)) this.#lines.get(peer)?.used()
  }

  /** Opens a link if there is none. @throws NodeError PEER_OFFLINE. */
  async reach(peer: NodeId): Promise<void> {
    if (!this.isOnline(peer)) await this.#deps.links.dial(peer, DIAL_TIMEOUT_MS)
  }

  /** Notes a use of the node by a local caller. */
  usedHere(): void {
    this.#usedHereAt = this.#deps.clock.monotonic()
  }

  /** True when only this peer used the node in the last second. */
  isAlone(peer: NodeId): boolean {
    const since = this.#deps.clock.monotonic() - ALONE_MS
    return (
      this.#usedHereAt <= since && [...this.#lines].every(([other, { usedAt }]) => other === peer || usedAt <= since)
    )
  }

  /**
   * One round trip through the peer's node, in milliseconds. `timeoutMs`: for a missing link and the answer together;
   * default 5,000.
   * @throws NodeError PEER_OFFLINE, TIMEOUT.
   */
  async ping(peer: NodeId, timeoutMs = PING_TIMEOUT_MS): Promise<number> {
    const { clock, links } = this.#deps
    const until = clock.monotonic() + timeoutMs
    if (!this.isOnline(peer)) await links.dial(peer, Math.min(DIAL_TIMEOUT_MS, timeoutMs))
    const channel = this.#newest(peer)
    if (channel === null) throw new NodeError('PEER_OFFLINE', 'the peer is not connected', { data: { peer } })
    const nonce = this.#nextNonce++
    const key = pingKey(peer, nonce)
    const from = clock.monotonic()
    return new Promise((resolve, reject) => {
      const timer: Timer = clock.after(Math.max(1, until - from), () => {
        this.#pings.delete(key)
        reject(
          new NodeError('TIMEOUT', `no answer to the ping within ${formatDuration(Math.ceil(timeoutMs))}`, {
            data: { timeoutMs }
          })
        )
      })
      this.#pings.set(key, (at) => {
        clock.clear(timer)
        this.#pings.delete(key)
        resolve(at - from)
      })
      channel.sendNow({ kind: 'ping', nonce })
    })
  }

  #want(view: MembershipView): void {
    this.#deps.links.want(activeMembers(view).filter((id) => id !== this.#deps.nodeId))
  }

  #newest(peer: NodeId): LinkChannel | null {
    return this.#lines.get(peer)?.newest ?? null
  }

  #opened(link: Link): void {
    this.#generation++
    const { peer } = link
    const line = this.#lines.get(peer) ?? this.#line(peer)
    this.#lines.set(peer, line)
    if (line.opened(link)) this.#handlers?.onOnline(peer)
    else this.#handlers?.onRelinked(peer)
  }

  #line(peer: NodeId): PeerSession {
    const { clock, telemetry, giveUpMs } = this.#deps
    return new PeerSession({
      clock,
      telemetry,
      giveUpMs,
      budget: this.budget.peer(),
      isBusy: () => !this.isAlone(peer),
      askCredit: (asker) => this.#shares.ask({ peer, ...asker }),
      onClosed: (lost) => {
        this.#lines.delete(peer)
        this.#handlers?.onGivenUp(peer, lost)
      }
    })
  }

  #closed(link: Link, isRest: boolean): void {
    const { peer } = link
    const wasLast = this.#lines.get(peer)?.closed(link) ?? null
    if (wasLast === null) return
    this.#generation++
    this.#lastSeen.set(peer, this.#deps.clock.now())
    if (!wasLast) return this.#handlers?.onLinkLost(peer)
    this.#handlers?.onOffline(peer, isRest)
    // The peer could not know of the use, and no other part looks for it now.
    if (isRest && this.#isInUse(peer)) this.reach(peer).catch(() => {})
  }

  /** The idle link to close for another one, or null; closing links do not count. */
  #spare(): Link | null {
    const links: LinkUse[] = []
    for (const [peer, line] of this.#lines)
      if (line.newest?.link.closed === false)
        links.push({ peer, usedAt: line.usedAt, isBusy: () => this.#isInUse(peer) })
    const spare = spareLink(links, this.#deps.clock.monotonic())
    return spare === null ? null : this.link(spare)
  }

  #isInUse(peer: NodeId): boolean {
    const isPinged = [...this.#pings.keys()].some((key) => key.startsWith(`${peer}/`))
    return isPinged || this.#lines.get(peer)?.isBusy === true || this.#handlers?.isInUse(peer) === true
  }

  #frame(link: Link, frame: Uint8Array): void {
    const channel = this.#lines.get(link.peer)?.over(link)
    const message = channel?.receive(frame) ?? null
    if (message === null || isUse(message)) this.#lines.get(link.peer)?.used()
    if (channel === undefined || message === null) return
    if (message.kind === 'ping') return channel.sendNow({ kind: 'pong', nonce: message.nonce })
    if (message.kind === 'pong')
      return this.#pings.get(pingKey(link.peer, message.nonce))?.(this.#deps.clock.monotonic())
    const fault = this.#handlers?.onMessage(link.peer, message) ?? null
    if (fault !== null) link.fault(fault)
  }
}

/** Cards, searches and heartbeats keep no link; the open exchange behind a heartbeat does. */
function isUse({ kind }: ChannelMessage): boolean {
  return kind === 'envelope' || kind === 'reliable' || kind === 'relayed' || kind === 'call'
}

/** A peer answers its own pings only. */
function pingKey(peer: NodeId, nonce: number): string {
  return `${peer}/${nonce}`
}
