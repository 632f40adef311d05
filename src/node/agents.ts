import type { AbortSignalLike, Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { Check, CompileSchema, SchemaFault } from '../kit/sign.js'
import type { CapabilityDescriptor } from '../domain/card/card.js'
import type { AgentDefinition, AgentFault, AgentOutcome, AgentSource, AgentTask, HostedAgent } from '../ports/agent-runtime.js'
import type { Telemetry } from '../ports/telemetry.js'

/** Id of the built-in agent that people and swarms send as. */
export const OPERATOR = 'operator'
/** Tasks that may wait for one agent. */
const MAX_WAITING = 2048

/** What hosting needs. */
export interface AgentHostParts {
  readonly source: AgentSource
  readonly compileSchema: CompileSchema
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/** How a caller follows one run. */
export interface RunOptions {
  readonly signal: AbortSignalLike
  /** The agent has a free place and begins. */
  onStart(): void
  onProgress(data: unknown): void
}

interface Hosting {
  agent: HostedAgent
  running: number
  /** Ended runs and the time they took together. */
  runs: number
  spentMs: number
  readonly waiting: (() => void)[]
  readonly checks: Map<string, { input: Check; output: Check }>
}

/** The agents of this node and their queues: strictly serial an agent unless its file says otherwise. */
export class AgentHost {
  readonly #parts: AgentHostParts
  readonly #agents = new Map<string, Hosting>()
  #faults: readonly AgentFault[] = []
  #onChange: () => void = () => {}

  constructor(parts: AgentHostParts) {
    this.#parts = parts
  }

  /** Loads the agents and follows their files; `onChange` is called after each change of the set. */
  async start(onChange: () => void): Promise<void> {
    this.#onChange = onChange
    const { agents, faults } = await this.#parts.source.load()
    this.#replace(agents, faults)
    this.#parts.source.watch((next, nextFaults) => {
      this.#replace(next, nextFaults)
      this.#onChange()
    })
  }

  /** What the agents say of themselves, by id. */
  definitions(): AgentDefinition[] {
    return [...this.#agents.values()].map((one) => one.agent.definition)
  }

  /** Files that cannot be used now. */
  faults(): readonly AgentFault[] {
    return this.#faults
  }

  /** Is there such an agent here (the operator is none)? */
  has(agentId: string): boolean {
    return this.#agents.has(agentId)
  }

  /** Runs and waiting tasks of one agent. */
  load(agentId: string): { running: number; waiting: number; slots: number } {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return { running: 0, waiting: 0, slots: 0 }
    const { concurrency } = hosting.agent.definition.limits
    return { running: hosting.running, waiting: hosting.waiting.length, slots: concurrency }
  }

  /** How long a task given now may take until it ends, in milliseconds: by the agent's own past runs, else by its timeout. */
  estimateMs(agentId: string): number {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return 1
    const { timeoutMs, concurrency } = hosting.agent.definition.limits
    const each = hosting.runs === 0 ? timeoutMs : hosting.spentMs / hosting.runs
    return Math.max(1, Math.round(each * (1 + hosting.waiting.length / concurrency)))
  }

  /**
   * Why an input does not fit, or null.
   * @throws NodeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND.
   */
  inputFault(agentId: string, capability: string, input: unknown): NodeError | null {
    const faults = this.#checks(agentId, capability).input(input)
    return faults.length === 0
      ? null
      : new NodeError('INVALID_INPUT', `the input does not fit ${capability}: ${faultText(faults)}`, { data: { faults } })
  }

  /** Queues a task and runs it when the agent has a free place. Never rejects. */
  async run(agentId: string, task: AgentTask, options: RunOptions): Promise<AgentOutcome> {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return failed(`agent ${agentId} is no longer here`)
    if (hosting.waiting.length >= MAX_WAITING) return failed('too many tasks wait for this agent')
    if (hosting.running >= hosting.agent.definition.limits.concurrency) await this.#turn(hosting, options.signal)
    else hosting.running++
    // From here one place is held, whoever gave it.
    const started = this.#parts.clock.monotonic()
    try {
      if (options.signal.aborted) return { ok: false, code: 'CANCELED', message: 'canceled before it began' }
      options.onStart()
      const outcome = await hosting.agent.run(task, { signal: options.signal, progress: (data) => options.onProgress(data) })
      return this.#checked(agentId, task.capability, outcome)
    } catch (error) {
      // Runtimes answer with values; one that throws is broken, and its queue must go on.
      this.#parts.telemetry.log('error', 'an agent runtime threw', { agent: agentId, reason: String(error) })
      return failed('the agent runtime failed')
    } finally {
      const durationMs = this.#parts.clock.monotonic() - started
      hosting.runs++
      hosting.spentMs += durationMs
      this.#parts.telemetry.time('task_ms', durationMs)
      const next = hosting.waiting.shift()
      if (next === undefined) hosting.running--
      else next()
    }
  }

  /** Ends every agent. */
  async close(): Promise<void> {
    await this.#parts.source.close()
  }

  /** Resolves with a place held: taken over from the run that just ended, or added when the wait was aborted. */
  async #turn(hosting: Hosting, signal: AbortSignalLike): Promise<void> {
    await new Promise<void>((resolve) => {
      const turn = (): void => {
        signal.removeEventListener('abort', aborted)
        resolve()
      }
      const aborted = (): void => {
        const at = hosting.waiting.indexOf(turn)
        if (at < 0) return
        hosting.waiting.splice(at, 1)
        hosting.running++
        turn()
      }
      hosting.waiting.push(turn)
      if (signal.aborted) aborted()
      else signal.addEventListener('abort', aborted)
    })
  }

  #checked(agentId: string, capability: string, outcome: AgentOutcome): AgentOutcome {
    if (!outcome.ok || !this.#agents.has(agentId)) return outcome
    const faults = this.#checks(agentId, capability).output(outcome.result)
    if (faults.length === 0) return outcome
    return { ok: false, code: 'INVALID_OUTPUT', message: `the result does not fit ${capability}: ${faultText(faults)}` }
  }

  #checks(agentId: string, capability: string): { input: Check; output: Check } {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) throw new NodeError('AGENT_NOT_FOUND', `no agent ${agentId} on this node`)
    const known = hosting.checks.get(capability)
    if (known !== undefined) return known
    const descriptor = hosting.agent.definition.capabilities.find((one) => one.id === capability)
    if (descriptor === undefined) {
      throw new NodeError('CAPABILITY_NOT_FOUND', `agent ${agentId} has no capability ${capability}`, {
        data: { capabilities: hosting.agent.definition.capabilities.map((one) => one.id) }
      })
    }
    const compiled = this.#compile(descriptor)
    hosting.checks.set(capability, compiled)
    return compiled
  }

  #compile(descriptor: CapabilityDescriptor): { input: Check; output: Check } {
    const { compileSchema } = this.#parts
    return { input: compileSchema(descriptor.inputSchema), output: compileSchema(descriptor.outputSchema) }
  }

  #replace(agents: readonly HostedAgent[], faults: readonly AgentFault[]): void {
    this.#faults = faults
    const ids = new Set(agents.map((one) => one.definition.id))
    for (const id of this.#agents.keys()) if (!ids.has(id)) this.#agents.delete(id)
    for (const agent of agents) {
      const old = this.#agents.get(agent.definition.id)
      if (old === undefined) {
        this.#agents.set(agent.definition.id, { agent, running: 0, runs: 0, spentMs: 0, waiting: [], checks: new Map() })
      } else if (old.agent !== agent) {
        // The queue goes on with the new version; what runs ends with the old one.
        old.agent = agent
        old.checks.clear()
      }
    }
  }
}

function failed(message: string): AgentOutcome {
  return { ok: false, code: 'TASK_FAILED', message }
}

function faultText(faults: readonly SchemaFault[]): string {
  return faults
    .slice(0, 3)
    .map((one) => `${one.path === '' ? 'it' : one.path} ${one.message}`)
    .join('; ')
}
