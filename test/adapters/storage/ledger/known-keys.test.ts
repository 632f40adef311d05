import test from 'brittle'
import { KnownKeys } from '../../../../src/adapters/storage/ledger/known-keys.js'

/** A store of keys that can be read to its end once that is allowed. */
function store(keys: Iterable<string>) {
  const state = { reads: 0, gate: Promise.resolve(), fault: null as Error | null }
  async function* all(): AsyncGenerator<string> {
    state.reads++
    for (const key of keys) yield key
    await state.gate
    if (state.fault !== null) throw state.fault
  }
  return { state, known: new KnownKeys(all) }
}

function missOften(known: KnownKeys): void {
  for (let miss = 0; miss < 1000; miss++) known.missed()
}

/** Until it knows that a key is not there. */
async function learned(known: KnownKeys): Promise<void> {
  while (known.mayHave('never there')) await new Promise((resolve) => setImmediate(resolve))
}

const isIn = (known: KnownKeys, keys: readonly string[]): boolean => keys.every((key) => known.mayHave(key))

test('only once many keys were asked for in vain it learns which there are; then it knows most that are not', async (t) => {
  const { state, known } = store(['a', 'b'])
  for (let miss = 1; miss < 1000; miss++) known.missed()
  t.is(state.reads, 0)
  known.missed()
  await learned(known)
  t.is(state.reads, 1)
  t.ok(isIn(known, ['a', 'b']))
  t.absent(known.mayHave('c'))
  known.add('c')
  t.ok(known.mayHave('c'))
})

test('a key that is written while it learns is known', async (t) => {
  const { state, known } = store(['a'])
  let open = (): void => {}
  state.gate = new Promise((resolve) => {
    open = resolve
  })
  missOften(known)
  t.ok(known.mayHave('c'), 'anything may be there meanwhile')
  known.add('b')
  open()
  await learned(known)
  t.ok(isIn(known, ['a', 'b']))
})

test('it grows with the store, and learns anew when it is full', async (t) => {
  const many = Array.from({ length: 100_000 }, (_, at) => `key ${at}`)
  const { state, known } = store(many)
  missOften(known)
  await learned(known)
  t.is(state.reads, 2, 'the first filter was too small')
  t.ok(isIn(known, many))
  for (let at = 0; at < 200_000; at++) known.add(`later ${at}`)
  t.ok(known.mayHave('never there'), 'it is full')
  missOften(known)
  await learned(known)
  t.is(state.reads, 4)
  t.ok(isIn(known, many))
})

test('a store that cannot be read is asked for every key, and learned of later', async (t) => {
  const { state, known } = store(['a'])
  state.fault = new Error('EIO')
  missOften(known)
  await known.close()
  t.ok(known.mayHave('never there'))
})

test('it ends while it learns', async (t) => {
  let reads = 0
  async function* endless(): AsyncGenerator<string> {
    for (;;) yield await Promise.resolve(`key ${reads++ % 100}`)
  }
  const known = new KnownKeys(endless)
  missOften(known)
  await known.close()
  t.ok(reads < 100_000)
})
