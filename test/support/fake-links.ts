import { NodeError } from '../../src/kit/errors.js'
import type { NodeId } from '../../src/kit/ids.js'
import { FIRST_CREDIT } from '../../src/domain/channel/credit.js'
import type { SignedCertificate } from '../../src/domain/membership/types.js'
import type { Link, LinkHandlers, Links, Strike } from '../../src/ports/mesh.js'

let lastLinkId = 0

/** Frames at most that a link holds before it asks its sender to wait. */
const HIGH_WATER = 1024

/** One end of a link in memory. Frames arrive in order, in later turns. */
export class FakeLink implements Link {
  readonly id = ++lastLinkId
  readonly path = 'local'
  readonly peerVersion = 'a2a-node/test'
  /** Frames that were sent through this end, also those that never arrived. */
  readonly sent: Uint8Array[] = []
  /** While true nothing is delivered; frames wait. */
  isHeld = false
  closed = false
  credit: number | null = FIRST_CREDIT
  other: FakeLink | null = null
  readonly #net: FakeNet
  readonly #owner: FakeLinks
  readonly #arriving: Uint8Array[] = []
  #isDelivering = false
  #drained: (() => void)[] = []

  constructor(
    net: FakeNet,
    owner: FakeLinks,
    readonly peer: NodeId,
    readonly certificate: SignedCertificate
  ) {
    this.#net = net
    this.#owner = owner
  }

  rttMs(): number | null {
    return 1
  }

  send(frame: Uint8Array): boolean {
    if (this.closed) return true
    this.sent.push(frame)
    this.#net.sent(this, frame)
    this.other?.arrive(frame)
    return (this.other?.waiting ?? 0) < HIGH_WATER
  }

  drained(): Promise<void> {
    if (this.closed || (this.other?.waiting ?? 0) < HIGH_WATER) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  /** Takes effect in a later turn, as a frame would. */
  grant(limit: number): void {
    const { other } = this
    this.#net.later(() => {
      if (other === null || other.closed || other.credit === null) return
      other.credit = limit
      other.#owner.handlers?.onCredit(other)
    })
  }

  close(reason: string): void {
    this.#net.cut(this, reason)
  }

  fault(reason: string): void {
    this.#owner.faults.push({ peer: this.peer, reason })
    this.close(reason)
  }

  /** Frames that have not been delivered. */
  get waiting(): number {
    return this.#arriving.length
  }

  /** A frame of the other end. */
  arrive(frame: Uint8Array): void {
    this.#arriving.push(frame)
    this.deliver()
  }

  /** Delivers what waits, frame by frame. */
  deliver(): void {
    if (this.#isDelivering || this.isHeld) return
    this.#isDelivering = true
    this.#net.later(() => {
      this.#isDelivering = false
      const frame = this.isHeld || this.closed ? undefined : this.#arriving.shift()
      if (frame === undefined) return
      this.#net.arrived(this, frame)
      this.#owner.handlers?.onFrame(this, frame)
      if (this.#arriving.length > 0) this.deliver()
      else this.other?.drain()
    })
  }

  /** Lets those go on who wait for room. */
  drain(): void {
    for (const go of this.#drained.splice(0)) go()
  }

  /** The end of this end. */
  end(reason: string, isRest = false): void {
    if (this.closed) return
    this.closed = true
    this.drain()
    this.#owner.drop(this, reason, isRest)
  }
}

/** The links of one node on a {@link FakeNet}. */
export class FakeLinks implements Links {
  handlers: LinkHandlers | null = null
  wanted: readonly NodeId[] = []
  readonly open: FakeLink[] = []
  /** What else they did. */
  readonly strikes: { readonly peer: NodeId; readonly strike: Strike }[] = []
  /** Peers with too many strikes. */
  readonly keptOut = new Set<NodeId>()
  /** How peers broke the protocol. */
  readonly faults: { readonly peer: NodeId; readonly reason: string }[] = []
  /** Peers that were dialled, in order. */
  readonly dialled: NodeId[] = []
  /** Peers that can be dialled now. */
  readonly reachable = new Set<NodeId>()
  /** Peers for whom there is no place. */
  withoutPlace: readonly NodeId[] = []
  readonly #net: FakeNet

