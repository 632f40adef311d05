import test from 'brittle'
import { frameCost, MEMBER_RATE, SENDER_RATE } from '../../../src/domain/channel/credit.js'
import { encodeMessage, FRAME, MAX_FRAME_BYTES } from '../../../src/domain/channel/frames.js'

/** What a message of so many bytes costs. */
function cost(bytes: number): number {
  return [...encodeMessage({ kind: 'envelope', bytes: new Uint8Array(bytes) }, () => 1)].reduce(
    (sum, frame) => sum + frameCost(frame),
    0
  )
}

test('small messages cost one token, large ones by their bytes: 5,000 or 32 MiB a second', (t) => {
  t.alike([cost(0), cost(1000), cost(6000)], [1, 1, 1])
  t.is(frameCost(new Uint8Array(0)), 1)
  t.is(frameCost(Uint8Array.of(FRAME.ping, 1)), 1)
  const second = cost(16 * 1024 * 1024) * 2
  t.ok(second >= 5000 && second < 6000, `${second} tokens for 32 MiB`)
})

test('control messages cost more: the cards in them have signatures', (t) => {
  t.is(frameCost(new Uint8Array(100).fill(FRAME.control)), 1)
  t.is(frameCost(new Uint8Array(96 * 1024).fill(FRAME.control)), 384)
})

test('a sender may send every frame, and keeps below what its peer takes', (t) => {
  t.ok(frameCost(new Uint8Array(MAX_FRAME_BYTES).fill(FRAME.control)) < SENDER_RATE.burst)
  t.ok(SENDER_RATE.burst * 2 <= MEMBER_RATE.burst && SENDER_RATE.perSecond <= MEMBER_RATE.perSecond)
})
