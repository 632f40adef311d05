import test from 'brittle'
import { keptDocument, type KeptDocument } from '../../../src/node/documents/local-cache.js'
import { hash } from '../../support/membership.js'

interface Scene {
  readonly kept: KeptDocument
  readonly errors: unknown[]
  bytes: Uint8Array | null
  fault: Error | null
}

/** The kept form of one document over bytes that a test may damage. */
function scene(): Scene {
  const store: Scene = {
    bytes: null,
    fault: null,
    errors: [],
    kept: keptDocument('id', {
      hash,
      documents: {
        kept: () => (store.fault === null ? Promise.resolve(store.bytes) : Promise.reject(store.fault)),
        keep: (_id: string, bytes: Uint8Array | null) => {
          store.bytes = bytes
          return Promise.resolve()
        }
      },
      onError: (error) => store.errors.push(error)
    })
  }
  return store
}

test('a snapshot is read as it was written, and nothing is read where nothing was', async (t) => {
  const store = scene()
  t.is(await store.kept.read(), null)
  const snapshot = new Uint8Array([1, 2, 3])
  await store.kept.write(snapshot)
  t.is(store.bytes?.byteLength, 35, 'behind a hash of 32 bytes')
  t.alike([...((await store.kept.read()) ?? [])], [1, 2, 3])
})

test('a snapshot with one changed byte, or that is cut, is not read', async (t) => {
  const store = scene()
  await store.kept.write(new Uint8Array([1, 2, 3]))
  const whole = store.bytes ?? new Uint8Array()
  for (const at of [0, 31, 32, 34]) {
    store.bytes = whole.slice()
    store.bytes[at] = (whole[at] ?? 0) ^ 1
    t.is(await store.kept.read(), null, `byte ${at}`)
  }
  store.bytes = whole.slice(0, 20)
  t.is(await store.kept.read(), null, 'shorter than its hash')
})

test('an unreadable cache counts as empty, and the error is reported', async (t) => {
  const store = scene()
  store.fault = new Error('unreadable')
  t.is(await store.kept.read(), null)
  t.alike(store.errors, [store.fault])
})
