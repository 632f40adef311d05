import test from 'brittle'
import fc from 'fast-check'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { utf8 } from '../../../src/kit/ids.js'
import { rangeOf } from '../../../src/domain/reliable/keys.js'
import { LaneMessages, storedLanes, type StoredMessage } from '../../../src/node/reliable/lane-messages.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

const LANE = { source: { agentId: 'one', nodeId: 'y'.repeat(52) }, target: { agentId: 'two', nodeId: 'b'.repeat(52) } }
const message = (seq: number): StoredMessage => ({
  seq,
  messageId: `m${seq}`,
  requestId: seq % 2 === 0 ? `r${seq}` : null,
  bytes: seq,
  expiresAt: 1000,
  isVoid: false
})
const outgoing = ({ messageId, requestId, expiresAt }: StoredMessage) => ({
  messageId,
  requestId,
  expiresAt,
  envelope: utf8(messageId)
})

test('the ledger always has the messages of a lane, by their numbers', async (t) => {
  const telemetry = new MemoryTelemetry({ clock: new ManualClock(), level: 'error', format: 'text', write: () => {} })
  const step = fc.constantFrom('record' as const, 'forget' as const, 'blank' as const, 'renumber' as const)
  await holds(
    t,
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const ledger = createMemoryLedger()
      const messages = new LaneMessages(LANE, [])
      let live: StoredMessage[] = []
      let next = 1
      let made = 0
      for (const one of steps) {
        if (one === 'record') {
          const known = { ...message(++made), seq: next++ }
          await ledger.commit(messages.recorded(known, outgoing(known)))
          messages.add(known, utf8(known.messageId))
          live.push(known)
        } else if (one === 'forget') {
          await ledger.commit(messages.forgotten(live.slice(0, 1)))
          live = live.slice(1)
        } else if (one === 'blank' && live.length > 0 && !live[0].isVoid) {
          await ledger.commit(messages.blanked(live.slice(0, 1)))
          live = [{ ...live[0], bytes: 0, isVoid: true }, ...live.slice(1)]
        } else if (one === 'renumber' && live.length > 0) {
          await ledger.commit(messages.renumbered(live, next))
          live = live.map((known, at) => ({ ...known, seq: next + at }))
          next += live.length
        }
        if (messages.bytes !== live.reduce((sum, { bytes }) => sum + bytes, 0)) return false
      }
      const [stored] = await storedLanes(ledger, { telemetry, first: 1 })
      const expected = made === 0 ? undefined : { lane: LANE, next, live }
      if (JSON.stringify(stored) !== JSON.stringify(expected)) throw new Error(JSON.stringify([stored, expected]))
      await ledger.commit(messages.removal(live))
      return (await ledger.list({ from: '', to: '~', limit: 1000 })).length === 0
    }),
    100
  )
})

test('a lane with a damaged record goes on behind its stored messages, and not before the number that is given', async (t) => {
  const telemetry = new MemoryTelemetry({ clock: new ManualClock(), level: 'error', format: 'text', write: () => {} })
  const ledger = createMemoryLedger()
  const messages = new LaneMessages(LANE, [])
  for (const one of [message(4), message(5)]) await ledger.commit(messages.recorded(one, outgoing(one)))
  const [record] = await ledger.list({ ...rangeOf('lane-out'), limit: 1 })
  await ledger.commit([{ key: record?.key ?? '', value: new Uint8Array([1]) }])
  for (const [first, next] of [
    [1, 6],
    [9, 9]
  ] as const)
    t.is((await storedLanes(ledger, { telemetry, first }))[0]?.next, next, `first ${first}`)
})

test('a message is refused for good when a relay did not pass its only transmission on', (t) => {
  const messages = new LaneMessages(LANE, [message(2)])
  t.is(messages.requestOf(message(2)), 'r2')
  messages.sent('m2')
  t.absent(messages.refused('m2'), 'the process before may have sent it too')
  t.ok(messages.refused('m2'))
  t.absent(messages.refused('m2'), 'no transmission is left')
  messages.sent('m2')
  messages.forgotten([message(2)])
  t.absent(messages.refused('m2'), 'it is acknowledged')
})

test('the content of a message is kept only while the message is not acknowledged', (t) => {
  const messages = new LaneMessages(LANE, [message(2)])
  messages.putContent('m2', utf8('read'))
  t.alike(messages.content('m2'), utf8('read'))
  messages.dropContent('m2')
  t.is(messages.content('m2'), undefined)
  messages.forgotten([message(2)])
  messages.putContent('m2', utf8('read too late'))
  t.is(messages.content('m2'), undefined)
})
