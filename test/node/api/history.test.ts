import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import type { NodeError } from '../../../src/kit/errors.js'
import type { DocumentHistoryInfo } from '../../../src/ports/document-api.js'
import { HISTORY_LIMITS } from '../../../src/node/documents/history.js'
import { Program, documentScene as scene, textOn, write } from '../../support/document-scene.js'
import { idle, MANY, writeMuch } from '../../support/document-compaction.js'
import { failsWith } from '../../support/fails.js'
import type { FakeNode } from '../../support/fake-node.js'

async function historyOn(node: FakeNode, limit?: number): Promise<DocumentHistoryInfo> {
  return await node.api().call('documents.history', { document: 'notes', ...(limit === undefined ? {} : { limit }) })
}

async function pastText(node: FakeNode, at: string): Promise<unknown> {
  return (await node.api().call('documents.past', { document: 'notes', at })).parts[0]?.value ?? ''
}

test('two members see the same history, with the author, the part and the size of each change, newest first', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  for (const [node, text] of [
    [ann, 'milk'],
    [bob, 'milk, bread'],
    [ann, 'bread']
  ] as const) {
    await write(node.api(), text)
    world.clock.advance(1000)
    await world.settle()
  }
  const history = await historyOn(ann)
  t.alike(
    history.changes.map(({ by, added, removed, parts }) => [by.id, added, removed, parts]),
    [
      [ann.id, 0, 6, [{ root: 'text', type: 'text' }]],
      [bob.id, 7, 0, [{ root: 'text', type: 'text' }]],
      [ann.id, 4, 0, [{ root: 'text', type: 'text' }]]
    ]
  )
  t.is(history.total, 3)
  t.is(history.merged, null)
  const entries = ({ changes }: DocumentHistoryInfo): string[] => changes.map(({ entry }) => entry)
  t.alike(entries(await historyOn(bob)), entries(history))
  t.alike(entries(await historyOn(bob, 1)), entries(history).slice(0, 1))
  t.is((await historyOn(bob, 1)).total, 3)
  const texts = await Promise.all(entries(history).map((entry) => pastText(bob, entry)))
  t.alike(texts, ['bread', 'milk, bread', 'milk'])
})

test('a time gives the state before the first later change, and a restore is one more change for everybody', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'good')
  world.clock.advance(60_000)
  const time = new Date(world.clock.now()).toISOString()
  world.clock.advance(60_000)
  await write(ann.api(), 'spoiled')
  await world.settle()
  t.is(await pastText(bob, time), 'good')
  const { restored, change } = await bob.api().call('documents.restore', { document: 'notes', at: time })
  t.alike(restored, [{ root: 'text', type: 'text' }])
  t.is(change.by.id, ann.id)
  await world.settle()
  for (const node of [ann, bob]) t.is(await textOn(node), 'good')
  const { changes, total } = await historyOn(ann)
  t.is(total, 3)
  t.is(changes[0]?.by.id, bob.id)
  const again = await bob.api().call('documents.restore', { document: 'notes', at: time })
  t.alike(again.restored, [])
  t.is((await historyOn(ann)).total, 3, 'equal content is not written again')
  t.is(await pastText(ann, changes[1]?.entry ?? ''), 'spoiled', 'a restore leaves the former changes')
})

test('entries and times that name no change here are refused with the command that lists the changes', async (t: Assert) => {
  const { ann } = await scene(t)
  await write(ann.api(), 'one')
  const [change] = (await historyOn(ann)).changes
  const stream = change?.stream ?? ''
  for (const at of [
    '1970-01-01T00:00:00Z',
    `${stream.slice(0, 8)}/99`,
    'yyyyyyyy/1',
    'yesterday',
    '2026-13-45T99:99:99Z'
  ]) {
    const error = await failsWith(t, 'INVALID_INPUT', () => ann.api().call('documents.past', { document: 'notes', at }))
    t.alike(error?.next, ['a2a-node doc history notes'], at)
  }
  t.is(await pastText(ann, `${stream}/1`), 'one', 'the whole key of the stream names it too')
})

