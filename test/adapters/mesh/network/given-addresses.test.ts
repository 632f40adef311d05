import test from 'brittle'
import { StoredAddresses } from '../../../../src/adapters/mesh/network/given-addresses.js'
import { FakeStore } from '../../../support/fake-store.js'

test('given addresses are kept in the home until they are removed, with the fault of their last dial', async (t) => {
  const store = new FakeStore()
  const book = await StoredAddresses.open(store, (address) => (address === 'b:2' ? 'nothing answers there' : null))
  t.ok(await book.add('p', 'a:1'))
  t.ok(await book.add('p', 'b:2'))
  t.absent(await book.add('p', 'a:1'), 'it was there')
  t.alike(book.list('p'), [
    { address: 'a:1', fault: null },
    { address: 'b:2', fault: 'nothing answers there' }
  ])
  const again = await StoredAddresses.open(store, () => null)
  t.alike(again.of('p'), ['a:1', 'b:2'])
  t.ok(await again.remove('p', 'a:1'))
  t.absent(await again.remove('p', 'a:1'))
  t.ok(await again.remove('p', 'b:2'))
  t.alike((await StoredAddresses.open(store, () => null)).of('p'), [])
})

test('a member has at most 4 given addresses, and at most 256 members have some', async (t) => {
  const book = await StoredAddresses.open(new FakeStore(), () => null)
  for (const port of [1, 2, 3, 4]) await book.add('p', `a:${port}`)
  await t.exception(book.add('p', 'a:5'), /at most 4 addresses/)
  for (let n = 1; n < 256; n++) await book.add(`p${n}`, 'a:1')
  await t.exception(book.add('q', 'a:1'), /of 256 nodes/)
  t.ok(await book.add('p1', 'a:2'))
})

test('a stored document of another shape gives no address that cannot be one', async (t) => {
  const store = new FakeStore()
  await store.write('given-addresses', { p: ['a:1', 7, 'nothing', 'A:02'], q: 'a:1' })
  const book = await StoredAddresses.open(store, () => null)
  t.alike([book.of('p'), book.of('q')], [['a:1', 'a:2'], []])
})

test('an address that could not be stored is none, and can be added again', async (t) => {
  const store = new FakeStore()
  const book = await StoredAddresses.open(store, () => null)
  const write = store.write.bind(store)
  store.write = () => Promise.reject(new Error('the disk is full'))
  await t.exception(book.add('p', 'a:1'), /the disk is full/)
  t.alike(book.of('p'), [])
  store.write = write
  t.ok(await book.add('p', 'a:1'))
  t.alike((await StoredAddresses.open(store, () => null)).of('p'), ['a:1'])
})
