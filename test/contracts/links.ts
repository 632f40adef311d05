import test from 'brittle'
import type { Assert } from 'brittle'
import { keyToText, type NodeId } from '../../src/kit/ids.js'
import type { Link, Links } from '../../src/ports/mesh.js'
import { failsWith } from '../support/fails.js'

/** What the owner of links was told, and a wait for more. */
export interface SeenLinks {
  readonly opened: readonly Link[]
  readonly closed: readonly { readonly link: Link; readonly reason: string }[]
  readonly frames: readonly { readonly link: Link; readonly frame: Uint8Array }[]
  until(condition: () => boolean): Promise<void>
  /** The newest open link to a peer, waiting for one. */
  link(peer: NodeId): Promise<Link>
}

/** Somebody with links, not started. */
export interface LinksSubject {
  readonly id: NodeId
  readonly links: Links
  readonly seen: SeenLinks
  /** Starts with handlers that record. */
  start(): Promise<void>
}

/** Two members of one mesh and one of another, who can reach each other. */
export interface LinksWorld {
  readonly a: LinksSubject
  readonly b: LinksSubject
  readonly foreigner: LinksSubject
}

/** What every Links keeps. */
export function linksContract(name: string, open: (t: Assert) => Promise<LinksWorld>): void {
  test(`${name}: members that want each other are linked, and both are notified once`, async (t) => {
    const { a, b } = await open(t)
    await Promise.all([a.start(), b.start()])
    a.links.want([b.id])
    b.links.want([a.id])
    const [atA, atB] = await Promise.all([a.seen.link(b.id), b.seen.link(a.id)])
    t.is(atA.peer, b.id)
    t.is(atB.peer, a.id)
    t.is(atA.certificate.body.nodeKey, b.id, "the link shows the peer's certificate")
    t.not(atA.peerVersion, '')
    t.alike(
      a.links.list().map((link) => link.id),
      [atA.id]
    )
    t.is(a.seen.opened.length, 1)
    t.is(b.seen.opened.length, 1)
  })

  test(`${name}: frames come in order, none is lost while the sender waits for the drain`, async (t) => {
    const { a, b } = await linked(t, await open(t))
    let refused = 0
    for (let number = 0; number < FRAMES; number++) {
      if (a.link.send(numbered(number))) continue
      refused++
      await a.link.drained()
    }
    await b.seen.until(() => b.seen.frames.length === FRAMES)
    t.ok(refused > 0, 'the sender was asked to wait')
    t.alike(
      b.seen.frames.map(({ frame }) => numberOf(frame)),
      Array.from({ length: FRAMES }, (_, number) => number)
    )
    t.ok(b.seen.frames.every(({ frame }) => frame.byteLength === FRAME_BYTES))
    t.ok(b.seen.frames.every(({ link }) => link === b.link))
  })

  test(`${name}: a frame of 1 MiB passes, a larger one cuts the link`, async (t) => {
    const { a, b } = await linked(t, await open(t))
    a.link.send(new Uint8Array(1024 * 1024))
    await b.seen.until(() => b.seen.frames.length === 1)
    t.is(b.seen.frames[0].frame.byteLength, 1024 * 1024)
    a.link.send(new Uint8Array(1024 * 1024 + 1))
    await b.seen.until(() => b.seen.closed.length === 1)
    t.is(b.seen.frames.length, 1)
    t.is(b.seen.closed[0].link, b.link)
  })

  test(`${name}: closing a link notifies both ends; after it nothing is sent and nobody waits`, async (t) => {
    const { a, b } = await linked(t, await open(t))
    a.link.close('enough')
    await Promise.all([a.seen.until(() => a.seen.closed.length === 1), b.seen.until(() => b.seen.closed.length === 1)])
    t.is(a.seen.closed[0].reason, 'enough')
    t.ok(a.link.closed)
    t.ok(b.link.closed)
    t.is(a.link.send(new Uint8Array(1)), false)
    await t.execution(a.link.drained())
    t.absent(a.links.list().includes(a.link))
  })

  test(`${name}: a wanted peer whose link was cut is linked again, by a new link`, async (t) => {
    const { a, b } = await linked(t, await open(t))
    a.links.want([b.id])
    a.link.close('cut')
    await a.seen.until(() => a.seen.closed.length === 1)
    const again = await a.seen.link(b.id)
    t.not(again.id, a.link.id)
  })

  test(`${name}: a member is dialled by its key alone, and dialling again gives the same link`, async (t) => {
    const { a, b } = await open(t)
    await Promise.all([a.start(), b.start()])
    const link = await a.links.dial(b.id, PATIENCE_MS)
    t.is(link.peer, b.id)
    t.is(await a.links.dial(b.id, PATIENCE_MS), link)
    t.ok(a.seen.opened.includes(link))
  })

  test(`${name}: dialling a key that nobody has is PEER_OFFLINE`, async (t) => {
    const { a } = await open(t)
    await a.start()
    await failsWith(t, 'PEER_OFFLINE', () => a.links.dial(keyToText(new Uint8Array(32).fill(7)), 200))
  })

  test(`${name}: a node that is no member never gets a link, for any dialling end`, async (t) => {
    const { a, b, foreigner } = await open(t)
    await Promise.all([a.start(), b.start(), foreigner.start()])
    await failsWith(t, 'PEER_OFFLINE', () => foreigner.links.dial(a.id, 1500))
    await failsWith(t, 'PEER_OFFLINE', () => a.links.dial(foreigner.id, 500))
    t.is(foreigner.seen.opened.length, 0)
    t.absent(a.seen.opened.some((link) => link.peer === foreigner.id))
  })

  test(`${name}: closing ends every link, and the peers are notified`, async (t) => {
    const { a, b } = await linked(t, await open(t))
    await a.links.close()
    await b.seen.until(() => b.seen.closed.length === 1)
    t.is(a.links.list().length, 0)
    t.ok(a.link.closed)
  })
}

const FRAMES = 500
const FRAME_BYTES = 4096
const PATIENCE_MS = 20_000

type Linked = LinksSubject & { readonly link: Link }

async function linked(t: Assert, { a, b }: LinksWorld): Promise<{ a: Linked; b: Linked }> {
  await Promise.all([a.start(), b.start()])
  const link = await a.links.dial(b.id, PATIENCE_MS)
  const back = await b.seen.link(a.id)
  t.teardown(() => link.close('the test is over'))
  return { a: { ...a, link }, b: { ...b, link: back } }
}

function numbered(number: number): Uint8Array {
  const frame = new Uint8Array(FRAME_BYTES)
  new DataView(frame.buffer).setUint32(0, number)
  return frame
}

function numberOf(frame: Uint8Array): number {
  return new DataView(frame.buffer, frame.byteOffset).getUint32(0)
}
