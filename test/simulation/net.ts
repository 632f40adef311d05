import { decodeControl, type ControlBody } from '../../src/domain/channel/control.js'
import { FRAME, FRESH_READER, readFrame } from '../../src/domain/channel/frames.js'
import type { Clock } from '../../src/kit/clock.js'
import type { NodeId } from '../../src/kit/ids.js'
import type { SignedCertificate } from '../../src/domain/membership/types.js'
import { type FakeLink, type FakeLinks, FakeNet } from '../support/fake-links.js'
import type { Random } from './random.js'

/** What a net tells of. */
export interface NetWitness {
  onFrame(link: FakeLink, frame: Uint8Array): void
  /** A node says what it has of lanes: `link` is its end. */
  onAck(link: FakeLink, lanes: ControlBody<'ack'>['lanes']): void
}

/** A net whose frames take chance times; one end of a link may learn long after the other that it was cut. */
export class SeededNet extends FakeNet {
  readonly #clock: Clock
  readonly #random: Random
  readonly #witness: NetWitness
  readonly #nodes = new Map<NodeId, FakeLinks>()

  constructor(parts: { readonly clock: Clock; readonly random: Random; readonly witness: NetWitness }) {
    super()
    this.#clock = parts.clock
    this.#random = parts.random
    this.#witness = parts.witness
  }

  override linksOf(nodeId: NodeId, certificate: () => SignedCertificate): FakeLinks {
    const links = super.linksOf(nodeId, certificate)
    this.#nodes.set(nodeId, links)
    return links
  }

  override later(deliver: () => void): void {
    this.#clock.after(this.#random.is(0.05) ? this.#random.int(10, 400) : this.#random.next() * 4, deliver)
  }

  override sent(link: FakeLink, frame: Uint8Array): void {
    if (frame[0] !== FRAME.control) return
    const { message } = readFrame(FRESH_READER, frame)
    if (message?.kind !== 'control' || message.name !== 'ack') return
    const read = decodeControl('ack', message.body)
    if (read.ok && read.name === 'ack') this.#witness.onAck(link, read.body.lanes)
  }

  override arrived(link: FakeLink, frame: Uint8Array): void {
    super.arrived(link, frame)
    this.#witness.onFrame(link, frame)
  }

  override cut(link: FakeLink, reason = 'cut'): void {
    link.end(reason)
    const { other } = link
    if (other === null || other.closed) return
    if (this.#random.is(0.5)) other.end(reason)
    else this.#clock.after(this.#random.int(1, 3000), () => other.end(reason))
  }

  /** Is there a link both of whose ends are open? */
  isLinked(a: NodeId, b: NodeId): boolean {
    return this.openLinks(a, b).some((link) => link.other?.closed === false)
  }

  /** The open ends that a node has of links to another. */
  openLinks(a: NodeId, b: NodeId): readonly FakeLink[] {
    return (this.#nodes.get(a)?.open ?? []).filter(({ peer }) => peer === b)
  }
}
