import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { encodePayload } from '../../../src/domain/envelope/codec.js'
import { NodeError } from '../../../src/kit/errors.js'
import { utf8 } from '../../../src/kit/ids.js'
import { VoteStore } from '../../../src/node/swarms/consensus/vote-store.js'
import { type SwarmHead, SwarmStore, type SwarmRow } from '../../../src/node/swarms/store.js'
import type { SwarmRequest } from '../../../src/ports/swarm-api.js'
import { failsWith } from '../../support/fails.js'
import { actor, hash } from '../../support/membership.js'

const ITEMS = 6
const row = (index: number, error: SwarmRow['row']['error'] = null): SwarmRow => {
  const status = error === null ? 'completed' : 'failed'
  const shown = {
    item: `item ${index}`,
    agent: 'a@b',
    attempt: 1,
    status,
    result: index,
    error,
    durationMs: 5
  } as const
  return { index, order: index + 1, holder: 'a@b', row: shown }
}

test('an outcome that another participant made invalid, or of another item, is left out of the results', async (t) => {
  const ledger = createMemoryLedger()
  const [store, votes] = [new SwarmStore(ledger, hash), new VoteStore(ledger, hash)]
  const failed = row(5, new NodeError('TASK_FAILED', 'no').toBody())
  const contents = [row(0), null, { ...row(2), row: 7 }, row(4), 'bytes', failed].map((one) => encodePayload(one))
  contents[4] = utf8('no payload')
  await ledger.commit(
    contents.map((content, index) => votes.contentChange('swarm_1', { index, items: ITEMS }, content))
  )
  t.alike(await store.results({ id: 'swarm_1', voters: [actor('a').id] }), [row(0), failed])
})

test('a damaged outcome of a swarm of this node alone is reported, since its item would run again', async (t) => {
  const ledger = createMemoryLedger()
  const store = new SwarmStore(ledger, hash)
  await ledger.commit([store.settled({ id: 'swarm_1' }, row(0))])
  t.alike(await store.results({ id: 'swarm_1' }), [row(0)])
  const { key } = store.settled({ id: 'swarm_1' }, row(1))
  await ledger.commit([{ key, value: utf8('no payload') }])
  await failsWith(t, 'STORE_DAMAGED', () => store.results({ id: 'swarm_1' }))
})

test('an outcome above 1 MiB of JSON is kept whole, when this node and each participant takes that much', async (t) => {
  const results: Readonly<Record<string, unknown>> = {
    numbers: Array.from({ length: 250_000 }, (_, at) => at),
    'short texts': Array.from({ length: 1500 }, () => 'y'.repeat(1000)),
    'a text without a form in UTF-8': `${'z'.repeat(1_100_000)}\ud800`,
    'more long texts than travel beside the JSON': Array.from({ length: 140 }, () => 'k'.repeat(17_000)),
    'a longer text behind them': [...Array.from({ length: 70 }, () => 'k'.repeat(17_000)), 'l'.repeat(1_200_000)]
  }
  const [big, small] = [actor('big').id, actor('small').id]
  const taken = { own: 4_194_304, by: (node: string) => (node === big ? 4_194_304 : 1_048_576) }
  for (const [name, result] of Object.entries(results)) {
    const ledger = createMemoryLedger()
    const store = new SwarmStore(ledger, hash, taken)
    const large = { ...row(0), row: { ...row(0).row, result } } as SwarmRow
    const change = store.settled({ id: 'swarm_1', voters: [big] }, large)
    await ledger.commit([change, store.settled({ id: 'swarm_2' }, large)])
    t.alike(await store.results({ id: 'swarm_1', voters: [big] }), [large], `${name}, from participants`)
    t.alike(await store.results({ id: 'swarm_2' }), [large], `${name}, of this node alone`)
    await failsWith(t, 'PAYLOAD_TOO_LARGE', () => store.settled({ id: 'swarm_1', voters: [big, small] }, large))
    const reader = new SwarmStore(ledger, hash)
    t.alike(await reader.results({ id: 'swarm_1', voters: [big] }), [], 'a node that takes less does not parse it')
  }
})

test('inputs above 1 MiB of JSON are there again after a restart, and in the fingerprint of their key', async (t) => {
  const inputs = [
    { list: Array.from({ length: 250_000 }, (_, at) => at) },
    { text: 'x'.repeat(2_000_000) },
    { text: `${'z'.repeat(1_100_000)}\ud800` }
  ]
  const ledger = createMemoryLedger()
  const store = new SwarmStore(ledger, hash)
  const items = inputs.map((input, at) => ({ name: `item ${at}`, input }))
  const head = { id: 'swarm_1', taskId: '', key: null, expiresAt: 1, itemCount: 3 } as unknown as SwarmHead
  await ledger.commit(store.launched(head, items))
  t.alike((await store.unfinished('swarm_1')).items, items)
  t.alike(await store.input('swarm_1', 1), inputs[1])
  const keyOf = (input: unknown): string =>
    store.key('k', { goal: 'g', items: [{ item: 'i', input }] } as unknown as SwarmRequest, []).fingerprint
  t.is(new Set(inputs.map(keyOf)).size, 3)
})
