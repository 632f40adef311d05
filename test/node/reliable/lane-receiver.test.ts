import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { fromUtf8, utf8 } from '../../../src/kit/ids.js'
import { IncomingLanes, LaneControl } from '../../../src/node/reliable/lane-receiver.js'
import { ManualClock } from '../../support/manual-clock.js'

const [SELF, PEER] = ['y'.repeat(52), 'b'.repeat(52)]
const lane = (source: string) => ({
  source: { agentId: source, nodeId: PEER },
  target: { agentId: 'two', nodeId: SELF }
})
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The receiving ends of a node whose disk may be full. */
function scene(): {
  lanes: IncomingLanes
  said: string[]
  disk: { isFull: boolean }
  arrive(seq: number, base?: number): void
} {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const said: string[] = []
  const disk = { isFull: false }
  const lanes = new IncomingLanes({
    clock,
    ledger,
    self: SELF,
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    commit: (changes) =>
      disk.isFull ? Promise.reject(new NodeError('DISK_FULL', 'no space left')) : ledger.commit(changes),
    admit: ({ envelope }) =>
      Promise.resolve({
        changes: [],
        done: () => said.push(`done ${fromUtf8(envelope)}`),
        failed: () => said.push(`failed ${fromUtf8(envelope)}`)
      }),
    acknowledge: (_lane, { ack, isAll, isAnswer }) =>
      said.push(`ack ${ack}${isAll ? ' all' : ''}${isAnswer ? ' answer' : ''}`)
  })
  const arrive = (seq: number, base = 1): void =>
    lanes.onMessage(PEER, {
      source: 'one',
      target: 'two',
      seq,
      base,
      messageId: `m${seq}`,
      requestId: null,
      envelope: utf8(`${seq}`)
    })
  return { lanes, said, disk, arrive }
}

test('messages are handled in the order of their lane, each once, when they are durable', async (t) => {
  const { lanes, said, arrive } = scene()
  for (const seq of [2, 1, 1, 3]) arrive(seq)
  for (let round = 0; round < 5; round++) await turn()
  t.alike(
    said.filter((one) => one.startsWith('done')),
    ['done 1', 'done 2', 'done 3']
  )
  lanes.onGreet(PEER, { lanes: [{ source: 'one', target: 'two', base: 1 }] })
  t.is(said.at(-1), 'ack 3 all answer')
  lanes.close()
})

test('a message that the ledger does not take is not handled, and is taken when it comes again', async (t) => {
  const { lanes, said, disk, arrive } = scene()
  disk.isFull = true
  arrive(1)
  for (let round = 0; round < 5; round++) await turn()
  t.ok(said.includes('failed 1'))
  t.absent(said.includes('done 1'))
  disk.isFull = false
  arrive(1)
  for (let round = 0; round < 5; round++) await turn()
  t.ok(said.includes('done 1'))
  lanes.close()
})

test('greetings and acknowledgements of one turn for one node go in one message, and not over a path that is gone', async (t) => {
  const said: string[] = []
  const clock = new ManualClock()
  const control = new LaneControl({
    telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
    nextHop: { sendControl: (_peer, name, body) => said.push(`${name} ${JSON.stringify(body)}`) }
  })
  const at = { ack: 1, messageId: null, isAnswer: false }
  control.acknowledge(lane('one'), { ...at, isAnswer: true })
  control.acknowledge(lane('one'), { ...at, ack: 2 })
  control.acknowledge(lane('other'), at)
  await turn()
  t.alike(said, [
    `ack ${JSON.stringify({
      lanes: [
        { source: 'one', target: 'two', ack: 2, messageId: null },
        { source: 'other', target: 'two', ack: 1, messageId: null, isAnswer: false }
      ]
    })}`
  ])
  control.greet({ source: lane('one').target, target: lane('one').source }, 5)
  control.drop(PEER)
  await turn()
  t.is(said.length, 1)
})
