import { createRequire } from 'node:module'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import Corestore from 'corestore'
import fc from 'fast-check'
import type Hypercore from 'hypercore'
import { keyToText } from '../../../../src/kit/ids.js'
import { hostileInputs } from '../../../support/hostile-inputs.js'
import { tempDir } from '../../../support/tmp.js'
import { everybody, numbered, Side } from '../cores-lab.js'
import { joined, uint } from '../hostile-bytes.js'
import { arbChange, arbMadeUp, type Change, ChangedCores, encoded, type MadeUp } from './hostile-replication.js'
import { type WireEnd, type WireScene, wireScene } from '../wire-scene.js'

const { MerkleTree } = createRequire(import.meta.url)('hypercore/lib/merkle-tree.js') as {
  MerkleTree: { proof(state: object, reading: object, request: object): Promise<{ settle(): Promise<object> }> }
}

/** Made up messages of one stream. */
const MESSAGES = 10
/** What the store of the node keeps of a core that nobody follows any more, and that of the test as well. */
const CORE_BYTES = 64 * 1024
/** Turns of the event loop that replication gets between two messages, and in the end. */
const TURNS = { between: 2, last: 20 }

/** The scene, with cores of documents at the node, and a store of the evil member that it fills. */
async function documents(
  t: Assert
): Promise<{ scene: WireScene; cores: Side; written: (blocks: number) => Promise<Hypercore> }> {
  const dir = await tempDir(t)
  const cores = new Side(t, path.join(dir, 'node'))
  const scene = await wireScene(t, { onPassed: (peer, stream) => cores.cores.link(peer, stream) })
  const store = new Corestore(path.join(dir, 'evil'))
  t.teardown(() => store.close())
  let made = 0
  const written = async (blocks: number): Promise<Hypercore> => {
    const core = store.get({ name: `core ${made++}` })
    await core.append(numbered(blocks))
    return core
  }
  return { scene, cores, written }
}

/** Sends made up messages on the channels of cores, one after the other. */
async function sendAll(
  end: WireEnd,
  { channels }: ChangedCores,
  messages: readonly (MadeUp & { readonly core: number })[]
): Promise<void> {
  await turns(TURNS.between)
  for (const { core, ...message } of messages) {
    const open = channels.filter(({ closed }) => !closed)
    const channel = open[core % Math.max(1, open.length)]
    const bytes = encoded(message)
    if (channel !== undefined && bytes !== null)
      end.write(joined(uint(Reflect.get(channel, '_localId') as number), uint(message.type), bytes))
    await turns(TURNS.between)
  }
  await turns(TURNS.last)
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('the node lives, takes no wrong block, and honest nodes continue, for any messages of a member about cores', {
  timeout: 3_600_000
}, async (t) => {
  const { scene, cores, written } = await documents(t)
  const messages = fc.array(
    fc.tuple(arbMadeUp(), fc.nat(7)).map(([made, core]) => ({ ...made, core })),
    { maxLength: MESSAGES }
  )
  const inputs = fc.record({
    messages,
    changes: fc.array(arbChange(), { maxLength: 4 }),
    blocks: fc.integer({ min: 1, max: 9 })
  })
  let taken = 0
  const survive = async ({
    messages: all,
    changes,
    blocks
  }: {
    messages: (MadeUp & { core: number })[]
    changes: Change[]
    blocks: number
  }): Promise<void> => {
    const core = await written(blocks)
    const stream = keyToText(core.key)
    cores.cores.follow([everybody(stream)])
    let changed: ChangedCores | null = null
    const end = await scene.member(({ mux }) => (changed = new ChangedCores(mux, changes)))
    scene.evil.store.replicate(end.stream)
    core.replicate(end.mux)
    await sendAll(end, changed as unknown as ChangedCores, all)
    await end.end()
    const held = await cores.cores.read(stream, 0, blocks)
    for (const [at, block] of held.entries())
      if (Buffer.compare(block, numbered(blocks)[at] ?? new Uint8Array()) !== 0)
        throw new Error(`block ${at} is another one`)
    taken += held.length
    await core.close()
  }
  await scene.survives(inputs, { runs: Math.ceil(hostileInputs(500) / MESSAGES), survive, keptBytes: CORE_BYTES })
  t.comment(`${taken} true blocks came over`)
})

/** What a core says of itself to find a fork of it: its roots, signed. */
async function proofOf(core: Hypercore): Promise<{ upgrade: { nodes: object[] } }> {
  const { state, storage } = core.core as unknown as { state: object; storage: { read(): { tryFlush(): void } } }
  const reading = storage.read()
  const upgrade = { start: 0, length: core.length }
  const proof = MerkleTree.proof(state, reading, { block: null, hash: null, seek: null, upgrade })
  reading.tryFlush()
  return (await proof.then((one) => one.settle())) as { upgrade: { nodes: object[] } }
}

test('a true proof with a node too many freezes no core', async (t) => {
  const { scene, cores, written } = await documents(t)
  const core = await written(5)
  const stream = keyToText(core.key)
  cores.cores.follow([everybody(stream)])
  const { upgrade, ...proof } = await proofOf(core)
  for (const nodes of [[...upgrade.nodes, upgrade.nodes[0]], []]) {
    let changed: ChangedCores | null = null
    const end = await scene.member(({ mux }) => (changed = new ChangedCores(mux, [])))
    core.replicate(end.mux)
    await cores.until(() => cores.cores.size(stream).blocks === core.length || cores.forked.length > 0)
    const message = { type: 3, fields: { ...proof, request: 0, fork: 0, upgrade: { ...upgrade, nodes } }, core: 0 }
    await sendAll(end, changed as unknown as ChangedCores, [message])
    await end.end()
    await core.append(numbered(1))
  }
  const end = await scene.member()
  core.replicate(end.mux)
  await cores.until(() => cores.cores.size(stream).blocks === core.length || cores.forked.length > 0)
  t.alike(cores.forked, [])
  await end.end()
})

test('a member that asks for blocks after wrong proofs, where hypercore fails, loses its stream and ends nothing', async (t) => {
  const { scene, cores, written } = await documents(t)
  const core = await written(3)
  cores.cores.follow([everybody(keyToText(core.key))])
  const none = { block: null, hash: null, seek: null, manifest: null }
  const upgrade = { start: 1, length: 1, nodes: [], additionalNodes: [], signature: new Uint8Array(64) }
  const messages = [
    { type: 3, fields: { ...none, request: 0, fork: 1, upgrade }, core: 0 },
    { type: 1, fields: { ...none, id: 1, fork: 31, upgrade: null, priority: 0 }, core: 0 }
  ]
  const survive = async (): Promise<void> => {
    const changed: ChangedCores[] = []
    const end = await scene.member(({ mux }) => changed.push(new ChangedCores(mux, [])))
    core.replicate(end.mux)
    await cores.until(() => cores.cores.size(keyToText(core.key)).blocks === core.length)
    for (const one of changed) await sendAll(end, one, messages)
    await end.end()
  }
  await scene.survives(fc.constant(null), { runs: 1, survive })
  t.ok(scene.node.refused.some(({ reason }) => reason?.startsWith('a package failed at it')))
})
