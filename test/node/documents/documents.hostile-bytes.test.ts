import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { encodeBlock } from '../../../src/domain/document/block.js'
import { arbBytes, arbNumber, flipped } from '../../adapters/mesh/hostile-bytes.js'
import { documentScene, textOn, write } from '../../support/document-scene.js'
import { arbEdits, edited } from '../../support/documents.js'
import type { FakeNode, World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'
import { hostileInputs } from '../../support/hostile-inputs.js'
import { Uncaught } from '../../support/uncaught.js'

/** Blocks of one member. */
const BLOCKS = 8

/** A block of a stream of a document as its member may write it. */
interface Draft {
  readonly kind: 'bytes' | 'numbers' | 'foreign' | 'own'
  readonly sessions: number
  readonly bytes: Uint8Array
  /** Numbers of Yjs: counts, clients, clocks and lengths. */
  readonly numbers: readonly number[]
  readonly text: string
  readonly cut: number | null
  readonly flip: number | null
}

function arbDraft(): fc.Arbitrary<Draft> {
  return fc.record({
    kind: fc.constantFrom('bytes', 'numbers', 'foreign', 'own', 'own', 'own'),
    sessions: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, arbNumber()),
    bytes: arbBytes(),
    numbers: fc.array(arbNumber(), { maxLength: 30 }),
    text: fc.string({ maxLength: 8 }),
    cut: fc.option(fc.nat(200), { freq: 5 }),
    flip: fc.option(fc.nat(4096), { freq: 2 })
  })
}

/** A number as Yjs writes it: seven bits a byte. */
function varUint(number: number): number[] {
  const bytes: number[] = []
  let left = number
  for (; left > 127; left = Math.floor(left / 128)) bytes.push(128 | (left % 128))
  return [...bytes, left]
}

/**
 * Writes blocks into the stream of a member: what it is told to write, and what its node makes of edits, damaged on the
 * way.
 */
async function writeAll(bob: FakeNode, drafts: readonly Draft[], foreign: readonly Uint8Array[]): Promise<void> {
  const { documents } = bob.core.deps
  const { stream } = await documents.own('notes')
  const append = documents.append.bind(documents)
  for (const [at, { kind, sessions, bytes, numbers, text, cut, flip }] of drafts.entries()) {
    const damaged = (block: Uint8Array): Uint8Array => flipped(cut === null ? block : block.subarray(0, cut), flip)
    documents.append = (to, blocks) => append(to, blocks.map(damaged))
    const update =
      kind === 'numbers' ? Uint8Array.from(numbers.flatMap(varUint)) : (foreign[at % foreign.length] ?? bytes)
    // Its node may find by then that its own stream is none.
    if (kind === 'own') await write(bob.api(), text).catch(() => {})
    else await append(stream, [damaged(kind === 'bytes' ? bytes : encodeBlock({ sessions, updates: [update] }))])
  }
  documents.append = append
}

/** The document as two nodes read it, which is the same for both. */
async function same(nodes: readonly FakeNode[]): Promise<unknown> {
  const [one, other] = await Promise.all(nodes.map((node) => textOn(node)))
  if (one !== other) throw new Error(`one reads ${JSON.stringify(one)}, the other ${JSON.stringify(other)}`)
  return one
}

/** A member with a document writes blocks; two honest members read it, and read the same after a restart. */
async function survive(
  t: Pick<Assert, 'teardown'>,
  drafts: readonly Draft[],
  foreign: readonly Uint8Array[]
): Promise<void> {
  const { world, owner, ann, bob } = await documentScene(t as Assert)
  await write(bob.api(), 'of bob')
  await world.settle()
  await writeAll(bob, drafts, foreign)
  await world.settle()
  await same([owner, ann])
  await write(ann.api(), 'of ann')
  await world.settle()
  const before = await same([owner, ann])
  const again = [await restarted(world, owner), await restarted(world, ann)]
  await world.link(...again)
  await world.settle()
  const after = await same(again)
  if (after !== before) throw new Error('a restart changed the document')
}

async function restarted(world: World, { core, actor, store, ledger }: FakeNode): Promise<FakeNode> {
  await core.close()
  return await world.start(actor, { store, ledger })
}

test('honest nodes read the same, also after a restart, for any blocks of a member', {
  timeout: 3_600_000
}, async (t) => {
  const uncaught = new Uncaught()
  const inputs = fc.tuple(fc.array(arbDraft(), { minLength: 1, maxLength: BLOCKS }), arbEdits())
  const property = fc.asyncProperty(inputs, async ([drafts, edits]) => {
    const ends: (() => unknown)[] = []
    await survive(
      { teardown: (end) => void ends.push(end) },
      drafts,
      edited(edits).map(({ update }) => update)
    )
    for (const end of ends) await end()
    uncaught.check()
  })
  await uncaught.during(() => holds(t, property, Math.ceil(hostileInputs(400) / BLOCKS)))
})
