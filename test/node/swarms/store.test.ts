import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { encodePayload } from '../../../src/domain/envelope/codec.js'
import { NodeError } from '../../../src/kit/errors.js'
import { utf8 } from '../../../src/kit/ids.js'
import { VoteStore } from '../../../src/node/swarms/consensus/vote-store.js'
import { SwarmStore, type SwarmRow } from '../../../src/node/swarms/store.js'
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
  await ledger.commit([store.settled('swarm_1', row(0))])
  t.alike(await store.results({ id: 'swarm_1' }), [row(0)])
  const { key } = store.settled('swarm_1', row(1))
  await ledger.commit([{ key, value: utf8('no payload') }])
  await failsWith(t, 'STORE_DAMAGED', () => store.results({ id: 'swarm_1' }))
})
