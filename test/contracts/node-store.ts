import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import type { NodeStore } from '../../src/ports/storage.js'
import { holds } from '../support/holds.js'

/** What every NodeStore keeps. `open` gives an empty one; `reopen` one over what the last has written. */
export function nodeStoreContract(
  name: string,
  open: (t: Assert) => Promise<{ store: NodeStore; reopen: () => Promise<NodeStore> }>
): void {
  test(`${name}: an entry that was never written is null`, async (t) => {
    const { store } = await open(t)
    t.is(await store.read('identity'), null)
  })

  test(`${name}: any JSON comes back as it was written, also to the next start`, async (t) => {
    const { store, reopen } = await open(t)
    const property = fc.asyncProperty(fc.jsonValue(), async (value) => {
      await store.write('document', value)
      const plain: unknown = JSON.parse(JSON.stringify(value))
      const next = await reopen()
      return JSON.stringify(sorted(await next.read('document'))) === JSON.stringify(sorted(plain))
    })
    await holds(t, property, 100)
  })

  test(`${name}: the last of several writes at once is what stays`, async (t) => {
    const { store } = await open(t)
    await Promise.all([1, 2, 3, 4, 5].map((round) => store.write('counter', { round })))
    t.alike(await store.read('counter'), { round: 5 })
  })

  test(`${name}: documents do not know each other`, async (t) => {
    const { store } = await open(t)
    await store.write('one', 1)
    await store.write('two', 2)
    await store.remove('one')
    t.is(await store.read('one'), null)
    t.is(await store.read('two'), 2)
  })

  test(`${name}: removing what is not there does nothing`, async (t) => {
    const { store } = await open(t)
    await t.execution(store.remove('nothing'))
  })

  test(`${name}: a value without a JSON form is refused and the old document stays`, async (t) => {
    const { store } = await open(t)
    await store.write('document', { good: true })
    await t.exception.all(store.write('document', { bad: Number.NaN }))
    t.alike(await store.read('document'), { good: true })
  })
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [key, sorted(item)] as const)
  return entries.sort(([a], [b]) => (a < b ? -1 : 1))
}
