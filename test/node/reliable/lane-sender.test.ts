import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { ReliableFrame } from '../../../src/domain/reliable/frame.js'
import { decodeReliable, encodeReliable } from '../../../src/domain/reliable/frame.js'
import { KEYS, laneText, readMessageKey } from '../../../src/domain/reliable/keys.js'
import { messageRecord } from '../../../src/domain/reliable/records.js'
import { NodeError } from '../../../src/kit/errors.js'
import { fromUtf8, utf8 } from '../../../src/kit/ids.js'
import { OutgoingLane } from '../../../src/node/reliable/lane-sender.js'
import type { GivenUp } from '../../../src/node/reliable/lane-sender.js'
import { failsWith } from '../../support/fails.js'
import { ManualClock } from '../../support/manual-clock.js'

const LANE = { source: { agentId: 'one', nodeId: 'y'.repeat(52) }, target: { agentId: 'two', nodeId: 'b'.repeat(52) } }

/** A lane that was opened anew with three messages in its ledger, which is read when the test says so. */
async function scene(): Promise<Scene> {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const made: Scene = {
    sent: [],
    frames: [],
    givenUp: [],
    reads: [],
    hold: new Hold(),
    clock,
    ledger,
    lane: null as unknown as OutgoingLane
  }
  const open = async (): Promise<OutgoingLane> => {
    const stored = await ledger.list({ from: 'out/', to: 'out0', limit: 10 })
    const live = stored.map(({ key, value }) => ({ seq: readMessageKey(key).seq, ...messageRecord.decode(value) }))
    return new OutgoingLane(
      {
        clock,
        ledger: {
          get: (key) =>
            new Promise((resolve, reject) =>
              made.reads.push({ go: () => void ledger.get(key).then(resolve, reject), fail: reject })
            )
        },
        telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
        chance: () => 0,
        expiryNow: () => clock.now(),
        send: (frame) => {
          made.frames.push(decodeReliable(encodeReliable(frame)))
          made.sent.push(`${frame.seq} ${frame.envelope === null ? 'nothing' : fromUtf8(frame.envelope)}`)
        },
        greet: () => {},
        commit: (changes) => made.hold.commit(() => ledger.commit(changes)),
        tidy: (changes) => void ledger.commit(changes),
        onAcknowledged: () => {},
        onGivenUp: (messages) => made.givenUp.push(...messages),
        onUndelivered: () => {}
      },
      LANE,
      { next: live.length + 1, live }
    )
  }
  const before = await open()
  for (const at of [1, 2, 3]) {
    const times = { expiresAt: clock.now() + (at === 3 ? 60_000 : at * 1000) }
    await before.record({ messageId: `m${at}`, requestId: `r${at}`, envelope: utf8(`text ${at}`), ...times }, () => [])
  }
  return Object.assign(made, { lane: await open() })
}

interface Scene {
  readonly sent: string[]
  /** As their receiver reads them. */
  readonly frames: (ReliableFrame | null)[]
  readonly givenUp: GivenUp[]
  readonly reads: { readonly go: () => void; readonly fail: (error: Error) => void }[]
  readonly hold: Hold
  readonly clock: ManualClock
  readonly ledger: ReturnType<typeof createMemoryLedger>
  readonly lane: OutgoingLane
}

/** A ledger that takes its time, and may refuse one commit while another waits, as a guarded one does. */
class Hold {
  refuse: NodeError | null = null
  #tail: Promise<void> = Promise.resolve()

  /** Commits wait from now on, until what it gives is called. */
  next(): () => void {
    let go = (): void => {}
    this.#tail = new Promise((resolve) => {
      go = resolve
    })
    return go
  }

  async commit(run: () => Promise<void>): Promise<void> {
    if (this.refuse !== null) throw this.refuse
    await this.#tail
    await run()
  }
}

test('a message given up or acknowledged while it was read is not sent: its number is below the base that its receiver gets', async (t) => {
  const { lane, reads, sent, frames, clock, givenUp } = await scene()
  lane.step({ type: 'up' })
  lane.step({ type: 'ack', ack: 0, messageId: null })
  t.is(reads.length, 1, 'the first is read')
  clock.advance(1500)
  lane.tick()
  t.alike(givenUp, [{ messageId: 'm1', requestId: 'r1' }])
  reads[0]?.go()
  await turn()
  reads[1]?.go()
  await turn()
  lane.step({ type: 'ack', ack: 3, messageId: 'm3' })
  reads[2]?.go()
  await turn()
  t.alike(sent, ['2 text 2'])
  t.absent(frames.includes(null), 'all of it can be read')
})

