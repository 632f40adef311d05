import test from 'brittle'
import fc from 'fast-check'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import type { ItemRecord } from '../../../../src/domain/swarm/coordination.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { fromUtf8, utf8 } from '../../../../src/kit/ids.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import { holds } from '../../../support/holds.js'
import { actor, hash } from '../../../support/membership.js'

const ITEMS = 3
const [a, b] = [actor('a').id, actor('b').id]

test('the durable votes are read back in their last state, for their own swarm alone', async (t) => {
  const vote = fc.record({
    epoch: fc.nat(9),
    candidate: fc.constantFrom(a, b, null),
    records: fc.array(
      fc.tuple(fc.nat(RECORDS.count(ITEMS) - 1), fc.record({ digest: fc.constantFrom('x', 'y'), epoch: fc.nat(9) })),
      {
        maxLength: 4
      }
    )
  })
  await holds(
    t,
    fc.asyncProperty(fc.array(vote, { maxLength: 5 }), async (votes) => {
      const ledger = createMemoryLedger()
      const store = new VoteStore(ledger, hash)
      const records = new Map<number, unknown>()
      for (const one of votes) {
        for (const [index, record] of one.records) records.set(index, record)
        const effect = {
          type: 'store',
          ...one,
          records: one.records as unknown as readonly [number, ItemRecord][]
        } as const
        await ledger.commit(store.changes('swarm_1', effect, []))
      }
      const { epoch, candidate, records: kept } = await store.stored('swarm_1')
      const last = votes.at(-1)
      const isLast = epoch === (last?.epoch ?? 0) && candidate === (last?.candidate ?? null)
      const isSame = JSON.stringify([...kept]) === JSON.stringify([...records].sort(([one], [other]) => one - other))
      return isLast && isSame && (await store.stored('swarm_2')).records.size === 0
    }),
    100
  )
})

test('the contents of outcomes are outcomes of the swarm, those of its end and of marks are not', async (t) => {
  const ledger = createMemoryLedger()
  const store = new VoteStore(ledger, hash)
  const indexes = [0, 2, RECORDS.end(ITEMS), RECORDS.mark(ITEMS, 0)]
  await ledger.commit(
    indexes.map((index) => store.contentChange('swarm_1', { index, items: ITEMS }, utf8(`of ${index}`)))
  )
  const contents = await Promise.all(indexes.map((index) => store.content('swarm_1', index, ITEMS)))
  t.alike(
    contents.map((content) => content && fromUtf8(content)),
    indexes.map((index) => `of ${index}`)
  )
  t.alike([...(await store.outcomes('swarm_1')).keys()], [0, 2])
  await ledger.commit([store.contentChange('swarm_1', { index: 2, items: ITEMS }, null)])
  t.is(await store.content('swarm_1', 2, ITEMS), null)
})

test('a node is a participant as it was recorded last; the same content has the same name', async (t) => {
  const ledger = createMemoryLedger()
  const store = new VoteStore(ledger, hash)
  t.is(await store.participant('swarm_1'), null)
  for (const state of ['invited', 'open'] as const) {
    const record = { ledger: 'ledger_1', state, seated: { [b]: 'ledger_2' } }
    await ledger.commit([store.participantChange('swarm_1', record)])
    t.alike(await store.participant('swarm_1'), record)
  }
  t.is(store.digest(utf8('one')), store.digest(utf8('one')))
  t.not(store.digest(utf8('one')), store.digest(utf8('other')))
})
