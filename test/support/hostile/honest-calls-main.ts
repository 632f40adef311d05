// Makes honest calls at a node, in a process of its own, so that whoever attacks in the other one does not count:
// `node honest-calls-main.js <home> <milliseconds between the beginnings of two calls; 0: one after the other>`.
// It is told how many calls to make, or to stop, and tells of each call when it begins and how it ended.
import { connect } from '../../../src/client.js'
import { messageOf } from '../../../src/kit/errors.js'

/** What it is told. */
export type HonestOrder = { readonly calls: number | null } | 'stop'

/** What it tells. `failure`: why a call did not end COMPLETED. */
export type HonestNews =
  | { readonly kind: 'begun' }
  | { readonly kind: 'ended'; readonly ms: number; readonly failure: string | null }
  | { readonly kind: 'done' }

/** A node takes 128 connections of its user at once. */
const MAX_RUNNING = 64

const [home = '', pace = '0'] = process.argv.slice(2)
const api = connect({ home })
const paceMs = Number(pace)
let isStopped = false

function tell(news: HonestNews): void {
  process.send?.(news)
}

async function one(): Promise<void> {
  tell({ kind: 'begun' })
  const from = performance.now()
  const question = { agent: 'text@victim', capability: 'text.stats', input: { text: 'a b' } }
  const failure = await api.call('message.call', question).then(
    ({ outcome }) => (outcome === 'COMPLETED' ? null : `it ended ${outcome}`),
    (error: unknown) => messageOf(error)
  )
  tell({ kind: 'ended', ms: performance.now() - from, failure })
}

/** Calls that do not wait for each other, so that those that wait count, too. */
async function paced(calls: number): Promise<void> {
  const running = new Set<Promise<void>>()
  const from = performance.now()
  for (let at = 0; at < calls && !isStopped; at++) {
    const call: Promise<void> = one().finally(() => running.delete(call))
    running.add(call)
    if (running.size >= MAX_RUNNING) await Promise.race(running)
    const restMs = from + (at + 1) * paceMs - performance.now()
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs))
  }
  await Promise.all(running)
}

async function inTurn(calls: number): Promise<void> {
  for (let at = 0; at < calls && !isStopped; at++) await one()
}

process.on('disconnect', () => process.exit(0))
process.on('message', (order: HonestOrder) => {
  isStopped = order === 'stop'
  if (order === 'stop') return
  const calls = order.calls ?? Number.POSITIVE_INFINITY
  void (paceMs === 0 ? inTurn(calls) : paced(calls)).then(() => tell({ kind: 'done' }))
})
