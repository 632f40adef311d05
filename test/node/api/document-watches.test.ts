import test, { type Assert } from 'brittle'
import { asNodeError, type NodeError } from '../../../src/kit/errors.js'
import { documentScene, Program, write } from '../../support/document-scene.js'
import type { FakeNode } from '../../support/fake-node.js'

/** Watches the text of the document. */
class Reader {
  readonly values: unknown[] = []
  fault: NodeError | null = null

  constructor(t: Assert, node: FakeNode) {
    const abort = new AbortController()
    t.teardown(() => abort.abort())
    void this.#run(node, abort.signal).catch((error: unknown) => (this.fault = asNodeError(error)))
  }

  async #run(node: FakeNode, signal: AbortSignal): Promise<void> {
    const lines = node.api().watch('documents.read', { document: 'notes', type: 'text' }, { signal })
    for await (const { value } of lines) this.values.push(value)
  }
}

test('a caller that loses the right to write or see a document no longer holds or watches it', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await write(ann.api(), 'for all')
  await world.settle()
  const restrict = (see: object, mayWrite: object): Promise<unknown> =>
    ann.api().call('documents.restrict', { document: 'notes', see, write: mayWrite })
  const [writer, reader] = [new Program(t, bob.api()), new Reader(t, bob)]
  await world.settle()
  await restrict({}, { tier: null })
  await world.settle()
  t.is(writer.fault?.code, 'FORBIDDEN')
  t.is(reader.fault, null)
  const onlooker = new Program(t, bob.api())
  await write(ann.api(), 'for readers')
  await world.pass(100)
  t.is(onlooker.text, 'for readers')
  t.is(reader.values.at(-1), 'for readers')
  await restrict({ tier: null }, {})
  await world.settle()
  t.is(onlooker.fault?.code, 'DOCUMENT_NOT_FOUND')
  t.is(reader.fault?.code, 'DOCUMENT_NOT_FOUND')
  await write(ann.api(), 'for ann')
  await world.pass(100)
  t.is(onlooker.text, 'for readers')
  t.is(reader.values.at(-1), 'for readers')
})

test('a watch reports nothing of a document without local content, until some arrives', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(ann.api(), 'precious')
  await world.settle()
  for (const one of [owner, ann]) world.net.disconnect(bob.id, one.id)
  await bob.api().call('documents.forget', { document: 'notes' })
  const reader = new Reader(t, bob)
  await world.pass(20_000)
  t.alike([reader.values, reader.fault], [[], null])
  await world.link(owner, ann, bob)
  await world.settle()
  t.alike(reader.values, ['precious'])
  await write(ann.api(), 'precious!')
  await world.pass(100)
  t.alike(reader.values, ['precious', 'precious!'])
})

test('a watch reports an empty document when all others are there and none has anything of it', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(ann.api(), 'removed')
  await world.settle()
  for (const one of [owner, bob]) world.net.disconnect(ann.id, one.id)
  for (const one of [owner, bob, ann]) await one.api().call('documents.forget', { document: 'notes' })
  const reader = new Reader(t, bob)
  await world.pass(10_000)
  t.alike(reader.values, [], 'one is away, who may have it')
  await world.link(owner, ann, bob)
  t.alike(reader.values, [], 'it may be about to give it')
  await world.pass(13_000)
  t.alike(reader.values, [''])
})

test('a watch of a document that cannot be read any more ends with the reason', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  for (const node of [owner, ann]) {
    await write(node.api(), `of ${node.name}`)
    await world.settle()
  }
  const reader = new Reader(t, bob)
  await world.settle()
  const stream = world.log.model
    .view()
    .documents.get('notes')
    ?.streams.find(({ nodeKey }) => nodeKey === ann.id)?.coreKey
  const { documents } = bob.core.deps
  const read = documents.read.bind(documents)
  documents.read = (...which) => (which[0] === stream ? Promise.reject(new Error('the disk')) : read(...which))
  await Promise.all([write(owner.api(), 'more of owner'), write(ann.api(), 'more of ann')])
  await world.pass(100)
  t.is(reader.fault?.message, 'the disk')
})
