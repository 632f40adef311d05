import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { openDurableLedger } from '../../../src/adapters/storage/ledger/durable-ledger.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import type { RequestRecord } from '../../../src/domain/reliable/records.js'
import { SETTLED } from '../../../src/domain/reliable/request.js'
import { NodeError } from '../../../src/kit/errors.js'
import { fromUtf8, utf8 } from '../../../src/kit/ids.js'
import { RequestStore } from '../../../src/node/requests/store.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { holds } from '../../support/holds.js'
import { hash } from '../../support/membership.js'
import { tempDir } from '../../support/tmp.js'

const STORES: readonly (readonly [string, (t: Assert) => Promise<Ledger>])[] = [
  ['in memory', () => Promise.resolve(createMemoryLedger())],
  [
    'on disk',
    async (t) => {
      const mark = { read: () => Promise.resolve(0), write: () => Promise.resolve() }
      const ledger = await openDurableLedger({
        dir: path.join(await tempDir(t), 'ledger'),
        durability: 'process',
        mark
      })
      t.teardown(() => ledger.close())
      return ledger
    }
  ]
]

const BASE: RequestRecord = {
  role: 'callee',
  requestId: 'req_1',
  attempt: 1,
  source: `text@${'y'.repeat(52)}`,
  target: `host@${'b'.repeat(52)}`,
  capability: null,
  description: '',
  swarm: null,
  correlationId: 'thr_1',
  taskId: 'task_1',
  status: 'pending',
  isRepeatable: true,
  tries: 1,
  createdAt: 1000,
  updatedAt: 1000,
  deadline: 31_000,
  retryAt: null,
  expiresAt: 100_000,
  error: null,
  asking: null
}

const NOTHING = new Uint8Array(0)

const time = fc.integer({ min: 0, max: 50 })
const changes = fc.array(
  fc.record({
    which: fc.nat(4),
    status: fc.constantFrom('pending', 'started', 'unknown', 'completed', 'failed'),
    createdAt: time,
    retryAt: fc.option(time),
    expiresAt: time
  }),
  { maxLength: 25 }
)

for (const [name, open] of STORES) {
  test(`${name}: a request is read as it was written, with its contents`, async (t) => {
    const ledger = await open(t)
    const book = new RequestStore(ledger, hash)
    const error = new NodeError('TASK_FAILED', 'it went wrong').toBody()
    const record: RequestRecord = {
      ...BASE,
      status: 'failed',
      error,
      swarm: 'swm_1',
      capability: 'host.report',
      retryAt: 5
    }
    t.is(await book.get(book.name(record)), null)
    await ledger.commit(book.changes(null, record, { input: utf8('input'), result: utf8('result') }))
    t.alike(await book.get(book.name(record)), record)
    t.is(fromUtf8((await book.input(book.name(record))) ?? NOTHING), 'input')
    t.is(fromUtf8((await book.result(book.name(record))) ?? NOTHING), 'result')
    for (const other of [
      { source: 'else' },
      { target: 'else' },
      { requestId: 'req_2' },
      { attempt: 2 },
      { role: 'caller' as const }
    ])
      t.is(await book.get(book.name({ ...record, ...other })), null, 'nobody but its source can name it')
  })

  test(`${name}: requests without an outcome and expired ones are found, after any changes`, async (t) => {
    const property = fc.asyncProperty(changes, time, async (all, now) => {
      const ledger = await open(t)
      const book = new RequestStore(ledger, hash)
      const expected = new Map<string, RequestRecord>()
      for (const { which, ...change } of all) {
        const record: RequestRecord = { ...BASE, requestId: `req_${which}`, ...change }
        await ledger.commit(book.changes(expected.get(record.requestId) ?? null, record))
        expected.set(record.requestId, record)
      }
      const records = [...expected.values()]
      same(
        await ids(book.pending(now)),
        records.filter(({ status, createdAt }) => !SETTLED.has(status) && createdAt <= now)
      )
      const expired = records.filter(({ expiresAt }) => expiresAt <= now)
      if ((await book.purgeExpired(now)) !== expired.length) throw new Error('another number was purged')
      const left = records.filter(({ expiresAt }) => expiresAt > now)
      same(
        await ids(book.pending()),
        left.filter(({ status }) => !SETTLED.has(status))
      )
      const keys = await ledger.list({ from: '!', to: '~', limit: 1000 })
      if (left.length === 0 && keys.length > 0) throw new Error(`left behind: ${keys.map(({ key }) => key).join()}`)
      await ledger.close()
    })
    await holds(t, property, 100)
  })

  test(`${name}: requests without an outcome come oldest first, however many there are`, async (t) => {
    const ledger = await open(t)
    const book = new RequestStore(ledger, hash)
    const records = Array.from(
      { length: 1203 },
      (_, at): RequestRecord => ({ ...BASE, requestId: `req_${at}`, createdAt: 5000 - at })
    )
    await ledger.commit(records.flatMap((record) => book.changes(null, record)))
    const found = await ids(book.pending(4500))
    t.is(found.length, 703)
    t.alike([found[0], found.at(-1)], ['req_1202', 'req_500'])
    t.is(await book.purgeExpired(BASE.expiresAt), 1203)
    t.alike(await ledger.list({ from: '!', to: '~', limit: 10 }), [])
  })
}

async function ids(records: AsyncGenerator<RequestRecord>): Promise<string[]> {
  const found: string[] = []
  for await (const { requestId } of records) found.push(requestId)
  return found
}

function same(found: readonly string[], expected: readonly RequestRecord[]): void {
  const wanted = expected.map(({ requestId }) => requestId)
  if ([...found].sort().join() !== wanted.sort().join()) throw new Error(`found ${found.join()}, not ${wanted.join()}`)
}

test('nothing of a request is removed before it expires, and all of it then', async (t) => {
  const ledger = createMemoryLedger()
  const book = new RequestStore(ledger, hash)
  const record: RequestRecord = { ...BASE, status: 'started', retryAt: 50_000 }
  await ledger.commit(book.changes(null, BASE, { input: NOTHING }))
  await ledger.commit(book.changes(BASE, record, { result: NOTHING }))
  t.is(await book.purgeExpired(record.expiresAt - 1), 0)
  t.alike(await book.ofTasks('task_1'), [record])
  t.alike(await book.ofTasks('task_'), [record], 'by the beginning of its id')
  t.is(await book.purgeExpired(record.expiresAt), 1)
  t.alike(await ledger.list({ from: '!', to: '~', limit: 100 }), [])
  await ledger.commit(book.changes(null, record, { input: NOTHING, result: NOTHING }))
  await ledger.commit(book.removal(record))
  t.alike(await ledger.list({ from: '!', to: '~', limit: 100 }), [], 'nor when it is taken out')
})
