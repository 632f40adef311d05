import test, { type Assert } from 'brittle'
import {
  failure,
  hostAgent,
  type LocalAgent,
  type Runtime,
  type RuntimeContext
} from '../../../../src/adapters/agents/files/hosted-agent.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'
import { definitionOf } from '../../../support/agents/definition.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { ManualClock } from '../../../support/manual-clock.js'

interface Script {
  readonly agent: LocalAgent
  readonly clock: ManualClock
  /** The runs under way, each with what ends it. */
  readonly runs: { readonly context: RuntimeContext; readonly finish: (outcome: AgentOutcome) => void }[]
  readonly ends: () => number
}

/** An agent whose work ends when the test says so. */
function scripted(): Script {
  const clock = new ManualClock()
  const runs: Script['runs'] = []
  let ends = 0
  const runtime: Runtime = {
    run: (_task, context) => new Promise((finish) => runs.push({ context, finish })),
    end: () => {
      ends++
      return Promise.resolve()
    }
  }
  return {
    agent: hostAgent({ definition: definitionOf('scripted', { timeoutMs: 1000 }), runtime, clock }),
    clock,
    runs,
    ends: () => ends
  }
}

const done: AgentOutcome = { ok: true, result: 1 }
const task = taskOf('subject.do', {})

test('a run gets the order to end at its timeout, and is over when its work has ended', async (t: Assert) => {
  const { agent, clock, runs } = scripted()
  const running = agent.run(task, recordedRun())
  clock.advance(999)
  t.absent(runs[0]?.context.signal.aborted)
  clock.advance(1)
  t.ok(runs[0]?.context.signal.aborted)
  runs[0]?.finish(done)
  const message = 'no result within 1 s, the time limit of the agent; its work was ended'
  const late = { ok: false, code: 'TIMEOUT', message, data: { limitMs: 1000 } } as const
  t.alike(await running, late, 'a result that comes too late does not count')
  t.is(clock.pending, 0)
})

test('after its time nobody can say whether it was done, where the runtime says so of work that may go on elsewhere', async (t: Assert) => {
  const { agent, clock, runs } = scripted()
  const running = agent.run(task, recordedRun())
  clock.advance(1000)
  runs[0]?.finish({ ok: false, code: 'TASK_FAILED', message: 'the server was lost', isUnknown: true })
  const outcome = await running
  t.ok(!outcome.ok && outcome.code === 'TIMEOUT' && outcome.isUnknown === true)
})

test('work that may continue elsewhere is canceled when its caller cancels it, and unknown when its agent is closed', async (t: Assert) => {
  const lost = { ok: false, code: 'TASK_FAILED', message: 'the server was lost', isUnknown: true } as const
  for (const isClosed of [true, false]) {
    const { agent, runs } = scripted()
    const run = recordedRun()
    const running = agent.run(task, run)
    const closing = isClosed ? agent.close() : null
    if (!isClosed) run.abort()
    runs[0]?.finish(lost)
    const outcome = await running
    await closing
    t.alike(outcome.ok ? null : [outcome.code, outcome.isUnknown === true], ['CANCELED', isClosed])
  }
})

test('the first reason to stop is the outcome', async (t: Assert) => {
  const { agent, clock, runs } = scripted()
  const run = recordedRun()
  const running = agent.run(task, run)
  run.abort()
  clock.advance(5000)
  runs[0]?.finish(done)
  t.alike(await running, failure('CANCELED', 'canceled'))
})

test('work that rejects or throws is TASK_FAILED', async (t: Assert) => {
  const make = (run: Runtime['run']) =>
    hostAgent({
      definition: definitionOf('x'),
      runtime: { run, end: () => Promise.resolve() },
      clock: new ManualClock()
    })
  t.alike(await make(() => Promise.reject(new Error('late'))).run(task, recordedRun()), failure('TASK_FAILED', 'late'))
  const thrower = make(() => {
    throw new Error('at once')
  })
  t.alike(await thrower.run(task, recordedRun()), failure('TASK_FAILED', 'at once'))
})

test('progress is bounded, and a listener that throws stops nothing', async (t: Assert) => {
  const { agent, runs } = scripted()
  let count = 0
  const running = agent.run(task, {
    signal: new AbortController().signal,
    progress: () => {
      count++
      throw new Error('a bad listener')
    }
  })
  for (let i = 0; i < 20_000; i++) runs[0]?.context.progress(i)
  runs[0]?.finish(done)
  t.alike(await running, done)
  t.is(count, 10_000)
})

test('retire waits for the active runs, also for runs that begin meanwhile, then closes', async (t: Assert) => {
  const { agent, runs, ends } = scripted()
  const first = agent.run(task, recordedRun())
  let isRetired = false
  const retired = agent.retire().then(() => (isRetired = true))
  const second = agent.run(task, recordedRun())
  runs[0]?.finish(done)
  t.alike(await first, done)
  t.absent(isRetired || runs[1]?.context.signal.aborted)
  runs[1]?.finish(done)
  t.alike(await second, done)
  await retired
  t.is(ends(), 1)
  t.is((await agent.run(task, recordedRun())).ok, false)
})

test('close after retire does not wait for the work to end by itself', async (t: Assert) => {
  const { agent, runs, ends } = scripted()
  const running = agent.run(task, recordedRun())
  const retired = agent.retire()
  const closed = agent.close()
  t.ok(runs[0]?.context.signal.aborted)
  runs[0]?.finish(done)
  await Promise.all([retired, closed])
  t.alike(await running, failure('CANCELED', 'the agent was closed'))
  t.is(ends(), 1)
})
