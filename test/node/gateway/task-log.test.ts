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
    (await next.log.events(TASK.id, 0, 2)).map(({ type }) => type),
    ['message', 'status']
  )
  t.alike(await next.log.events(TASK.id, 2, 2), [])
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
