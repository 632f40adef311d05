import type { CapabilityDescriptor } from '../../src/domain/card/card.js'
import type {
  AgentDefinition,
  AgentFault,
  AgentOutcome,
  AgentRun,
  AgentSource,
  AgentTask,
  HostedAgent
} from '../../src/ports/agent-runtime.js'

/** A run of a scripted agent that has begun. */
export interface FakeRun {
  readonly task: AgentTask
  readonly run: AgentRun
  /** Ends it. */
  end(outcome: AgentOutcome): void
}

/** How an agent answers: at once with what this gives, or, by null, when the test ends the run. */
export type Script = (task: AgentTask, run: AgentRun) => AgentOutcome | null

/** An agent that does what a test says. Without a script runs wait for the test. */
export class FakeAgent implements HostedAgent {
  /** Every task it was given, in order. */
  readonly tasks: AgentTask[] = []
  /** Runs that wait for the test. */
  readonly open: FakeRun[] = []
  mostAtOnce = 0
  isClosed = false
  #now = 0

  constructor(
    readonly definition: AgentDefinition,
    readonly script: Script = () => null
  ) {}

  async run(task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
    this.tasks.push(task)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#now)
    const outcome = this.script(task, run) ?? (await this.#wait(task, run))
    this.#now--
    return outcome
  }

  close(): Promise<void> {
    this.isClosed = true
    return Promise.resolve()
  }

  /** Ends the oldest run that waits. */
  finish(result: unknown = 'done'): void {
    const [run] = this.open
    if (run === undefined) throw new Error(`nothing runs on ${this.definition.id}`)
    run.end({ ok: true, result })
  }

  #wait(task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
    return new Promise((resolve) => {
      const one: FakeRun = {
        task,
        run,
        end: (outcome) => {
          this.open.splice(this.open.indexOf(one), 1)
          run.signal.removeEventListener('abort', aborted)
          resolve(outcome)
        }
      }
      const aborted = (): void => one.end({ ok: false, code: 'CANCELED', message: 'canceled' })
      this.open.push(one)
      if (run.signal.aborted) aborted()
      else run.signal.addEventListener('abort', aborted)
    })
  }
}

/** A capability that takes and gives anything, and may be repeated. */
export function capability(id: string, rest: Partial<CapabilityDescriptor> = {}): CapabilityDescriptor {
  return { id, name: id, description: '', inputSchema: {}, outputSchema: {}, idempotent: true, ...rest }
}

/** A definition with the capability `<id>.do`, unless told otherwise. */
export function agentDefinition(
  id: string,
  rest: Partial<AgentDefinition> & { readonly concurrency?: number } = {}
): AgentDefinition {
  const { concurrency = 1, ...changes } = rest
  return {
    id,
    name: id,
    version: '1.0.0',
    description: '',
    tier: null,
    sandboxId: null,
    protocols: [],
    capabilities: [capability(`${id}.do`)],
    limits: { timeoutMs: 60_000, concurrency, maxOutputBytes: 1_048_576 },
    runtime: 'test',
    source: 'test',
    ...changes
  }
}

/** An agent that answers each task with its input. */
export function echo(id: string, rest: Parameters<typeof agentDefinition>[1] = {}): FakeAgent {
  return new FakeAgent(agentDefinition(id, rest), (task) => ({ ok: true, result: task.input }))
}

/** A source whose set of agents a test replaces. */
export class FakeSource implements AgentSource {
  /** Of the last change: resolves when its agents are in service. */
  served: void | Promise<void> = undefined
  #agents: readonly HostedAgent[]
  #faults: readonly AgentFault[] = []
  #onChange: Parameters<AgentSource['watch']>[0] = () => {}

  constructor(agents: readonly HostedAgent[] = []) {
    this.#agents = agents
  }

  load(): Promise<{ agents: readonly HostedAgent[]; faults: readonly AgentFault[] }> {
    return Promise.resolve({ agents: this.#agents, faults: this.#faults })
  }

  watch(onChange: Parameters<AgentSource['watch']>[0]): void {
    this.#onChange = onChange
  }

  async close(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.close()))
  }

  /** The files have changed. */
  set(agents: readonly HostedAgent[], faults: readonly AgentFault[] = []): void {
    this.#agents = agents
    this.#faults = faults
    this.served = this.#onChange(agents, faults)
  }
}
