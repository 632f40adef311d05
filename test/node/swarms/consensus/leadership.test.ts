import test from 'brittle'
import fc from 'fast-check'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { leasesFrom } from '../../../../src/domain/swarm/coordination.js'
import { RECORDS } from '../../../../src/domain/swarm/record-index.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { Leadership } from '../../../../src/node/swarms/consensus/leadership.js'
import { SwarmEventLog } from '../../../../src/node/swarms/event-log.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

const ITEMS = 4
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Scene {
  readonly term: Leadership
  /** Indexes that were proposed to the participants. */
  readonly proposed: number[]
  readonly committed: string[]
  /** Indexes of the records that the participant here has stored. */
  readonly stored: Set<number>
  isCoordinating: boolean
  accept(...indexes: number[]): void
}

function scene(accepted: readonly number[] = []): Scene {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const [proposed, committed] = [[] as number[], [] as string[]]
  const stored = new Set<number>()
  const participant = {
    isCoordinating: true,
    hasStored: (index: number) => stored.has(index),
    propose: (index: number) => {
      proposed.push(index)
      return { index, digest: `of ${index}` }
    }
  }
  const term = new Leadership({
    clock,
    telemetry,
    participant,
    self: actor('self').id,
    eventLog: new SwarmEventLog(telemetry),
    epoch: 2,
    items: ITEMS,
    accepted: new Set(accepted),
    commit: (changes) => {
      committed.push(...changes.map(({ key }) => key))
      return Promise.resolve()
    }
  })
  return {
    term,
    proposed,
    committed,
    stored,
    get isCoordinating() {
      return participant.isCoordinating
    },
    set isCoordinating(is) {
      participant.isCoordinating = is
    },
    accept: (...indexes) => term.onAccepted(indexes.map((index) => ({ index, digest: `of ${index}` })))
  }
}

const record = (index: number): { readonly index: number; readonly content: Uint8Array } => ({
  index,
  content: utf8(`${index}`)
})

test('outcomes are reported in the order in which they came, each when a majority has accepted it', async (t) => {
  const order = fc.shuffledSubarray([0, 1, 2, 3], { minLength: 0, maxLength: 4 })
  await holds(
    t,
    fc.asyncProperty(order, async (accepted) => {
      const { term, accept } = scene()
      const told: number[] = []
      for (const index of [0, 1, 2, 3]) term.add({ changes: [], record: record(index), notify: () => told.push(index) })
      const isIn = new Set<number>()
      for (const index of accepted) {
        accept(index)
        isIn.add(index)
        await turn()
        const upTo = [0, 1, 2, 3].findIndex((one) => !isIn.has(one))
        if (told.length !== (upTo < 0 ? ITEMS : upTo)) return false
      }
      await term.stop()
      return told.every((one, at) => one === at)
    }),
    60
  )
})

test('an outcome accepted before is not proposed again, and one record is proposed once', async (t) => {
  const { term, proposed, accept } = scene([1])
  const told: string[] = []
  term.add({ changes: [], record: record(1), notify: () => told.push('before') })
  const lease = { index: 2, agent: 'a@b', attempt: 1, failures: 0, isRepeatable: false }
  const marks = [term.mark(lease), term.mark(lease)]
  t.alike(proposed, [RECORDS.mark(ITEMS, 2)])
  accept(RECORDS.mark(ITEMS, 2))
  t.alike(await Promise.all(marks), [true, true])
  t.alike(told, ['before'])
})

test('a former coordinator reports nothing, and has nothing accepted', async (t) => {
  const one = scene()
  const told: string[] = []
  one.term.add({ changes: [], record: record(0), notify: () => told.push('outcome') })
  const mark = one.term.mark({ index: 1, agent: 'a@b', attempt: 1, failures: 0, isRepeatable: false })
  await one.term.stop()
  t.is(await mark, false)
  t.absent(one.term.isOn)
  one.accept(0)
  await turn()
  t.alike(told, [])
  const other = scene()
  other.isCoordinating = false
  t.is(await other.term.mark({ index: 1, agent: 'a@b', attempt: 1, failures: 0, isRepeatable: false }), false)
  t.alike(other.proposed, [])
})

test('the end of a swarm is known when all outcomes were reported, and durable here only when a majority has accepted it', async (t) => {
  const { term, proposed, committed, accept } = scene()
  const told: string[] = []
  term.add({ changes: [], record: record(0), notify: () => told.push('outcome') })
  term.addLast(() => {
    told.push('made')
    return {
      changes: [{ key: 'end', value: null }],
      record: record(RECORDS.end(ITEMS)),
      notify: () => told.push('end')
    }
  })
  await turn()
  t.alike(told, [])
  accept(0)
  await turn()
  t.alike([told, committed], [['outcome', 'made'], []])
  t.alike(proposed, [0, RECORDS.end(ITEMS)])
  accept(RECORDS.end(ITEMS))
  await term.flushed()
  t.alike([told, committed], [['outcome', 'made', 'end'], ['end']])
})

test('outcomes that others accepted before this node stored them are durable here with the end', async (t) => {
  const { term, committed, stored, accept } = scene()
  for (const index of [0, 1, 2])
    term.add({ changes: [{ key: `outcome ${index}`, value: null }], record: record(index), notify: () => {} })
  term.addLast(() => ({
    changes: [{ key: 'end', value: null }],
    record: record(RECORDS.end(ITEMS)),
    notify: () => {}
  }))
  stored.add(0)
  accept(0, 1, 2)
  await turn()
  stored.add(1)
  accept(RECORDS.end(ITEMS))
  await term.flushed()
  t.alike(committed, ['outcome 2', 'end'])
})

test('a lease of this coordinator is displayed with its own count', (t) => {
  const { term } = scene()
  t.is(term.attemptOf(leasesFrom(2) + 3), 3)
  t.is(term.attemptOf(0), 0)
})
