import test from 'brittle'
import type { Assert } from 'brittle'
import Protomux from 'protomux'
import { StreamLink } from '../../../../src/adapters/mesh/links/link.js'
import { FIRST_CREDIT } from '../../../../src/domain/channel/credit.js'
import type { SignedCertificate } from '../../../../src/domain/membership/types.js'
import type { Link } from '../../../../src/ports/mesh.js'
import { streamPair } from '../stream-pair.js'

/** A link and its other end; `writes` are the bytes that it gives to its stream. */
async function pair(
  t: Assert
): Promise<{ link: StreamLink; got: (count: number) => Promise<readonly number[]>; writes: number[] }> {
  const [own, other] = await streamPair(t, 'owner', 'peer')
  const frames: number[] = []
  let wake = (): void => {}
  const parts = {
    id: 1,
    peerVersion: '1',
    certificate: {} as SignedCertificate,
    onMalformed: () => {},
    onChannelClosed: () => {}
  }
  const onFrame = (_link: unknown, frame: Uint8Array): void => {
    frames.push(frame.byteLength)
    wake()
  }
  const link = new StreamLink({
    ...parts,
    peer: 'p',
    stream: own,
    mux: Protomux.from(own),
    onFrame: () => {},
    onCredit: () => {}
  })
  const far = new StreamLink({
    ...parts,
    peer: 'o',
    stream: other,
    mux: Protomux.from(other),
    onFrame,
    onCredit: () => {}
  })
  const got = async (count: number): Promise<readonly number[]> => {
    while (frames.length < count) await new Promise<void>((resolve) => (wake = resolve))
    return frames
  }
  t.teardown(() => far.rest())
  link.send(new Uint8Array(1))
  await got(1)
  const writes: number[] = []
  const write = own.write.bind(own)
  own.write = (bytes: Uint8Array) => {
    writes.push(bytes.byteLength)
    return write(bytes)
  }
  return { link, got, writes }
}

test('small frames of one turn leave as one, in their order; those of the next turn apart', async (t) => {
  const { link, got, writes } = await pair(t)
  for (let size = 2; size <= 11; size++) link.send(new Uint8Array(size))
  await got(11)
  t.is(writes.length, 1)
  link.send(new Uint8Array(12))
  t.alike(await got(12), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  t.is(writes.length, 2)
})

test('a frame that fills a packet is sent at once, and reports a full stream', async (t) => {
  const { link, got, writes } = await pair(t)
  const taken = Array.from({ length: 40 }, () => link.send(new Uint8Array(65_000)))
  t.is(writes.length, 39, 'the last one waits for the end of its turn')
  t.absent(taken.at(-1), 'the stream takes no more for now')
  await link.drained()
  await got(41)
  t.ok(link.send(new Uint8Array(1)))
})

test('a closed link sends nothing, and frames sent in the same turn harm nobody', async (t) => {
  const { link, writes } = await pair(t)
  link.send(new Uint8Array(2))
  link.close('over')
  t.is(writes.length, 1)
  await new Promise((resolve) => setImmediate(resolve))
  link.rest()
  t.absent(link.send(new Uint8Array(3)))
  t.is(writes.length, 1)
})

test('credit goes over the link, and a peer without flow control is known as one', async (t) => {
  const [own, other] = await streamPair(t, 'owner', 'peer')
  const parts = {
    id: 1,
    peerVersion: '1',
    certificate: {} as SignedCertificate,
    onMalformed: () => {},
    onChannelClosed: () => {}
  }
  const heard = (): { onCredit: (link: Link) => void; credit: Promise<number | null> } => {
    let onCredit = (_link: Link): void => {}
    const credit = new Promise<number | null>((resolve) => (onCredit = (link) => resolve(link.credit)))
    return { onCredit, credit }
  }
  const near = heard()
  const link = new StreamLink({ ...parts, ...near, peer: 'p', stream: own, mux: Protomux.from(own), onFrame: () => {} })
  t.is(link.credit, FIRST_CREDIT)
  const far = new StreamLink({
    ...parts,
    peer: 'o',
    stream: other,
    mux: Protomux.from(other),
    onFrame: () => {},
    onCredit: () => {}
  })
  far.grant(2 ** 40)
  t.is(await near.credit, 2 ** 40)
  const [again, old] = await streamPair(t, 'owner again', 'old peer')
  const second = heard()
  const toOld = new StreamLink({
    ...parts,
    ...second,
    peer: 'q',
    stream: again,
    mux: Protomux.from(again),
    onFrame: () => {}
  })
  Protomux.from(old)
    .createChannel({ protocol: 'a2a-node/a2a', messages: [{}] })
    ?.open()
  t.is(await second.credit, null)
  for (const one of [link, far, toOld]) one.rest()
})

test('credit that cannot be read is malformed', async (t) => {
  const [own, other] = await streamPair(t, 'owner', 'peer')
  let told = (_reason: string): void => {}
  const reason = new Promise<string>((resolve) => (told = resolve))
  const parts = {
    id: 1,
    peerVersion: '1',
    certificate: {} as SignedCertificate,
    onChannelClosed: () => {},
    onFrame: () => {},
    onCredit: () => {}
  }
  const link = new StreamLink({ ...parts, peer: 'p', stream: own, mux: Protomux.from(own), onMalformed: told })
  const channel = Protomux.from(other).createChannel({ protocol: 'a2a-node/a2a', messages: [{}, {}] })
  channel?.open()
  channel?.messages[1]?.send(Uint8Array.of(255, 1))
  t.is(await reason, 'credit that cannot be read')
  link.rest()
})
