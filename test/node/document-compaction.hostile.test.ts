import test, { type Assert } from 'brittle'
import { begunOn, forge, idle, snapshotOf, type Told, writeMuch } from '../support/document-compaction.js'
import { documentScene, textOn, write } from '../support/document-scene.js'

test('a snapshot that says something of a stream of which it holds nothing is refused, and that stream goes on', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  const streams = (): string[] =>
    world.log
      .view()
      .documents.get('notes')
      ?.streams.map(({ coreKey }) => coreKey) ?? []
  await writeMuch(bob, 'of bob')
  await world.settle()
  const of = streams()
  await write(ann.api(), 'of bob and ann')
  await world.settle()
  const key = streams().find((stream) => !of.includes(stream)) ?? ''
  const victim = { key, length: 0, bytes: 0, opened: [0, 0, 0], clients: [], end: null }
  const isOther = (one: { readonly key: string }): boolean => one.key !== key
  const change = ({ head, doc }: Told) => ({
    head: { ...head, streams: [...head.streams.filter(isOther), victim] },
    doc
  })
  await forge(bob, { of, change })
  await idle(world)
  t.ok(snapshotOf(world))
  for (const node of [owner, ann]) t.is(await begunOn(node), 0)
  await write(ann.api(), 'of bob, and again of ann')
  await world.settle()
  for (const node of [owner, ann, bob]) t.is(await textOn(node), 'of bob, and again of ann')
})
