import test from 'brittle'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'
import { ReplicationSet, type ReplicationSetDeps } from '../../../src/node/documents/replication-set.js'
import { FakeStore } from '../../support/fake-store.js'
import { actor, founded } from '../../support/membership.js'

const owner = actor('owner')
const writer = actor('writer')

function setOf(store: FakeStore, deps: Partial<ReplicationSetDeps> = {}): ReplicationSet {
  const model = founded()
  model.join(owner, writer, { tier: 1 })
  model.revoke(owner, writer)
  return new ReplicationSet({
    store,
    log: { view: () => model.view() },
    self: owner.id,
    shares: {} as ReplicationSetDeps['shares'],
    fetching: {} as ReplicationSetDeps['fetching'],
    documents: { extent: () => ({ blocks: 0, isMore: false, announced: new Set(), fetched: 0, isOversized: false }) },
    isOpen: () => false,
    hasArrived: () => false,
    ownOf: () => [],
    snapshotsOf: () => [],
    onError: (error) => {
      throw error
    },
    ...deps
  })
}

test('a forgotten document is not followed until it is added again, also after a restart', async (t) => {
  const store = new FakeStore()
  const set = setOf(store)
  await set.start()
  t.ok(set.has('plan'))
  await set.forget('plan', () => Promise.resolve())
  t.absent(set.has('plan'))
  const next = setOf(store)
  await next.start()
  t.absent(next.has('plan'))
  await next.add('plan')
  t.ok(next.has('plan'))
  const last = setOf(store)
  await last.start()
  t.ok(last.has('plan'))
})

test('a document that is being removed is added only once it is gone', async (t) => {
  const set = setOf(new FakeStore())
  let remove: () => void = () => {}
  const forgetting = set.forget('plan', () => new Promise((resolve) => (remove = resolve)))
  let isAdded = false
  const adding = set.add('plan').then(() => (isAdded = true))
  for (let tick = 0; tick < 20; tick++) await Promise.resolve()
  t.absent(isAdded)
  remove()
  await forgetting
  await adding
  t.ok(set.has('plan'))
})

test('a document that could not be forgotten on disk is followed on, and nothing of it is removed', async (t) => {
  const store = new FakeStore()
  const set = setOf(store)
  store.fault = new Error('full')
  await t.exception(
    set.forget('plan', () => {
      t.fail('it is not removed')
      return Promise.resolve()
    }),
    /full/
  )
  for (let tick = 0; tick < 5; tick++) await Promise.resolve()
  t.ok(set.has('plan'))
})

test('a document is abandoned when all its writers are revoked and nobody uses it here', (t) => {
  const record: DocumentRecord = {
    name: 'plan',
    creator: writer.id,
    createdAt: 0,
    access: null,
    streams: [{ nodeKey: writer.id, coreKey: 'stream' }]
  }
  t.ok(setOf(new FakeStore()).isAbandoned(record))
  t.absent(setOf(new FakeStore(), { isOpen: () => true }).isAbandoned(record), 'it is open')
  t.absent(setOf(new FakeStore(), { hasArrived: () => true }).isAbandoned(record), 'it was whole here')
  t.absent(setOf(new FakeStore()).isAbandoned({ ...record, streams: [] }), 'nobody wrote into it')
  const used = setOf(new FakeStore())
  used.use('plan')
  t.absent(used.isAbandoned(record), 'somebody used it')
})

test('a stream with an oversized block is named with that reason, before its share', (t) => {
  const isOversized = (stream: string): boolean => stream === 'large'
  const set = setOf(new FakeStore(), {
    documents: {
      extent: (stream) => ({
        blocks: 0,
        isMore: false,
        announced: new Set(),
        fetched: 0,
        isOversized: isOversized(stream)
      })
    },
    shares: { isRefused: () => true } as unknown as ReplicationSetDeps['shares']
  })
  const streams = ['large', 'other'].map((coreKey) => ({ nodeKey: owner.id, coreKey }))
  const record = { name: 'plan', creator: owner.id, createdAt: 0, access: null, streams }
  t.alike(
    set.leftOf(record).map(({ stream, reason }) => [stream, reason]),
    [
      ['large', 'oversized'],
      ['other', 'bytes']
    ]
  )
})