test('only readers see a history, and only writers restore', async (t: Assert) => {
  const { world, ann, bob } = await scene(t)
  await write(ann.api(), 'one')
  await world.settle()
  const [change] = (await historyOn(bob)).changes
  const at = change?.entry ?? ''
  await ann.api().call('documents.restrict', { document: 'notes', see: {}, write: { tier: null } })
  await world.settle()
  t.is(await pastText(bob, at), 'one')
  await failsWith(t, 'FORBIDDEN', () => bob.api().call('documents.restore', { document: 'notes', at }))
  await ann.api().call('documents.restrict', { document: 'notes', see: { tier: null }, write: { tier: null } })
  await world.settle()
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => historyOn(bob))
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => bob.api().call('documents.past', { document: 'notes', at }))
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => bob.api().call('documents.restore', { document: 'notes', at }))
})

test('too many histories at once are refused, and the others are answered', async (t: Assert) => {
  const { ann } = await scene(t)
  await write(ann.api(), 'one')
  const asked = await Promise.allSettled(Array.from({ length: HISTORY_LIMITS.maxWaiting + 4 }, () => historyOn(ann)))
  const refused = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason as NodeError] : []))
  t.ok(refused.length > 0 && refused.every(({ code }) => code === 'OVERLOADED'), `${refused.length} are refused`)
  t.ok(asked.filter(({ status }) => status === 'fulfilled').length > HISTORY_LIMITS.maxWaiting)
  t.is((await historyOn(ann)).total, 1)
})

test('a restore of a part that cannot be restored writes nothing, and one of another part is done', async (t: Assert) => {
  const { world, ann } = await scene(t)
  await write(ann.api(), 'one')
  const [change] = (await historyOn(ann)).changes
  const at = change?.entry ?? ''
  await write(ann.api(), 'two')
  const program = new Program(t, ann.api())
  await world.settle()
  const before = Y.encodeStateVector(program.doc)
  program.doc.getXmlFragment('page').insert(0, [new Y.XmlElement('p')])
  await program.apply(Y.encodeStateAsUpdate(program.doc, before))
  const error = await failsWith(t, 'CONFLICT', () => ann.api().call('documents.restore', { document: 'notes', at }))
  t.ok(error.message.includes('page') && error.message.includes('XML'), error.message)
  t.is(await textOn(ann), 'two')
  const { restored } = await ann.api().call('documents.restore', { document: 'notes', at, root: 'text' })
  t.alike(restored, [{ root: 'text', type: 'text' }])
  t.is(await textOn(ann), 'one')
  t.alike((await historyOn(ann)).changes[1]?.parts, [{ root: 'page', type: 'xml' }])
})

test('a history reaches back to the snapshot only, names it, and restores what came after', async (t: Assert) => {
  const { world, owner, bob } = await scene(t)
  await writeMuch(bob, 'merged')
  await idle(world)
  await write(bob.api(), 'merged, one')
  await write(bob.api(), 'merged, one, two')
  await world.settle()
  for (const node of [owner, bob]) {
    const { total, merged, changes } = await historyOn(node)
    t.is(total, 2)
    t.is(merged?.blocks, MANY + 1)
    t.ok(Date.parse(merged?.since ?? '') <= world.clock.now(), merged?.since ?? 'no time')
    t.is(await pastText(node, changes[1]?.entry ?? ''), 'merged, one')
    const stream = changes[0]?.stream ?? ''
    const error = await failsWith(t, 'INVALID_INPUT', () => pastText(node, `${stream.slice(0, 8)}/5`))
    t.ok(error.message.includes('merged in a snapshot'), error.message)
  }
  const { changes } = await historyOn(owner)
  await owner.api().call('documents.restore', { document: 'notes', at: changes[1]?.entry ?? '' })
  await world.settle()
  t.is(await textOn(bob), 'merged, one')
})
