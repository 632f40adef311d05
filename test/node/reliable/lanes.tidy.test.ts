import test from 'brittle'
import { countingIds } from '../../support/counting-ids.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { utf8 } from '../../../src/kit/ids.js'
import { firstNumber } from '../../../src/domain/reliable/lane-sender.js'
import { KEYS } from '../../../src/domain/reliable/keys.js'
import { Lanes } from '../../../src/node/reliable/lanes.js'
import type { Outgoing } from '../../../src/node/reliable/lane-sender.js'
import type { Ledger, LedgerChange } from '../../../src/ports/ledger.js'
import { ManualClock } from '../../support/manual-clock.js'

const A = 'y'.repeat(52)
const B = 'b'.repeat(52)
const LANE = { source: { agentId: 'one', nodeId: A }, target: { agentId: 'two', nodeId: B } }

test('removals that the ledger does not take are tried again every 5 s, and no more once the node has stopped', async (t) => {
  const clock = new ManualClock()
  const disk = createMemoryLedger()
  let tries = 0
  let isFull = false
  const commit = (changes: readonly LedgerChange[]): Promise<void> => {
    tries++
    return isFull ? Promise.reject(new NodeError('DISK_FULL', 'no space left')) : disk.commit(changes)
  }
  const lanes = lanesOn({ ...ledgerOf(disk), commit }, clock)
  const before = firstNumber(clock.now()) - 1
  const acknowledge = (count: number): void =>
    lanes.onAck(B, { lanes: [{ source: 'one', target: 'two', ack: before + count, messageId: null }] })
  lanes.start()
  for (const messageId of ['m1', 'm2'])
    await lanes.record(LANE, { messageId, requestId: null, envelope: utf8('.'), expiresAt: clock.now() + 3_600_000 })
  acknowledge(0)
  acknowledge(1)
  isFull = true
  tries = 0
  for (let seconds = 0; seconds < 60; seconds++) {
    clock.advance(1000)
    await turn()
  }
  t.ok(tries >= 10 && tries <= 13, `${tries} tries in a minute`)
  await lanes.stop()
  acknowledge(2)
  for (let seconds = 0; seconds < 10; seconds++) {
    clock.advance(1000)
    await turn()
  }
  t.is(clock.pending, 0)
})

test('lanes of a ledger that was put back go on behind all numbers that were used since, and those of one that was not where they were', async (t) => {
  const clock = new ManualClock()
  const disk = createMemoryLedger()
  const message = (messageId: string): Outgoing => ({
    messageId,
    requestId: null,
    envelope: utf8('.'),
    expiresAt: clock.now() + 3_600_000
  })
  const opened = async (): Promise<Lanes> => {
    const lanes = lanesOn(disk, clock)
    await lanes.open()
    return lanes
  }
  const first = firstNumber(clock.now())
  const lanes = await opened()
  for (const id of ['m1', 'm2']) await lanes.record(LANE, message(id))
  await lanes.stop()
  clock.advance(60_000)
  const again = await opened()
  t.is(again.lastSequence(LANE), first + 1)
  await again.stop()
  // A backup has no name.
  await disk.commit([{ key: KEYS.ledger, value: null }])
  const putBack = await opened()
  const later = firstNumber(clock.now())
  t.alike(
    (await putBack.unacknowledged(LANE)).map(({ messageId, seq }) => [messageId, seq]),
    [
      ['m1', later],
      ['m2', later + 1]
    ]
  )
  await putBack.record(LANE, message('m3'))
  t.is(putBack.lastSequence(LANE), later + 2)
  await putBack.stop()
})

test('of a ledger that was put back all lanes are numbered anew, though a start ends while some are not', async (t) => {
  const clock = new ManualClock()
  const disk = createMemoryLedger()
  const others = ['two', 'three', 'four'].map((agentId) => ({ ...LANE, target: { agentId, nodeId: B } }))
  const before = lanesOn(disk, clock)
  await before.open()
  for (const [at, lane] of others.entries())
    await before.record(lane, {
      messageId: `m${at}`,
      requestId: null,
      envelope: utf8('.'),
      expiresAt: clock.now() + 3_600_000
    })
  await before.stop()
  await disk.commit([{ key: KEYS.ledger, value: null }])
  clock.advance(60_000)
  let commits = 0
  const commit: Ledger['commit'] = (changes) =>
    ++commits === 2 ? Promise.reject(new NodeError('DISK_FULL', 'no space left')) : disk.commit(changes)
  const partly = lanesOn({ ...ledgerOf(disk), commit }, clock)
  await partly.open()
  await partly.stop()
  clock.advance(60_000)
  const again = lanesOn(disk, clock)
  await again.open()
  const later = firstNumber(clock.now())
  t.alike(
    others.map((lane) => again.lastSequence(lane)),
    [later, later, later]
  )
  await again.stop()
  const last = lanesOn(disk, clock)
  clock.advance(60_000)
  await last.open()
  t.is(last.lastSequence(LANE), later, 'and are not once more when all are')
  await last.stop()
})

function ledgerOf(disk: Ledger): Ledger {
  return {
    get: (key) => disk.get(key),
    list: (range) => disk.list(range),
    size: () => disk.size(),
    compact: () => disk.compact(),
    close: () => disk.close(),
    commit: (changes) => disk.commit(changes)
  }
}

/** Lanes of a node with a link that takes everything and answers nothing. */
function lanesOn(ledger: Ledger, clock: ManualClock): Lanes {
  return new Lanes({
    clock,
    ledger,
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    self: A,
    chance: () => 0,
    isOnline: () => true,
    nextHop: { isReachable: () => true, sendFrame: () => {}, sendControl: () => {}, seek: () => {}, doubt: () => {} },
    onAcknowledged: () => {},
    ids: countingIds(),
    onGivenUp: () => {},
    onUndelivered: () => {},
    admit: () => Promise.resolve({ changes: [], done: () => {}, failed: () => {} })
  })
}

/** Everything that is ready goes on. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
