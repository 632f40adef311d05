import test, { type Assert } from 'brittle'
import { MAX_DOCUMENT_BYTES_OF_MEMBER, MAX_DOCUMENTS_OF_MEMBER } from '../../../src/domain/membership/fold/document.js'
import { DOCUMENTS_KEY } from '../../../src/domain/membership/keys.js'
import { documentScene, Program, textOn, write } from '../../support/document-scene.js'
import { failsWith } from '../../support/fails.js'
import type { FakeNode } from '../../support/fake-node.js'

const names = async (node: FakeNode): Promise<string[]> =>
  (await node.api().call('documents.list', {})).documents.map(({ name }) => name)

/** The streams whose blocks a node removes from now on. */
function freedBy(node: FakeNode): Set<string> {
  const freed = new Set<string>()
  const { documents } = node.core.deps
  const remove = documents.remove.bind(documents)
  Object.assign(documents, {
    remove: (streams: readonly string[]): Promise<void> => {
      for (const stream of streams) freed.add(stream)
      return remove(streams)
    }
  })
  return freed
}

test('a document that its creator removes is gone on every node, its blocks too, and its name stays taken', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(bob.api(), 'of bob')
  await write(ann.api(), 'of bob and ann')
  await world.settle()
  t.is(await textOn(owner), 'of bob and ann')
  const streams =
    world.log
      .view()
      .documents.get('notes')
      ?.streams.map(({ coreKey }) => coreKey) ?? []
  const freed = new Map([owner, ann, bob].map((node) => [node, freedBy(node)]))
  const program = new Program(t, bob.api())
  await world.settle()
  await failsWith(t, 'FORBIDDEN', () => bob.api().call('documents.remove', { document: 'notes' }))
  const { removed } = await ann.api().call('documents.remove', { document: 'notes' })
  t.is(removed, true)
  await world.settle()
  t.is(program.fault?.code, 'DOCUMENT_NOT_FOUND', 'a program that has it open is notified')
  for (const node of [owner, ann, bob]) {
    t.alike(await names(node), [])
    for (const call of [() => textOn(node), () => write(node.api(), 'again')])
      await failsWith(t, 'DOCUMENT_NOT_FOUND', call)
    const error = await failsWith(t, 'CONFLICT', () => node.api().call('documents.create', { name: 'notes' }))
    t.is(
      error.message,
      'the document notes was removed from the mesh by ann: its name stays taken, as late entries and blocks of members belong to it by name alone'
    )
    t.alike(error.next, ['a2a-node doc set notes-2 -', 'a2a-node doc ls'])
  }
  t.is(streams.length, 2)
  await world.pass(590_000, 60_000)
  for (const [node, of] of freed) t.is(of.size, 0, `${node.actor.name}: the log may still undo the removal`)
  await world.pass(60_000, 10_000)
  for (const [node, of] of freed) {
    t.ok(
      streams.every((stream) => of.has(stream)),
      `nothing of it is left at ${node.actor.name}`
    )
    t.alike(node.core.documents.problems(), [])
    t.alike((await node.store.read<{ used: string[] }>('documents'))?.used ?? [], [])
  }
  t.is(
    world.log.submitted.filter(({ kind }) => kind === 'document-stream').length,
    2,
    'no node announces its stream again'
  )
})

test('the refusal of a removed name suggests a name that a document can have', async (t: Assert) => {
  const { world, ann } = await documentScene(t)
  const longest = 'a'.repeat(128)
  for (const name of ['notes-2', "it's", longest]) await ann.api().call('documents.create', { name })
  for (const document of ['notes', "it's", longest]) await ann.api().call('documents.remove', { document })
  await world.settle()
  const stepOf = async (name: string): Promise<string | undefined> =>
    (await failsWith(t, 'CONFLICT', () => ann.api().call('documents.create', { name }))).next[0]
  t.is(await stepOf('notes'), 'a2a-node doc set notes-3 -', 'notes-2 is in use')
  t.is(await stepOf("it's"), `a2a-node doc set 'it'\\''s-2' -`, 'as a shell takes it')
  t.is(await stepOf(longest), 'a2a-node doc ls', 'no longer name is admitted')
  await ann.api().call('documents.create', { name: 'notes-3' })
})