test('a message that cannot be read is read again: it is not taken for one that was given up', async (t) => {
  const { lane, reads, sent, clock } = await scene()
  lane.step({ type: 'up' })
  lane.step({ type: 'ack', ack: 0, messageId: null })
  reads[0]?.fail(new Error('EIO'))
  await turn()
  t.alike(sent, [])
  clock.advance(500)
  lane.tick()
  for (const at of [1, 2, 3]) {
    reads[at]?.go()
    await turn()
  }
  t.alike(sent, ['1 text 1', '2 text 2', '3 text 3'])
})

test('a message whose content is gone for good is given up, and holds up none behind it', async (t) => {
  const { lane, reads, sent, givenUp, ledger } = await scene()
  await ledger.commit([{ key: KEYS.content('m2'), value: null }])
  lane.step({ type: 'up' })
  lane.step({ type: 'ack', ack: 0, messageId: null })
  for (const at of [0, 1, 2]) {
    reads[at]?.go()
    await turn()
  }
  t.alike(givenUp, [{ messageId: 'm2', requestId: 'r2' }])
  t.alike(sent, ['1 text 1', '2 nothing', '3 text 3'])
})

test('a message given up behind others no longer counts as waiting, and stays given up over a restart', async (t) => {
  const { lane, ledger } = await scene()
  lane.giveUp('r2')
  await turn()
  t.alike(lane.load, { count: 3, bytes: 12 })
  const record = await ledger.get(KEYS.message(laneText(LANE), 2))
  t.is(record === null ? null : messageRecord.decode(record).isVoid, true)
})

test('a message that is refused while one before it is still being recorded takes no number from that one', async (t) => {
  const { lane, ledger, hold, sent, clock } = await scene()
  lane.step({ type: 'up' })
  lane.step({ type: 'ack', ack: 3, messageId: 'm3' })
  const record = (messageId: string): Promise<void> =>
    lane.record({ messageId, requestId: null, envelope: utf8(messageId), expiresAt: clock.now() + 60_000 }, () => [])
  const before = hold.next()
  const first = record('before')
  hold.refuse = new NodeError('DISK_FULL', 'nothing new is taken')
  await failsWith(t, 'DISK_FULL', () => record('refused'))
  hold.refuse = null
  const last = record('behind')
  before()
  await Promise.all([first, last])
  t.alike(sent, ['4 before', '5 behind'])
  for (const messageId of ['before', 'behind']) {
    const seq = messageId === 'before' ? 4 : 5
    const bytes = await ledger.get(KEYS.message(laneText(LANE), seq))
    t.is(bytes === null ? null : messageRecord.decode(bytes).messageId, messageId)
  }
})

test('a message given up, acknowledged or expired while a lane is renumbered is dropped under its new number: the ledger equals the lane', async (t) => {
  const { lane, ledger, hold, clock } = await scene()
  lane.step({ type: 'up' })
  const go = hold.next()
  // Its receiver has what this end never sent.
  lane.step({ type: 'ack', ack: 4, messageId: 'of another' })
  await turn()
  lane.giveUp('r1')
  lane.step({ type: 'ack', ack: 2, messageId: 'm2' })
  clock.advance(2500)
  lane.tick()
  const next = lane.record(
    { messageId: 'm4', requestId: 'r4', envelope: utf8('text 4'), expiresAt: clock.now() + 60_000 },
    () => []
  )
  go()
  await next
  await turn()
  const held = async (): Promise<[number, string][]> => {
    const stored = await ledger.list({ from: 'out/', to: 'out0', limit: 10 })
    return stored.map(({ key, value }) => [readMessageKey(key).seq, messageRecord.decode(value).messageId])
  }
  t.alike(await held(), [
    [6, 'm2'],
    [7, 'm3'],
    [8, 'm4']
  ])
  t.alike(
    await held(),
    lane.messages.map(({ seq, messageId }) => [seq, messageId])
  )
  lane.tick()
  await turn()
  t.alike(await held(), [
    [7, 'm3'],
    [8, 'm4']
  ])
})

/** Everything that is ready goes on. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
