import test, { type Assert } from 'brittle'
import { documentScene, textOn, write as edit } from '../support/document-scene.js'

test('a document that is wanted again while it is being removed comes back once it is, and nothing of it is followed before', async (t: Assert) => {
  const { world, ann, bob } = await documentScene(t)
  await edit(bob.api(), 'of bob')
  await world.settle()
  t.is(await textOn(ann), 'of bob')
  const { documents } = ann.core.parts
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
  t.is(wereHere, 0, 'what is not followed shows nothing')
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
