import test from 'brittle'
import fc from 'fast-check'
import { toBase64 } from '../../../../src/kit/bytes.js'
import { bytesToText, type NodeId } from '../../../../src/kit/ids.js'
import { MAX_CONTENT_BYTES, PIECE_BYTES } from '../../../../src/domain/swarm/participant-message.js'
import {
  type ContentName,
  ContentTransfer,
  type ContentTransferDeps,
  type Piece,
  pieceOf
} from '../../../../src/node/swarms/consensus/content-transfer.js'
import { actor, hash } from '../../../support/membership.js'

const [ann, bob, cyd] = [actor('ann').id, actor('bob').id, actor('cyd').id]
const digest = (content: Uint8Array): string => bytesToText(hash(content).subarray(0, 20))

interface Asked extends ContentName {
  readonly to: NodeId
  readonly at: number
}

function scene(): { contents: ContentTransfer; asked: Asked[]; pass(ms?: number): void } {
  let now = 0
  const asked: Asked[] = []
  const tell: ContentTransferDeps['tell'] = (to, { body }) =>
    void asked.push(...body.wants.map((want) => ({ to, ...want })))
  const contents = new ContentTransfer({ clock: { monotonic: () => now }, swarmVotes: { digest }, tell }, 'swarm_1')
  const pass = (ms = 32_000): void => {
    now += ms
    contents.tick()
  }
  return { contents, asked, pass }
}

function bytes(size: number, seed = 0): Uint8Array {
  return Uint8Array.from({ length: size }, (_, at) => (at * 31 + seed) % 251)
}

test('a content comes piece by piece from whom it was asked of, and is whole when its digest says so', (t) => {
  const { contents, asked } = scene()
  const content = bytes(2 * PIECE_BYTES + 7)
  const name = { index: 3, digest: digest(content) }
  contents.want([name], [ann, bob])
  for (let at = 0; at < 3; at++) {
    t.alike(asked.at(-1), { to: ann, ...name, at: at * PIECE_BYTES })
    t.is(contents.take(bob, [pieceOf(name, content, at * PIECE_BYTES)], false), false, 'nobody asked bob')
    t.is(contents.take(ann, [pieceOf(name, content, at * PIECE_BYTES)], false), at === 2)
  }
  t.is(digest(contents.get(name) ?? new Uint8Array()), name.digest)
})

test('a piece takes no memory for bytes that it only announces', (t) => {
  const { contents } = scene()
  const names = Array.from({ length: 2000 }, (_, index) => ({ index, digest: 'what nobody has' }))
  contents.want(names, [ann])
  const before = process.memoryUsage().arrayBuffers
  const pieces: Piece[] = names.map((name) => ({ ...name, at: 0, bytes: MAX_CONTENT_BYTES, data: toBase64(bytes(10)) }))
  contents.take(ann, pieces, false)
  t.ok(process.memoryUsage().arrayBuffers - before < MAX_CONTENT_BYTES, '2,000 times ten bytes')
})

test('a content that one of its sources lies about comes from another', (t) => {
  fc.assert(
    fc.property(
      fc.record({
        size: fc.integer({ min: 1, max: 3 * PIECE_BYTES }),
        lies: fc.array(fc.constantFrom('size', 'bytes', 'silence', 'elsewhere'), { maxLength: 6 })
      }),
      ({ size, lies: all }) => {
        const lies = [...all]
        const { contents, asked, pass } = scene()
        const content = bytes(size)
        const name = { index: 0, digest: digest(content) }
        contents.want([name], [ann, bob, cyd])
        for (let left = 40; left > 0 && contents.get(name) === undefined; left--) {
          const last = asked.pop()
          if (last === undefined) {
            pass()
            continue
          }
          const piece = pieceOf(name, content, last.at)
          const lie = last.to === ann ? lies.pop() : undefined
          const said = {
            size: { ...piece, bytes: piece.bytes + 1 },
            bytes: pieceOf(name, bytes(size, 1), last.at),
            elsewhere: { ...piece, at: last.at + 1 }
          }
          if (lie !== 'silence') contents.take(last.to, [lie === undefined ? piece : said[lie]], false)
        }
        return digest(contents.get(name) ?? new Uint8Array()) === name.digest
      }
    ),
    { numRuns: 300 }
  )
  t.pass('for any answer of the first of three')
})

test('a content comes though each of its pieces takes longer than it is waited for at first', (t) => {
  const { contents, asked, pass } = scene()
  const content = bytes(4 * PIECE_BYTES)
  const name = { index: 3, digest: digest(content) }
  contents.want([name], [ann, bob, cyd])
  const onTheirWay: { readonly dueAt: number; readonly of: Asked }[] = []
  let now = 0
  for (; now < 60_000 && contents.get(name) === undefined; now += 100) {
    for (const of of asked.splice(0)) onTheirWay.push({ dueAt: now + 1500, of })
    for (const { of } of onTheirWay.filter(({ dueAt }) => dueAt === now))
      contents.take(of.to, [pieceOf(name, content, of.at)], false)
    pass(100)
  }
  t.is(digest(contents.get(name) ?? new Uint8Array()), name.digest)
  t.ok(now < 15_000, `after ${now} ms`)
})

test('a whole content that nobody asked for is taken from whom it is welcome, when it is what it says', (t) => {
  const { contents, asked } = scene()
  const content = bytes(100)
  const name = { index: 1, digest: digest(content) }
  t.is(contents.take(bob, [pieceOf(name, content, 0)], false), false)
  t.absent(contents.get(name), 'it is not welcome')
  contents.take(bob, [pieceOf({ ...name, digest: digest(bytes(3)) }, content, 0)], true)
  t.absent(contents.get({ ...name, digest: digest(bytes(3)) }), 'it is another')
  contents.want([name], [ann])
  t.is(asked.length, 1)
  t.is(contents.take(bob, [pieceOf(name, content, 0)], true), true, 'the wanted content is whole')
  t.is(digest(contents.get(name) ?? new Uint8Array()), name.digest)
})
