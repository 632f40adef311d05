import test from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { CommittedRecords } from '../../../../src/node/swarms/consensus/committed-results.js'
import type { SwarmHead } from '../../../../src/node/swarms/store.js'
import { Participant, type ParticipantDeps, type SwarmWord } from '../../../../src/node/swarms/consensus/participant.js'
import { ContentStore } from '../../../../src/node/swarms/consensus/content-store.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

const [a, b, c] = [actor('a').id, actor('b').id, actor('c').id]
const items = 2
const head = { id: 'swarm_1', itemCount: items, voters: [a, b, c] } as unknown as SwarmHead

test('a vote that becomes durable late does not replace the outcome that was reported meanwhile', async (t) => {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const swarmVotes = new VoteStore(ledger, hash)
  const [late, told] = [utf8('what a former coordinator proposed'), utf8('what was accepted')]
  const [before, accepted] = [late, told].map((content) => ({ index: 0, digest: swarmVotes.digest(content) }))
  if (before === undefined || accepted === undefined) throw new Error('two names')
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => (go = resolve))
  let answered = (): void => {}
  const recorded = new Promise<void>((resolve) => (answered = resolve))
  const parts: ParticipantDeps = {
    clock,
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    self: c,
    swarmVotes,
    commit: async (changes) => {
      await gate
      await ledger.commit(changes)
    },
    tell: (_to, word: SwarmWord) => {
      if (word.body.kind === 'recorded') answered()
    }
  }
  const shelf = new ContentStore(parts, head)
  const records = new CommittedRecords(items)
  const seat = new Participant(parts, {
    coordination: { swarm: head.id, itemCount: RECORDS.count(items), voters: [a, b, c], mayTakeOver: true },
    items,
    contentStore: shelf,
    isVoid: (name) => records.isVoid(name),
    run: 'run',
    start: { type: 'fresh' },
    onBegin: () => t.fail('it does not stand'),
    onAccepted: () => t.fail('it does not stand'),
    onEnded: () => t.fail('it does not stand'),
    onStored: () => {},
    onFailed: () => t.fail('the ledger takes all')
  })
  t.teardown(() => seat.close())
  const about = { swarm: head.id, run: 'other', epoch: 1 }
  shelf.contents.put(before, late)
  seat.receive(a, { ...about, kind: 'ask', round: 1 })
  seat.receive(a, { ...about, kind: 'record', round: 2, items: [before] })
  // Others have accepted it in a higher epoch; it is told here.
  records.add([accepted], { total: 1, epoch: 2 })
  await ledger.commit([swarmVotes.contentChange(head.id, { index: 0, items }, told)])
  go()
  await recorded
  const kept = await swarmVotes.content(head.id, 0, items)
  t.is(kept === null ? '' : swarmVotes.digest(kept), accepted.digest)
  t.absent(seat.hasStored(0), 'its own was not stored')
  const other = { index: 1, digest: swarmVotes.digest(late) }
  shelf.contents.put(other, late)
  const again = new Promise<void>((resolve) => (answered = resolve))
  seat.receive(a, { ...about, kind: 'record', round: 3, items: [other] })
  await again
  t.ok(seat.hasStored(1))
  seat.propose(1, told)
  t.absent(seat.hasStored(1), 'it stored a vote for another content')
})
