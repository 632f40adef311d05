import test from 'brittle'
import c from 'compact-encoding'
import fc from 'fast-check'
import { hostileInputs } from '../../../support/hostile-inputs.js'
import { arbBytes, arbNumber, flipped, joined, uint, withLength } from '../hostile-bytes.js'
import { type WireEnd, type WireScene, wireScene } from '../wire-scene.js'

/** Frames of one stream. */
const FRAMES = 8
const [BATCH, OPEN, REJECT, CLOSE] = [0, 1, 2, 3]
const PROTOCOLS = [
  'hypercore/alpha',
  'hypercore',
  'wakeup',
  'blind-pairing',
  'a2a-node/a2a',
  'a2a-node/gate',
  'a2a-node/log',
  'x',
  ''
]

/** One message before its channel has a number: `place` is counted from the next number that a channel may have. */
interface Draft {
  readonly kind: 'open' | 'reject' | 'close' | 'other' | 'message'
  readonly place: number
  readonly channel: number | null
  readonly protocol: string
  readonly id: Uint8Array
  readonly bytes: Uint8Array
}

/** Rejections seldom: one of nothing ends the stream. */
const KINDS: readonly Draft['kind'][] = [
  ...Array.from({ length: 8 }, () => 'open' as const),
  ...Array.from({ length: 8 }, () => 'message' as const),
  'close',
  'close',
  'other',
  'reject'
]

/** `ids`: those that channels of the node have. */
function arbDraft(ids: readonly Uint8Array[]): fc.Arbitrary<Draft> {
  const odd = fc.constantFrom(0, 0, 1, 31, 33, 64, 1000).map((length) => new Uint8Array(length).fill(7))
  return fc.record({
    kind: fc.constantFrom(...KINDS),
    place: fc.nat(4),
    channel: fc.option(arbNumber(), { freq: 20 }),
    protocol: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...PROTOCOLS) }, fc.string()),
    id: fc.oneof(fc.constantFrom(...ids), odd, fc.uint8Array({ minLength: 32, maxLength: 32 })),
    bytes: arbBytes()
  })
}

/** Gives drafts their numbers, as somebody does who opens one channel after the other. `first`: the next number. */
class Numbers {
  #next: number

  constructor(first: number) {
    this.#next = first
  }

  /** The channel and the message on it. */
  message({ kind, place, channel, protocol, id, bytes }: Draft): {
    readonly channel: number
    readonly bytes: Uint8Array
  } {
    const known = channel ?? Math.max(0, this.#next - 1 - place)
    if (kind === 'message') return { channel: known, bytes: joined(uint(place), bytes) }
    if (kind === 'open') {
      const number = channel ?? this.#next++
      return {
        channel: 0,
        bytes: joined(uint(OPEN), uint(number), c.encode(c.string, protocol), withLength(id), bytes)
      }
    }
    const type = { reject: REJECT, close: CLOSE, other: 4 }[kind]
    return { channel: 0, bytes: joined(uint(type), uint(known)) }
  }
}

/** Messages of one frame, and what is wrong with their lengths. */
interface Frame {
  readonly drafts: readonly Draft[]
  readonly isBatch: boolean
  readonly isNested: boolean
  readonly length: number | null
}

function arbFrame(ids: readonly Uint8Array[]): fc.Arbitrary<Frame> {
  return fc.record({
    drafts: fc.array(arbDraft(ids), { minLength: 1, maxLength: 4 }),
    isBatch: fc.boolean(),
    isNested: fc.nat(19).map((at) => at === 0),
    length: fc.option(arbNumber(), { freq: 19 })
  })
}

/** Frames as bytes. */
function bytesOf({ drafts, isBatch, isNested, length }: Frame, numbers: Numbers): Uint8Array[] {
  const messages = drafts.map((draft) => numbers.message(draft))
  if (!isBatch) return messages.map(({ channel, bytes }) => joined(uint(channel), bytes))
  const parts = messages.map(({ channel, bytes }) => joined(uint(0), uint(channel), withLength(bytes)))
  const wrong = length === null ? [] : [uint(length)]
  const batch = joined(uint(BATCH), uint(0), ...parts, ...wrong)
  return [joined(uint(0), isNested ? joined(uint(BATCH), uint(0), withLength(batch)) : batch)]
}

/** The smallest number of a channel that the peer's end has not used. */
function nextChannel({ mux }: WireEnd): number {
  return (Reflect.get(mux, '_local') as readonly unknown[]).length + 1
}

/** Streams of `open` carry random frames; the node lives, and the honest pair goes on. */
async function survives(scene: WireScene, open: () => Promise<WireEnd>): Promise<void> {
  const { log } = scene.node.mesh
  const ids = [log.discoveryKey, scene.evil.mesh.log.discoveryKey, log.key]
  const frames = fc.array(arbFrame(ids), { minLength: 1, maxLength: FRAMES })
  const damages = fc.array(fc.option(fc.nat(4096), { freq: 19 }), { minLength: FRAMES, maxLength: FRAMES })
  const survive = async ([all, damaged]: readonly [readonly Frame[], readonly (number | null)[]]): Promise<void> => {
    const end = await open()
    const numbers = new Numbers(nextChannel(end))
    const sent = all.flatMap((frame) => bytesOf(frame, numbers))
    for (const [at, frame] of sent.entries()) end.write(flipped(frame, damaged[at] ?? null))
    await end.end()
  }
  await scene.survives(fc.tuple(frames, damages), { runs: Math.ceil(hostileInputs(2400) / FRAMES), survive })
}

test('the node lives and honest nodes continue, for any frames of a member', { timeout: 3_600_000 }, async (t) => {
  const scene = await wireScene(t)
  await survives(scene, () => scene.member())
})

test('the node lives and honest nodes continue, for any frames of a stranger', { timeout: 3_600_000 }, async (t) => {
  const scene = await wireScene(t)
  await survives(scene, () => scene.stranger())
})