test('the owner of the mesh removes the document of a member that is away', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(ann.api(), 'of ann')
  await world.settle()
  await ann.core.close()
  await owner.api().call('documents.remove', { document: 'notes' })
  await world.settle()
  t.alike(await names(bob), [])
  const again = await world.start(ann.actor, { store: ann.store, ledger: ann.ledger })
  await world.link(owner, again)
  await world.pass(1_300_000, 60_000)
  t.alike(await names(again), [])
  t.alike(again.core.documents.problems(), [])
})

test('a document beyond a limit of the log is refused at once, with the limit, and accepted after a removal', async (t: Assert) => {
  const { world, ann } = await documentScene(t)
  world.log.model.records.set(DOCUMENTS_KEY, { total: 1024, by: { [ann.id]: MAX_DOCUMENTS_OF_MEMBER }, bytes: {} })
  const before = world.clock.monotonic()
  const error = await failsWith(t, 'OVERLOADED', () => ann.api().call('documents.create', { name: 'more' }))
  t.ok(error.message.includes(`${MAX_DOCUMENTS_OF_MEMBER} documents`))
  t.is(error.retryable, false)
  t.is(world.clock.monotonic(), before, 'nothing was waited for')
  await ann.api().call('documents.remove', { document: 'notes' })
  await ann.api().call('documents.create', { name: 'more' })
  t.alike(await names(ann), ['more'])
})

test('changes that the log lets reach no other member are refused, and status says so', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  world.log.model.records.set(DOCUMENTS_KEY, {
    total: 1,
    by: { [ann.id]: 1 },
    bytes: { [bob.id]: MAX_DOCUMENT_BYTES_OF_MEMBER }
  })
  await write(bob.api(), 'first')
  await world.settle()
  const problem = bob.core.documents.problems().find(({ code }) => code === 'OVERLOADED')
  t.ok(problem?.message.includes('reach no other member'))
  t.is(problem?.next, 'a2a-node doc export notes')
  await failsWith(t, 'OVERLOADED', () => write(bob.api(), 'second'))
  world.log.model.records.set(DOCUMENTS_KEY, { total: 1, by: { [ann.id]: 1 }, bytes: {} })
  await world.pass(31_000, 1000)
  t.alike(bob.core.documents.problems(), [], 'once the log takes the stream, all is well')
  t.is(await textOn(ann), 'first')
  await write(bob.api(), 'second')
})

test('a refusal in status ends once it concerns nothing any more: the document was removed, or its blocks here', async (t: Assert) => {
  for (const isEverywhere of [true, false]) {
    const { world, ann, bob } = await documentScene(t)
    const refuse = (bytes: Record<string, number>): void =>
      void world.log.model.records.set(DOCUMENTS_KEY, { total: 1, by: { [ann.id]: 1 }, bytes })
    refuse({ [bob.id]: MAX_DOCUMENT_BYTES_OF_MEMBER })
    await write(bob.api(), 'first')
    await world.settle()
    t.is(bob.core.documents.problems().length, 1)
    if (isEverywhere) await ann.api().call('documents.remove', { document: 'notes' })
    else {
      await world.pass(40_000, 10_000)
      await bob.api().call('documents.forget', { document: 'notes' })
    }
    await world.settle()
    t.alike(bob.core.documents.problems(), [])
    if (isEverywhere) continue
    refuse({})
    await write(bob.api(), 'second')
    t.is(await textOn(ann), 'second', 'nothing of the former refusal is in force')
  }
})

test('a document that another member removes while it is made is refused as a removed one, and a second removal changes nothing', async (t: Assert) => {
  const { world, owner, ann } = await documentScene(t)
  const both = [owner, ann].map((node) => node.api().call('documents.remove', { document: 'notes' }))
  t.alike(
    (await Promise.all(both)).map(({ removed }) => removed),
    [true, true]
  )
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => ann.api().call('documents.remove', { document: 'notes' }))
  const { log } = ann.core.deps
  const submit = log.submit.bind(log)
  Object.assign(log, {
    submit: async (...entry: Parameters<typeof submit>): Promise<void> => {
      const [body] = entry
      await submit(...entry)
      if (body.kind === 'document') await submit({ kind: 'document-removed', mesh: body.mesh, name: body.name, at: 2 })
    }
  })
  const before = world.clock.monotonic()
  await failsWith(t, 'CONFLICT', () => ann.api().call('documents.create', { name: 'short' }))
  t.is(world.clock.monotonic(), before, 'nothing was waited for')
})