  constructor(
    net: FakeNet,
    readonly nodeId: NodeId,
    readonly certificate: () => SignedCertificate
  ) {
    this.#net = net
  }

  start(handlers: LinkHandlers): Promise<void> {
    this.handlers = handlers
    return Promise.resolve()
  }

  dial(peer: NodeId): Promise<Link> {
    this.dialled.push(peer)
    const known = this.open.find((one) => one.peer === peer)
    if (known !== undefined) return Promise.resolve(known)
    if (this.reachable.has(peer)) return Promise.resolve(this.#net.connect(this.nodeId, peer)[0])
    return Promise.reject(new NodeError('PEER_OFFLINE', 'the peer cannot be reached'))
  }

  want(peers: readonly NodeId[]): void {
    this.wanted = peers
  }

  beyond(): readonly NodeId[] {
    return this.withoutPlace.filter((peer) => !this.open.some((one) => one.peer === peer))
  }

  strike(peer: NodeId, strike: Strike): void {
    this.strikes.push({ peer, strike })
  }

  isKeptOut(peer: NodeId): boolean {
    return this.keptOut.has(peer)
  }

  list(): readonly Link[] {
    return this.open
  }

  close(): Promise<void> {
    for (const link of [...this.open]) link.close('closed')
    return Promise.resolve()
  }

  /** A link has ended. */
  drop(link: FakeLink, reason: string, isRest = false): void {
    this.open.splice(this.open.indexOf(link), 1)
    this.handlers?.onClose(link, reason, isRest)
  }
}

/** Links in memory between the nodes of one process. */
export class FakeNet {
  /** Frames delivered so far. */
  moved = 0
  readonly #nodes = new Map<NodeId, FakeLinks>()

  /** Puts off the delivery of a frame. */
  later(deliver: () => void): void {
    setImmediate(deliver)
  }

  /** A frame leaves this end. */
  sent(_link: FakeLink, _frame: Uint8Array): void {}

  /** A frame is at this end. */
  arrived(_link: FakeLink, _frame: Uint8Array): void {
    this.moved++
  }

  /** The links of a node, which shows this certificate at the gate. */
  linksOf(nodeId: NodeId, certificate: () => SignedCertificate): FakeLinks {
    const links = new FakeLinks(this, nodeId, certificate)
    this.#nodes.set(nodeId, links)
    return links
  }

  /** Opens a link between two nodes that have started: the end of the first, the end of the second. */
  connect(a: NodeId, b: NodeId): [FakeLink, FakeLink] {
    const [first, second] = [this.#get(a), this.#get(b)]
    const ends: [FakeLink, FakeLink] = [
      new FakeLink(this, first, b, second.certificate()),
      new FakeLink(this, second, a, first.certificate())
    ]
    ends[0].other = ends[1]
    ends[1].other = ends[0]
    first.open.push(ends[0])
    second.open.push(ends[1])
    first.handlers?.onOpen(ends[0])
    second.handlers?.onOpen(ends[1])
    return ends
  }

  /** Is there a link between two nodes? */
  isConnected(a: NodeId, b: NodeId): boolean {
    return this.#get(a).open.some((link) => link.peer === b && !link.closed)
  }

  /** Ends a link on both sides; what was under way is lost. */
  cut(link: FakeLink, reason = 'cut'): void {
    link.end(reason)
    link.other?.end(reason)
  }

  /** Ends a link that nobody uses, since its place is needed. */
  rest(link: FakeLink): void {
    link.end('idle', true)
    link.other?.end('idle', true)
  }

  /** Ends every link between two nodes. */
  disconnect(a: NodeId, b: NodeId): void {
    for (const link of this.#get(a).open.filter((one) => one.peer === b)) this.cut(link)
  }

  /** Resolves when no frame moves and no promise is left to run. */
  async idle(): Promise<void> {
    for (let quiet = 0, seen = this.moved; quiet < 5; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.moved !== seen) quiet = 0
      seen = this.moved
    }
  }

  #get(nodeId: NodeId): FakeLinks {
    const links = this.#nodes.get(nodeId)
    if (links === undefined) throw new Error('no such node on this net')
    return links
  }
}
