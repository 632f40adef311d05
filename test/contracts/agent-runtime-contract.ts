import test, { type Assert } from 'brittle'
import type { AgentLimits, AgentOutcome, HostedAgent } from '../../src/ports/agent-runtime.js'
import { isRunning } from '../support/agents/eventually.js'
import { recordedRun, taskOf } from '../support/agents/task.js'

/** Work that only cancellation or the time limit ends. */
export interface EndlessWork {
  /** Reads as `work that <name>`. */
  readonly name: string
  readonly capability: string
  readonly input: unknown
  /** The reported pids that may live on after the run: those of a process that stays up. */
  readonly survivors: readonly string[]
}

/** An agent under test and what to ask of it. A kind of work that a runtime cannot do is left out. */
export interface AgentSubject {
  /** Makes the agent; it is closed by the suite. */
  readonly make: (t: Assert, limits: Partial<AgentLimits>) => Promise<HostedAgent> | HostedAgent
  /** Work that succeeds, with its result. */
  readonly succeeds: { readonly capability: string; readonly input: unknown; readonly result: unknown }
  /** Work that fails, and what its message holds. */
  readonly fails: { readonly capability: string; readonly input: unknown; readonly message: RegExp }
  /** Work that reports {step: 1} to {step: 50}, then is done. */
  readonly reports?: { readonly capability: string; readonly input: unknown }
  /** Work without end that first reports the pids of its processes. Each is tried. */
  readonly endless: readonly EndlessWork[]
  /** Work whose result has more than 1,000 bytes. */
  readonly large?: { readonly capability: string; readonly input: unknown }
}

function codeOf(outcome: AgentOutcome): string {
  return outcome.ok ? 'ok' : outcome.code
}

/** What every HostedAgent keeps, whatever runs it. */
export function agentRuntimeContract(name: string, subject: AgentSubject): void {
  const open = async (t: Assert, limits: Partial<AgentLimits> = {}): Promise<HostedAgent> => {
    const agent = await subject.make(t, limits)
    t.teardown(() => agent.close())
    return agent
  }

  test(`${name}: a run gives its result`, async (t: Assert) => {
    const agent = await open(t)
    const { capability, input, result } = subject.succeeds
    t.alike(await agent.run(taskOf(capability, input), recordedRun()), { ok: true, result })
    t.alike(await agent.run(taskOf(capability, input), recordedRun()), { ok: true, result }, 'and so does the next')
  })

  test(`${name}: failing work is an outcome with a message, never an exception`, async (t: Assert) => {
    const agent = await open(t)
    const outcome = await agent.run(taskOf(subject.fails.capability, subject.fails.input), recordedRun())
    t.is(codeOf(outcome), 'TASK_FAILED')
    t.ok(!outcome.ok && subject.fails.message.test(outcome.message), 'and says why')
    const { capability, input } = subject.succeeds
    t.ok((await agent.run(taskOf(capability, input), recordedRun())).ok, 'and the agent goes on')
  })

  test(`${name}: a run that is aborted before it begins does nothing`, async (t: Assert) => {
    const agent = await open(t)
    const run = recordedRun()
    run.abort()
    const outcome = await agent.run(taskOf(subject.succeeds.capability, subject.succeeds.input), run)
    t.is(codeOf(outcome), 'CANCELED')
    t.is(run.reports.length, 0)
  })

  for (const endless of subject.endless) {
    test(`${name}: cancellation ends work that ${endless.name}, and resolves when its processes are gone`, async (t: Assert) => {
      const agent = await open(t)
      const run = recordedRun()
      const running = agent.run(taskOf(endless.capability, endless.input), run)
      const pids = Object.entries((await run.report()) as Record<string, number>)
      run.abort()
      t.is(codeOf(await running), 'CANCELED')
      for (const [role, pid] of pids) t.is(isRunning(pid), endless.survivors.includes(role), `${role} ${pid}`)
      t.ok(
        (await agent.run(taskOf(subject.succeeds.capability, subject.succeeds.input), recordedRun())).ok,
        'the next task runs'
      )
    })
  }

  const { large, reports } = subject
  const [slow] = subject.endless
  if (slow !== undefined) {
    test(`${name}: work that takes too long is a TIMEOUT`, async (t: Assert) => {
      const agent = await open(t, { timeoutMs: 300 })
      t.is(codeOf(await agent.run(taskOf(slow.capability, slow.input), recordedRun())), 'TIMEOUT')
    })

    test(`${name}: close cancels what runs`, async (t: Assert) => {
      const agent = await open(t)
      const run = recordedRun()
      const running = agent.run(taskOf(slow.capability, slow.input), run)
      const [pid = 0] = Object.values((await run.report()) as Record<string, number>)
      await agent.close()
      t.is(codeOf(await running), 'CANCELED')
      t.absent(isRunning(pid), 'and no process is left')
    })
  }

  if (large !== undefined) {
    test(`${name}: a result over the limit is PAYLOAD_TOO_LARGE, and its error names the setting`, async (t: Assert) => {
      const agent = await open(t, { maxOutputBytes: 1000 })
      const outcome = await agent.run(taskOf(large.capability, large.input), recordedRun())
      t.is(codeOf(outcome), 'PAYLOAD_TOO_LARGE')
      const text = outcome.ok ? '' : outcome.message
      t.ok(/\b1000 bytes\b.*\(.*maxOutput/.test(text), text)
    })
  }

  if (reports !== undefined) {
    test(`${name}: progress arrives in order and before the outcome`, async (t: Assert) => {
      const agent = await open(t)
      const run = recordedRun()
      t.is(codeOf(await agent.run(taskOf(reports.capability, reports.input), run)), 'ok')
      t.alike(
        run.reports,
        Array.from({ length: 50 }, (_, i) => ({ step: i + 1 }))
      )
    })
  }

  test(`${name}: close may be repeated, and a closed agent takes no work`, async (t: Assert) => {
    const agent = await open(t)
    await Promise.all([agent.close(), agent.close()])
    await agent.close()
    t.is(
      codeOf(await agent.run(taskOf(subject.succeeds.capability, subject.succeeds.input), recordedRun())),
      'TASK_FAILED'
    )
  })
}
