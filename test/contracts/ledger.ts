import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { utf8 } from '../../src/kit/ids.js'
import type { Ledger, LedgerChange, LedgerEntry } from '../../src/ports/ledger.js'
import { failsWith } from '../support/fails.js'
import { holds } from '../support/holds.js'

/** In the place of a value that is not there. */
const NONE = utf8('nothing at all')
const ALL = { from: '!', to: '~~', limit: 10_000 }

/** What every ledger keeps. `open` gives an empty one. */
export function ledgerContract(name: string, open: (t: Assert) => Promise<Ledger>): void {
  test(`${name}: committed entries are read, in the order of the keys; removed ones are gone`, async (t) => {
    const ledger = await open(t)
    await ledger.commit([put('b', 'two'), put('a', 'one'), put('c', '')])
    t.alike(texts(await ledger.list(ALL)), ['a=one', 'b=two', 'c='])
    await ledger.commit([
      { key: 'b', value: null },
      { key: 'nothing', value: null }
    ])
    t.is(await ledger.get('b'), null)
    t.alike(texts(await ledger.list(ALL)), ['a=one', 'c='])
  })

  test(`${name}: a range ends before its end, and gives no more than it may`, async (t) => {
    const ledger = await open(t)
    await ledger.commit(['a/1', 'a/2', 'a/3', 'b/1'].map((key) => put(key, key)))
    t.alike(texts(await ledger.list({ from: 'a/2', to: 'b/', limit: 10 })), ['a/2=a/2', 'a/3=a/3'])
    t.alike(texts(await ledger.list({ from: 'a/', to: 'b/', limit: 2 })), ['a/1=a/1', 'a/2=a/2'])
    t.alike(texts(await ledger.list({ from: 'a/', to: 'b/', limit: 2, isReverse: true })), ['a/3=a/3', 'a/2=a/2'])
    t.alike(await ledger.list({ from: 'b/', to: 'a/', limit: 2 }), [])
    t.alike(await ledger.list({ ...ALL, limit: 0 }), [])
  })

  test(`${name}: any commits give what a map gives that takes their changes in order`, async (t) => {
    const key = fc.constantFrom('a', 'b', 'c/1', 'c/2', 'd')
    const value = fc.option(fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 20 })), {
      nil: null
    })
    const changes = fc.array(fc.record({ key, value }), { maxLength: 6 })
    const commits = fc.array(fc.record({ changes, survives: fc.constantFrom('process', 'power', undefined) }), {
      maxLength: 20
    })
    const property = fc.asyncProperty(commits, async (all) => {
      const ledger = await open(t)
      const expected = new Map<string, Uint8Array>()
      // Not awaited one by one: they take effect in the order of the calls.
      await Promise.all(all.map(({ changes: of, survives }) => ledger.commit(of, survives)))
      for (const change of all.flatMap(({ changes: of }) => of)) apply(expected, change)
      const entries = await ledger.list(ALL)
      await ledger.close()
      return same(entries, expected)
    })
    await holds(t, property, 100)
  })

  test(`${name}: changes that are made for a commit are requested once, and a commit whose changes throw is refused`, async (t) => {
    const ledger = await open(t)
    let asked = 0
    await ledger.commit(() => [put('a', String(++asked))])
    t.alike(texts(await ledger.list(ALL)), ['a=1'])
    await failsWith(t, 'INTERNAL', () => ledger.commit(() => [put('no key', '')]))
    await ledger.commit([put('b', 'two')])
    t.alike(texts(await ledger.list(ALL)), ['a=1', 'b=two'])
    t.is(asked, 1)
  })

  test(`${name}: entries written out and later changes are read as one`, async (t) => {
    const key = fc.integer({ min: 0, max: 9 }).map((at) => `k/${at}`)
    const value = fc.option(fc.uint8Array({ maxLength: 4 }), { nil: null })
    const changes = fc.array(fc.record({ key, value }), { maxLength: 12 })
    const range = fc.record({ from: key, to: key, limit: fc.integer({ min: 1, max: 10 }), isReverse: fc.boolean() })
    const property = fc.asyncProperty(
      changes,
      changes,
      range,
      async (before, since, { from, to, limit, isReverse }) => {
        const ledger = await open(t)
        await ledger.commit(before)
        await ledger.compact()
        await ledger.commit(since)
        const expected = new Map<string, Uint8Array>()
        for (const change of [...before, ...since]) apply(expected, change)
        const inRange = [...expected].sort(([a], [b]) => (a < b ? -1 : 1)).filter(([one]) => one >= from && one < to)
        const listed = new Map((isReverse ? inRange.reverse() : inRange).slice(0, limit))
        const entries = await ledger.list({ from, to, limit, isReverse })
        const isListed = same(isReverse ? entries.reverse() : entries, listed)
        const read = await Promise.all(Array.from({ length: 10 }, (_, at) => ledger.get(`k/${at}`)))
        await ledger.close()
        return isListed && read.every((one, at) => Buffer.compare(one ?? NONE, expected.get(`k/${at}`) ?? NONE) === 0)
      }
    )
    await holds(t, property, 100)
  })

  test(`${name}: a value is what it was when it was committed`, async (t) => {
    const ledger = await open(t)
    const value = utf8('before')
    const committed = ledger.commit([{ key: 'a', value }])
    await committed
    value.fill(0)
    t.is(textOf(await ledger.get('a')), 'before')
  })

  test(`${name}: commits are counted; a bad key and a closed ledger are refused`, async (t) => {
    const ledger = await open(t)
    await ledger.commit([put('a', 'one')])
    await ledger.commit([put('a', 'two')])
    t.is((await ledger.size()).commits, 2)
    for (const key of ['', 'a b', 'ä', 'a\n', 'x'.repeat(513)])
      await failsWith(t, 'INTERNAL', () => ledger.commit([put(key, '')]))
    await ledger.compact()
    t.is(textOf(await ledger.get('a')), 'two')
    await ledger.close()
    await ledger.close()
    await failsWith(t, 'INTERNAL', () => ledger.commit([put('a', 'three')]))
  })
}

function textOf(value: Uint8Array | null): string {
  return Buffer.from(value ?? []).toString()
}

function put(key: string, text: string): LedgerChange {
  return { key, value: utf8(text) }
}

function texts(entries: readonly LedgerEntry[]): string[] {
  return entries.map(({ key, value }) => `${key}=${Buffer.from(value).toString()}`)
}

function apply(map: Map<string, Uint8Array>, { key, value }: LedgerChange): void {
  if (value === null) map.delete(key)
  else map.set(key, typeof value === 'string' ? utf8(value) : value)
}

function same(entries: readonly LedgerEntry[], expected: ReadonlyMap<string, Uint8Array>): boolean {
  const keys = [...expected.keys()].sort()
  if (keys.join() !== entries.map(({ key }) => key).join()) return false
  return entries.every(({ key, value }) => Buffer.compare(value, expected.get(key) ?? new Uint8Array([1])) === 0)
}
