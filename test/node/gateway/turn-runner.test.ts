import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import type { GatewayTask } from '../../../src/domain/gateway/task.js'
import { TaskLog } from '../../../src/node/gateway/task-log.js'
import { TurnRunner, type TurnRunnerDeps } from '../../../src/node/gateway/turn-runner.js'
import { TaskTable } from '../../../src/node/tasks/task-table.js'
import { countingIds } from '../../support/counting-ids.js'
import { SETTINGS } from '../../support/fake-node.js'
import { ManualClock } from '../../support/manual-clock.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'

const RUN = { requestId: 'req_1', taskId: 'task_1' }
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
  run: RUN
}

test('a task fails when the result of its turn cannot be recorded: its client does not wait for ever', async (t) => {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  const ids = countingIds()
  const tasks = new TaskTable({ clock, ids, telemetry })
  const log = new TaskLog({ clock, ledger: createMemoryLedger(), telemetry }, () => {})
  const unreadable = {
    get a2a(): never {
      throw new Error('unreadable')
    }
  }
  const node = {
    deps: { ids, settings: SETTINGS, telemetry, toAgentJson: () => unreadable },
    self: 'one',
    tasks
  } as unknown as TurnRunnerDeps
  const { task, durable } = log.begin(
    TASK,
    [{ type: 'message', message: { messageId: 'm1', role: 'user', parts: [{ text: 'hi' }] } }],
    []
  )
  await durable
  const runner = new TurnRunner(node, log, {
    taskOf: () => log.current(task),
    rules: null,
    conversations: { of: () => Promise.reject(new Error('not asked')) }
  })
  tasks.open(
    { kind: 'request', role: 'callee', agent: TASK.agent, capability: TASK.capability, description: '' },
    RUN.taskId
  )
  runner.retell(task, RUN)
  tasks.complete(RUN.taskId, 'HI')
  const { state, message } = log.current(task)
  t.alike([state, message?.parts], ['failed', [{ text: 'what its agent told could not be recorded' }]])
})
