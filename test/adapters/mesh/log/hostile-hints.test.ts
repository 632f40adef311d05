import { createRequire } from 'node:module'
import test from 'brittle'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import fc from 'fast-check'
import crypto from 'hypercore-crypto'
import type { Channel } from 'protomux'
import { keyFromText } from '../../../../src/kit/ids.js'
import { hostileInputs } from '../../../support/hostile-inputs.js'
import { arbBytes, arbNumber, flipped, joined, uint, withLength } from '../hostile-bytes.js'
import type { LabNode } from '../lab.js'
import { type WireEnd, wireScene } from '../wire-scene.js'

/** Messages of one stream. */
const MESSAGES = 20

const require = createRequire(import.meta.url)
// Those of the engine itself, which are no packages of ours.
const fromEngine = createRequire(require.resolve('autobase'))
const Handshake = (
  fromEngine('protomux-wakeup/spec/hyperschema/index.js') as { getEncoding(name: string): Codec<object> }
).getEncoding('@wakeup/handshake')
const [NS_INITIATOR, NS_RESPONDER] = crypto.namespace('wakeup', 2) as [Uint8Array, Uint8Array]
const [LOOKUP, ANNOUNCE, INFO] = [0, 1, 2]

/** One message of the channel of hints. */
interface Hint {
  readonly type: number
  readonly keys: readonly { readonly key: number; readonly length: number }[]
  /** Written in the place of how many keys there are. */
  readonly count: number | null
  readonly bytes: Uint8Array
  readonly flip: number | null
}

function arbHint(): fc.Arbitrary<Hint> {
  return fc.record({
    type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(LOOKUP, ANNOUNCE, ANNOUNCE, ANNOUNCE, INFO) }, fc.nat(300)),
    keys: fc.array(fc.record({ key: fc.nat(9), length: arbNumber() }), { maxLength: 12 }),
    count: fc.option(arbNumber(), { freq: 9 }),
    bytes: arbBytes(40),
    flip: fc.option(fc.nat(4096), { freq: 9 })
  })
}

/** A message as bytes. `keys`: cores that the log names, or not. */
function bytesOf({ type, keys: named, count, bytes, flip }: Hint, keys: readonly Uint8Array[]): Uint8Array {
  const list = named.map(({ key, length }) => joined(keys[key] ?? new Uint8Array(32).fill(key), uint(length)))
  const body = type === ANNOUNCE ? joined(uint(count ?? list.length), ...list) : bytes
  return flipped(joined(uint(type), body), flip)
}

/** Opens the channel of hints as an honest node does, or with another proof that it knows the log. */
function openHints({ mux, stream }: WireEnd, { mesh: { log } }: LabNode, proof: Uint8Array | null): Channel | null {
  const id = crypto.discoveryKey(log.key)
  const messages = [LOOKUP, ANNOUNCE, INFO].map(() => ({ encoding: c.raw }))
  const channel = mux.createChannel({
    protocol: 'wakeup',
    id,
    handshake: Handshake as unknown as Codec<null>,
    messages
  })
  const capability =
    proof ?? crypto.hash([stream.isInitiator ? NS_INITIATOR : NS_RESPONDER, log.key, stream.handshakeHash])
  channel?.open({ version: 0, capability, active: true })
  return channel
}

test('the node lives and honest nodes continue, for any hints of a member', { timeout: 3_600_000 }, async (t) => {
  const scene = await wireScene(t)
  const { log } = scene.node.mesh
  const keys = [
    log.key,
    log.discoveryKey,
    ...[scene.node, scene.friend, scene.evil].map(({ mesh }) => keyFromText(mesh.log.coreKey))
  ]
  const inputs = fc.record({
    hints: fc.array(arbHint(), { minLength: 1, maxLength: MESSAGES }),
    proof: fc.option(fc.constant(new Uint8Array(32)), { freq: 9 }),
    isBatch: fc.boolean()
  })
  let heard = 0
  const survive = async ({
    hints,
    proof,
    isBatch
  }: {
    hints: Hint[]
    proof: Uint8Array | null
    isBatch: boolean
  }): Promise<void> => {
    const end = await scene.member()
    const channel = openHints(end, scene.node, proof)
    if ((await channel?.fullyOpened()) === true) heard++
    const number = uint(Reflect.get(channel as object, '_localId') as number)
    const frames = hints.map((hint) => bytesOf(hint, keys))
    if (isBatch) end.write(joined(uint(0), uint(0), number, ...frames.map(withLength)))
    else for (const frame of frames) end.write(joined(number, frame))
    await end.end()
  }
  await scene.survives(inputs, { runs: Math.ceil(hostileInputs(2000) / MESSAGES), survive })
  t.ok(heard > 0, `${heard} channels were open`)
})
