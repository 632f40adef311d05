import { RequestStore } from '../../../build/src/node/requests/store.js'
import { hash } from '../../../build/src/adapters/mesh/network/sodium.js'
import { quantile } from '../figures.mjs'
import { openLab } from '../lab.mjs'
import { openBee, openJournaled, openStoreAlone } from '../ledgers.mjs'
import { times } from '../nodes.mjs'

const INPUT = Buffer.alloc(512, 7)
const RECORDS = 100_000
const DAY_MS = 86_400_000

/** Stores behind the port of the ledger, by what they promise. */
const STORES = {
  power: (dir) => openJournaled(dir, 'power'),
  process: (dir) => openJournaled(dir, 'process'),
  alone: openStoreAlone,
  bee: openBee
}

/** What it costs to forget nothing: a commit in each store, opening a full ledger, and giving its room back. */
export async function figures({ runs, say }) {
  const lab = openLab()
  const samples = Object.fromEntries(Object.keys(STORES).map((name) => [name, { p50: [], rate: [] }]))
  const large = { open: [], purge: [], full: [], left: [] }
  try {
    await times(runs, async () => {
      for (const [name, open] of Object.entries(STORES)) await measureCommits(await open(lab.dir()), samples[name])
    })
    await times(Math.min(runs, 3), () => measureLarge(lab.dir(), large))
    say(
      `a ledger of ${RECORDS} requests takes ${megabytes(large.full[0])}, ${megabytes(large.left[0])} once all have expired`
    )
  } finally {
    await lab.close()
  }
  return rowsOf(samples, large)
}

function rowsOf(samples, large) {
  const called = {
    power: 'journal and store, fsynced',
    process: 'the same, not fsynced',
    alone: 'store alone, tables written out',
    bee: 'Hyperbee, not fsynced'
  }
  const commits = Object.entries(called).flatMap(([name, text]) => [
    {
      name: `a commit: ${text}`,
      unit: 'ms',
      goal: name === 'power' ? 2 : null,
      samples: samples[name].p50,
      note: 'p50 of 300, one at a time; a request with 512 bytes'
    },
    { name: `commits at 64 in flight: ${text}`, unit: '/s', goal: null, bound: 'min', samples: samples[name].rate }
  ])
  return [
    ...commits,
    { name: `opening a ledger of ${RECORDS} requests`, unit: 'ms', goal: 500, samples: large.open },
    { name: `purging ${RECORDS} expired requests`, unit: 'ms', goal: 2000, samples: large.purge },
    {
      name: 'disk left after it',
      unit: '%',
      goal: 20,
      samples: large.left.map((left, at) => (100 * left) / large.full[at]),
      note: 'of what they took'
    }
  ]
}

function megabytes(bytes) {
  return `${(bytes / 1_000_000).toFixed(0)} MB`
}

async function measureCommits(ledger, { p50, rate }) {
  const book = bookOf(ledger)
  let made = 0
  const commit = () => ledger.commit(book.changes(null, requestOf(made++), { input: INPUT }))
  const waits = await times(300, async () => {
    const from = performance.now()
    await commit()
    return performance.now() - from
  })
  p50.push(quantile(waits, 0.5))
  const from = performance.now()
  await Promise.all(Array.from({ length: 64 }, () => times(30, commit)))
  rate.push((64 * 30) / ((performance.now() - from) / 1000))
  await ledger.close()
}

async function measureLarge(dir, { open, purge, full, left }) {
  const first = await openJournaled(dir, 'process')
  const book = bookOf(first)
  for (let at = 0; at < RECORDS; at += 500) {
    const some = Array.from({ length: 500 }, (_, place) => ({ ...requestOf(at + place), status: 'completed' }))
    await first.commit(some.flatMap((request) => book.changes(null, request, { input: INPUT })))
  }
  await first.close()
  const from = performance.now()
  const second = await openJournaled(dir, 'process')
  open.push(performance.now() - from)
  full.push((await second.size()).bytes)
  const before = performance.now()
  await bookOf(second).purgeExpired(Date.now() + 2 * DAY_MS)
  await second.compact()
  purge.push(performance.now() - before)
  await second.close()
  const third = await openJournaled(dir, 'process')
  left.push((await third.size()).bytes)
  await third.close()
}

function bookOf(ledger) {
  return new RequestStore(ledger, hash)
}

function requestOf(at) {
  const now = Date.now()
  return {
    role: 'callee',
    requestId: `req_${at}`,
    attempt: 1,
    source: `text@${'y'.repeat(52)}`,
    target: `host@${'b'.repeat(52)}`,
    capability: 'text.stats',
    description: 'a request of the bench',
    swarm: null,
    correlationId: `thr_${at}`,
    taskId: `task_${at}`,
    status: 'pending',
    isRepeatable: true,
    tries: 1,
    createdAt: now,
    updatedAt: now,
    deadline: now + 30_000,
    retryAt: null,
    expiresAt: now + DAY_MS,
    error: null,
    asking: null
  }
}
