import test from 'brittle'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { GatewayTask } from '../../../src/domain/gateway/task.js'
import { TaskLog } from '../../../src/node/gateway/task-log.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ManualClock } from '../../support/manual-clock.js'

const TASK: GatewayTask = {
  id: 'task_1',
  contextId: 'ctx_1',
  owner: 'alice',
  messageId: 'm1',
  agent: 'text@one',
  capability: 'upper',
  by: { maxTier: 0, sandboxId: null },
  state: 'submitted',
  message: null,
  since: 1,
  createdAt: 1,
  updatedAt: 1,
  generation: 0,
  run: null
}

const SAID = { type: 'message', message: { messageId: 'm1', role: 'user', parts: [{ text: 'hi' }] } } as const

interface Scene {
  readonly log: TaskLog
  readonly told: string[]
  readonly clock: ManualClock
}

function sceneOf(ledger: Ledger): Scene {
  const clock = new ManualClock()
  const told: string[] = []
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  const log = new TaskLog({ clock, ledger, telemetry }, ({ state }, isFirst) =>
    told.push(`${state}${isFirst ? ' first' : ''}`)
  )
  return { log, told, clock }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 40; tick++) await Promise.resolve()
}

test('a task and its events are durable before any notification, and read after a restart', async (t) => {
  const ledger = createMemoryLedger()
  const { log, told } = sceneOf(ledger)
  const { task, durable } = log.begin(TASK, [SAID], [])
  t.alike([task.generation, told], [1, []])
  await durable
  t.alike(told, ['submitted first'])
  const heard: number[] = []
  log.on(TASK.id, (update) => heard.push(update?.event.generation ?? -1))
  t.is(log.add(task, { type: 'status', state: 'working' }), null)
  t.is(log.current(task).state, 'working')
  t.alike(heard, [], 'not durable yet')
  await settle()
  t.alike([heard, told], [[2], ['submitted first', 'working']])
  const next = sceneOf(ledger)
  const read: GatewayTask[] = []
  for await (const one of next.log.tasks()) read.push(one)
  t.alike(
    read.map(({ id, state, generation }) => [id, state, generation]),
    [['task_1', 'working', 2]]
  )
  t.alike(
    (await next.log.events(TASK.id, { after: 0, to: 2 })).map(({ type }) => type),
    ['message', 'status']
  )
  t.alike(await next.log.events(TASK.id, { after: 2, to: 2 }), [])
})

test('an input that does not fit says why and writes nothing', async (t) => {
  const { log, told } = sceneOf(createMemoryLedger())
  const { task, durable } = log.begin(
    TASK,
    [SAID, { type: 'status', state: 'working' }, { type: 'status', state: 'completed' }],
    []
  )
  await durable
  t.is(log.add(task, { type: 'status', state: 'working' }), 'it is completed')
  await settle()
  t.alike(told, ['completed first'])
})

test('a task whose first commit is refused is not there, and a later event waits for the ledger', async (t) => {
  const ledger = createMemoryLedger()
  let isFull = true
  const commit: Ledger['commit'] = (changes) => (isFull ? Promise.reject(new Error('full')) : ledger.commit(changes))
  const { log, told, clock } = sceneOf(
    new Proxy(ledger, {
      get: (target, name) => {
        if (name === 'commit') return commit
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      }
    })
  )
  await t.exception(log.begin(TASK, [SAID], []).durable, /full/)
  t.alike([log.changing(TASK.id), told], [undefined, []])
  isFull = false
  const { task, durable } = log.begin(TASK, [SAID], [])
  await durable
  isFull = true
  log.add(task, { type: 'status', state: 'working' })
  await settle()
  t.alike(told, ['submitted first'])
  isFull = false
  clock.advance(60_000)
  await settle()
  t.alike(told, ['submitted first', 'working'])
})

test('a message is found by its id, and a removed task leaves nothing', async (t) => {
  const ledger = createMemoryLedger()
  const { log } = sceneOf(ledger)
  const { task, durable } = log.begin(TASK, [SAID], [])
  await durable
  t.alike((await log.recordMessage(task, 'm1')).message?.parts, [{ text: 'hi' }])
  t.is((await log.recordMessage(task, 'm2')).message, null)
  const heard: unknown[] = []
  log.on(TASK.id, (update) => heard.push(update))
  await log.remove(task)
  t.alike([heard, await ledger.list({ from: '!', to: '~~', limit: 10 })], [[null], []])
})

/** A turn that counts. */
class CountedTurn {
  taken = 0
  bytes = 0

  take(): Promise<void> {
    this.taken++
    return Promise.resolve()
  }

  read(bytes: number): void {
    this.bytes += bytes
  }

  rest(): void {}
}

test('the newest events are in memory up to a size of all; a read of others takes its turn and counts', async (t) => {
  const { log } = sceneOf(createMemoryLedger())
  const text = 'x'.repeat(600_000)
  const tasks: GatewayTask[] = []
  for (let at = 0; at < 10; at++) {
    const input = { ...SAID, message: { ...SAID.message, parts: [{ text }] } }
    const { task, durable } = log.begin({ ...TASK, id: `task_${at}` }, [input], [])
    await durable
    tasks.push(task)
  }
  const taken = await Promise.all(
    tasks.map(async (task) => {
      const turn = new CountedTurn()
      const { history } = await log.snapshot(task, turn)
      t.is(history[0]?.parts[0]?.text?.length, text.length)
      t.is(turn.taken > 0, turn.bytes > text.length)
      return turn.taken > 0
    })
  )
  t.alike(taken, [true, true, true, true, true, true, true, false, false, false], '2,097,152 characters hold 3')
  const [last] = tasks.slice(-1)
  log.recordSent(last?.id ?? '')
  const turn = new CountedTurn()
  if (last !== undefined) await log.snapshot(last, turn)
  t.ok(turn.bytes > text.length, 'whose end was sent is read again')
})

test('a reader that may be slow is given records in small reads, each in the turn', async (t) => {
  const ledger = createMemoryLedger()
  const { log } = sceneOf(ledger)
  const { task, durable } = log.begin(TASK, [SAID], [])
  await durable
  for (let at = 0, now = task; at < 12; at++) {
    const message = { messageId: `a${at}`, role: 'agent', parts: [{ text: 'x'.repeat(90_000) }] } as const
    t.is(log.add(now, { type: 'status', state: 'working', message }), null)
    now = log.current(now)
    await settle()
  }
  const turn = new CountedTurn()
  let [read, reads] = [0, 0]
  const list: Ledger['list'] = async (range) => {
    t.is(turn.taken, 2 + reads++, 'one for the record of the task, and one for each read')
    const entries = await ledger.list(range)
    read += entries.length
    return entries
  }
  const next = sceneOf({
    get: (key) => ledger.get(key),
    list,
    commit: (changes) => ledger.commit(changes),
    compact: () => ledger.compact(),
    size: () => ledger.size(),
    close: () => ledger.close()
  })
  let seen = 0
  for await (const events of next.log.eventsByRecord(TASK.id, { after: 1, to: 13, turn })) {
    seen += events.length
    t.ok(read - seen <= 2, `${read - seen} records read ahead: 262,144 bytes have space for 2`)
    t.ok(turn.bytes > read * 90_000, 'they count')
  }
  t.is(seen, 12)
})
