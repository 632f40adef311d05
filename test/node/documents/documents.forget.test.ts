import test, { type Assert } from 'brittle'
import { asNodeError } from '../../../src/kit/errors.js'
import { documentScene, textOn, write as edit } from '../../support/document-scene.js'

test('a document that is wanted again while it is being removed comes back once it is, and nothing of it is followed before', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await edit(bob.api(), 'of bob')
  await world.settle()
  t.is(await textOn(ann), 'of bob')
  const { documents } = ann.core.deps
  const remove = documents.remove.bind(documents)
  let letGo = (): void => {}
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const stream = world.log.view().documents.get('notes')?.streams[0]?.coreKey ?? ''
  let wereHere: number | null = null
  Object.assign(documents, {
    remove: async (streams: readonly string[]): Promise<void> => {
      await gate
      wereHere = documents.size(stream).blocks
      await remove(streams)
    }
  })
  const forgotten = ann.api().call('documents.forget', { document: 'notes' })
  await world.settle()
  const text = textOn(ann)
  await world.settle()
  letGo()
  await forgotten
  t.is(wereHere, 0, 'an unfollowed document shows nothing')
  await world.settle()
  t.is(await text, 'of bob')
  await edit(ann.api(), 'of bob and ann')
  await world.settle()
  t.is(await textOn(bob), 'of bob and ann')
})

test('of two documents that are removed at once neither comes back by itself', async (t: Assert) => {
  const { world, ann } = await documentScene(t)
  await ann.api().call('documents.create', { name: 'more' })
  await world.settle()
  const write = ann.store.write.bind(ann.store)
  const slowly = async (name: string, value: unknown): Promise<void> => {
    for (let turn = 0; turn < 5 && name === 'documents'; turn++) await new Promise(setImmediate)
    await write(name, value)
  }
  Object.assign(ann.store, { write: slowly })
  await Promise.all(['notes', 'more'].map((document) => ann.api().call('documents.forget', { document })))
  const { documents } = await ann.api().call('documents.list', {})
  t.alike(
    documents.map(({ following }) => following),
    [false, false]
  )
})

test('a document that somebody wants in the very moment in which it is removed is either in use, or goes and comes back', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  const { documents } = ann.core
  const known = documents.known.find('notes', { maxTier: 0, sandboxId: null })
  for (const isOpen of [false, true]) {
    for (let turns = -4; turns <= 8; turns++) {
      const why = `removed ${turns} turns after it was wanted, ${isOpen ? 'open' : 'not open'} before`
      await edit(bob.api(), `of bob: ${why}`)
      await world.settle()
      if (isOpen) await textOn(ann)
      else await world.pass(40_000, 20_000)
      const forget = after(-Math.min(turns, 0) + turns, () => documents.forget(known))
      const use = after(-Math.min(turns, 0), () => documents.hold('notes'))
      const forgotten = forget.then(
        () => null,
        (error: unknown) => asNodeError(error).code
      )
      await world.settle()
      const { release } = await use
      t.ok([null, 'CONFLICT'].includes(await forgotten), why)
      t.ok(documents.isFollowed('notes'), `it is kept while it is used: ${why}`)
      release()
      await world.settle()
      t.is(await textOn(ann), `of bob: ${why}`)
      await edit(ann.api(), `of ann: ${why}`)
      await world.settle()
      t.is(await textOn(bob), `of ann: ${why}`)
    }
  }
})

/** Does something so many microtasks later. */
async function after<T>(turns: number, act: () => Promise<T>): Promise<T> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve()
  return await act()
}
