import { OPERATOR } from '../../domain/card/card.js'
import { answerIn } from '../../domain/gateway/content.js'
import { statedFailure, statedState } from '../../domain/task/stated.js'
import { isToolContent, plainValue, toolFailure } from '../../domain/task/tool-content.js'
import type { AbortSignalLike, Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import { boundedCheck } from '../../kit/schema/cost.js'
import { faultText, shapeText } from '../../kit/schema/text.js'
import type { Check, CompileSchema } from '../../kit/sign.js'
import type {
  AgentDefinition,
  AgentFault,
  AgentHealth,
  AgentOutcome,
  AgentSource,
  AgentTask,
  HostedAgent,
  RunCaller
} from '../../ports/agent-runtime.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { type AgentMeasured, RUN_BOUNDS } from '../../kit/prometheus.js'
import { HealthChecks } from './health.js'
import { LoadEstimate } from './load-estimate.js'
import { AgentQueue, type QueueTurn, RunPlace } from './agent-queue.js'

/** The most agents in the metrics. */
export const MAX_MEASURED = 256

const NO_QUEUE: Partial<AgentQueue> = {}
/** Runtime of the agents of imported MCP servers. */
const IMPORTED_RUNTIME = 'mcp'

/** Dependencies of {@link AgentHost}. */
export interface AgentHostDeps {
  readonly source: AgentSource
  readonly compileSchema: CompileSchema
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/** The callbacks and the signal of one run. */
export interface RunOptions {
  readonly signal: AbortSignalLike
  /** The agent has a free place. It begins when this returns or resolves; an error or rejection is why it does not. */
  onStart(): void | Promise<void>
  onProgress(data: unknown): void
  /** The caller, for questions and log lines. */
  readonly caller?: RunCaller | undefined
}

/** How a run ended, or why it did not begin. */
export type HostOutcome =
  | AgentOutcome
  | {
      readonly ok: false
      readonly code: 'AGENT_NOT_FOUND' | 'CAPABILITY_NOT_FOUND' | 'INVALID_INPUT' | 'OVERLOADED'
      readonly message: string
    }

interface Hosting {
  /** The version in service; runs keep the version they began with. */
  agent: HostedAgent
  readonly queue: AgentQueue
  readonly expected: LoadEstimate
  /** Of the version in service. */
  checks: CapabilityChecks
  /** Of its ended runs. */
  readonly meter: RunMeter
}

/** A task on its way to its agent. */
interface GivenRun {
  readonly agentId: string
  readonly hosting: Hosting
  /** The version at the time of the request. */
  readonly asked: HostedAgent
  readonly task: AgentTask
  readonly options: RunOptions
}

/** The agents of this node and their queues. An agent runs one task at a time unless its file says otherwise. */
export class AgentHost {
  readonly #deps: AgentHostDeps
  readonly #agents = new Map<string, Hosting>()
  readonly #checks: HealthChecks
  /** Queues of removed agents with running tasks: an agent that comes back continues with its own. */
  readonly #leftovers = new Map<string, AgentQueue>()
  /** Agents of programs in this process; agents of files come from the source. */
  readonly #attached = new Map<string, HostedAgent>()
  #ofSource: readonly HostedAgent[] = []
  #faults: readonly AgentFault[] = []
  #onChange: () => void | Promise<void> = () => {}
  #onHealth: () => void = () => {}

  constructor(deps: AgentHostDeps) {
    this.#deps = deps
    const agents = (): HostedAgent[] => [...this.#agents.values()].map(({ agent }) => agent)
    this.#checks = new HealthChecks({ ...deps, agents, onChange: () => this.#onHealth() })
  }

  /**
   * Loads the agents and follows their files. `onChange`: the set changed; resolves when cards are made. `onHealth`:
   * {@link unable} may have changed.
   */
  async start(onChange: () => void | Promise<void>, onHealth: () => void = () => {}): Promise<void> {
    const { source } = this.#deps
    await source.load().then(({ agents, faults }) => void this.#take(agents, faults))
    this.#onChange = onChange
    this.#onHealth = onHealth
    source.watch((next, nextFaults) => this.#take(next, nextFaults))
    this.#checks.start()
  }

  /** Hosts an agent of a program. @throws NodeError USAGE when the id is taken; INVALID_CARD for an invalid schema. */
  attach(agent: HostedAgent): void {
    const { id, capabilities } = agent.definition
    if (id === OPERATOR || this.#agents.has(id)) throw new NodeError('USAGE', `an agent ${id} is on this node already`)
    const checks = new CapabilityChecks(agent.definition, this.#deps.compileSchema)
    for (const one of capabilities) checks.of(one.id)
    this.#attached.set(id, agent)
    void this.#replace()
  }

  /** Stops hosting an agent of a program. */
  detach(agent: HostedAgent): void {
    const { id } = agent.definition
    if (this.#attached.get(id) !== agent) return
    this.#attached.delete(id)
    void this.#replace()
  }

  /** The definitions of all agents. */
  definitions(): AgentDefinition[] {
    return [...this.#agents.values()].map((one) => one.agent.definition)
  }

  /** The definition of an agent; undefined for an unknown one. */
  definition(agentId: string): AgentDefinition | undefined {
    return this.#agents.get(agentId)?.agent.definition
  }

  /** Agent files that cannot be used now. */
  faults(): readonly AgentFault[] {
    return this.#faults
  }

  /** True for a local agent (not for the operator). */
  has(agentId: string): boolean {
    return this.#agents.has(agentId)
  }

  /** True for an agent that works for this node's operator alone. */
  isReserved(agentId: string): boolean {
    return this.#agents.get(agentId)?.agent.definition.isReserved === true
  }

  /** Runs and waiting tasks of one agent. */
  load(agentId: string): { running: number; waiting: number; slots: number } {
    const { running = 0, waiting = 0, places: slots = 0 } = this.#agents.get(agentId)?.queue ?? NO_QUEUE
    return { running, waiting, slots }
  }

  /** Tasks per place of an agent: running, waiting, and announced by {@link expect}. */
  tasksAPlace(agentId: string): number {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return 0
    const { queue, expected } = hosting
    return (queue.running + queue.waiting + expected.count(this.#deps.clock.monotonic())) / queue.places
  }

  /** Announces a task that is on its way: several may be sent before the first one arrives. */
  expect(agentId: string): void {
    this.#agents.get(agentId)?.expected.add(this.#deps.clock.monotonic())
  }

  /** True when an agent could take a task now: its queue has room, and the last health check did not fail. */
  isAble(agentId: string): boolean {
    const hosting = this.#agents.get(agentId)
    return hosting !== undefined && !hosting.queue.isFull && this.#checks.of(hosting.agent)?.state !== 'unhealthy'
  }

  /** Ids of the agents whose last health check failed. */
  unable(): string[] {
    return [...this.#agents.keys()].filter((id) => this.health(id)?.state === 'unhealthy')
  }

  /** The last health of an agent; null when unchecked or unknown. */
  health(agentId: string): AgentHealth | null {
    const agent = this.#agents.get(agentId)?.agent
    return agent === undefined ? null : this.#checks.of(agent)
  }

  /** The counts of each agent, most runs first; at most {@link MAX_MEASURED}. */
  measured(): AgentMeasured[] {
    const all = [...this.#agents].sort(([, one], [, other]) => other.meter.runs - one.meter.runs).slice(0, MAX_MEASURED)
    return all.map(([id, { meter, queue, agent }]) => ({
      id,
      health: this.#checks.of(agent)?.state ?? null,
      running: queue.running,
      waiting: queue.waiting,
      ...meter.snapshot()
    }))
  }

  /** Estimated duration of a task sent now, in milliseconds: by the agent's past runs, else by its timeout. */
  estimateMs(agentId: string): number {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return 1
    const { agent, queue, meter } = hosting
    const each = meter.runs === 0 ? agent.definition.limits.timeoutMs : meter.spentMs / meter.runs
    return Math.max(1, Math.round(each * (1 + queue.waiting / queue.places)))
  }

  /**
   * Why an input does not fit, or null.
   * @throws NodeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND.
   */
  inputFault(agentId: string, capability: string, input: unknown): NodeError | null {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) throw new NodeError('AGENT_NOT_FOUND', `no agent ${agentId} on this node`)
    return hosting.checks.inputFault(capability, input)
  }

  /** Queues a task and runs it when the agent has a free place. Never rejects. */
  run(agentId: string, task: AgentTask, options: RunOptions): Promise<HostOutcome> {
    const hosting = this.#agents.get(agentId)
    if (hosting === undefined) return Promise.resolve(noTurn(agentId, 'closed'))
    const asked = hosting.agent
    const given: GivenRun = { agentId, hosting, asked, task, options }
    hosting.expected.arrived()
    const taken = hosting.queue.take(options.signal)
    return typeof taken === 'string' ? this.#runAt(taken, given) : taken.then((turn) => this.#runAt(turn, given))
  }

  async #runAt(turn: QueueTurn, { agentId, hosting, asked, task, options }: GivenRun): Promise<HostOutcome> {
    if (turn !== 'held') return noTurn(agentId, turn)
    const { caller, leave } = placed(hosting.queue, task, options)
    try {
      if (this.#agents.get(agentId) !== hosting) return noTurn(agentId, 'closed')
      // The agent was replaced while the task waited: the new version may not take the task.
      const fault = hosting.agent === asked ? null : hosting.checks.inputFault(task.capability, task.input)
      if (fault !== null) throw fault
      // The agent may be replaced during the run: the output schema of this version judges the result.
      const { output } = hosting.checks.of(task.capability)
      const from = this.#deps.clock.monotonic()
      const starting = options.onStart()
      if (starting !== undefined) await starting
      // A cancel may have come while the start was recorded.
      if (options.signal.aborted) return noTurn(agentId, 'aborted')
      const { signal } = options
      const outcome = await hosting.agent.run(task, { signal, caller, progress: (data) => options.onProgress(data) })
      const judged = judgedOutcome(outcome, output, task.capability)
      this.#spent(hosting, this.#deps.clock.monotonic() - from, judged.ok)
      return judged
    } catch (error) {
      return this.#broken(agentId, task.requestId, error)
    } finally {
      leave()
      this.#left(agentId, hosting.queue)
    }
  }

  /** Closes every agent. */
  async close(): Promise<void> {
    this.#checks.stop()
    for (const { queue } of this.#agents.values()) queue.close()
    await Promise.all([this.#deps.source.close(), ...[...this.#attached.values()].map((agent) => agent.close())])
  }

  #left(agentId: string, queue: AgentQueue): void {
    if (this.#leftovers.get(agentId) === queue && queue.isIdle) this.#leftovers.delete(agentId)
  }

  #broken(agentId: string, requestId: string, error: unknown): HostOutcome {
    if (error instanceof NodeError && (error.code === 'CAPABILITY_NOT_FOUND' || error.code === 'INVALID_INPUT'))
      return { ok: false, code: error.code, message: `the agent changed while the task waited: ${error.message}` }
    if (error instanceof NodeError && (error.code === 'OVERLOADED' || error.code === 'TIMEOUT'))
      return { ok: false, code: error.code, message: error.message }
    // Runtimes return values; one that throws is broken, and its queue must go on.
    this.#deps.telemetry.log('error', 'an agent runtime threw', { agent: agentId, requestId, reason: String(error) })
    return { ok: false, code: 'TASK_FAILED', message: 'the agent runtime failed' }
  }

  #spent({ meter }: Hosting, durationMs: number, isDone: boolean): void {
    meter.add(durationMs, isDone)
    this.#deps.telemetry.time('task_ms', durationMs)
  }

  #take(agents: readonly HostedAgent[], faults: readonly AgentFault[]): void | Promise<void> {
    this.#ofSource = agents
    const reported = new Set(this.#faults.map((one) => JSON.stringify(one)))
    const fresh = faults.filter((one) => !reported.has(JSON.stringify(one))).length
    if (fresh > 0) this.#deps.telemetry.count('agent_file_faults', undefined, fresh)
    this.#faults = faults
    return this.#replace()
  }

  /** Updates the table to the current agents. A program's agent takes precedence over a file's of the same id. */
  #replace(): void | Promise<void> {
    const wanted = new Map(this.#ofSource.map((agent) => [agent.definition.id, agent]))
    for (const [id, agent] of this.#attached) wanted.set(id, agent)
    for (const [id, hosting] of this.#agents) {
      if (wanted.has(id)) continue
      this.#agents.delete(id)
      hosting.queue.close()
      if (!hosting.queue.isIdle) this.#leftovers.set(id, hosting.queue)
    }
    for (const [id, agent] of wanted) this.#serve(id, agent)
    void this.#checks.lookAtNew()
    return this.#onChange()
  }

  #serve(id: string, agent: HostedAgent): void {
    const { concurrency } = agent.definition.limits
    const checks = (): CapabilityChecks => new CapabilityChecks(agent.definition, this.#deps.compileSchema)
    const known = this.#agents.get(id)
    if (known === undefined) {
      const queue = this.#leftovers.get(id) ?? new AgentQueue(concurrency)
      this.#leftovers.delete(id)
      queue.reopen(concurrency)
      this.#agents.set(id, { agent, queue, expected: new LoadEstimate(), checks: checks(), meter: new RunMeter() })
    } else if (known.agent !== agent) {
      // The queue continues with the new version; current runs end with the old one.
      known.agent = agent
      this.#deps.telemetry.count('agent_reloads')
      known.checks = checks()
      known.queue.resize(concurrency)
    }
  }
}

/** The caller of a run whose questions hold no place of its agent, and the end of the run. */
function placed(
  queue: AgentQueue,
  { peer = '' }: AgentTask,
  { caller, signal }: RunOptions
): { readonly caller: RunCaller | undefined; readonly leave: () => void } {
  if (caller === undefined) return { caller, leave: () => queue.release() }
  const place = new RunPlace(queue, peer, signal)
  const ask: RunCaller['ask'] = (question, isNeeded) =>
    place.during(() => caller.ask(question, () => place.isNeeded || isNeeded?.() === true))
  return { caller: { ...caller, log: (line) => caller.log(line), ask }, leave: () => place.end() }
}

interface Checks {
  readonly input: Check
  readonly inputSchema: unknown
  readonly output: Check
}

/** The checks of the inputs and results of one version of an agent, each compiled on first use. */
class CapabilityChecks {
  readonly #definition: AgentDefinition
  readonly #compileSchema: CompileSchema
  readonly #byCapability = new Map<string, Checks>()

  constructor(definition: AgentDefinition, compileSchema: CompileSchema) {
    this.#definition = definition
    this.#compileSchema = compileSchema
  }

  /** The checks of one capability. @throws NodeError CAPABILITY_NOT_FOUND; INVALID_CARD for an invalid schema */
  of(capability: string): Checks {
    const known = this.#byCapability.get(capability)
    if (known !== undefined) return known
    const { id, capabilities, runtime } = this.#definition
    const descriptor = capabilities.find((one) => one.id === capability)
    if (descriptor === undefined) {
      throw new NodeError('CAPABILITY_NOT_FOUND', `agent ${id} has no capability ${capability}`, {
        data: { capabilities: capabilities.map((one) => one.id) }
      })
    }
    const compiled = this.#compile(descriptor, runtime)
    this.#byCapability.set(capability, compiled)
    return compiled
  }

  /** Why an input does not fit, or null. @throws NodeError as {@link of} */
  inputFault(capability: string, input: unknown): NodeError | null {
    const { input: check, inputSchema } = this.of(capability)
    const faults = check(input)
    if (faults.length === 0) return null
    return new NodeError('INVALID_INPUT', `the input does not fit ${capability}: ${faultText(faults)}`, {
      data: { faults, expected: shapeText(inputSchema) }
    })
  }

  #compile({ inputSchema, outputSchema }: AgentDefinition['capabilities'][number], runtime: string): Checks {
    const [input, output] = [this.#compileSchema(inputSchema), this.#compileSchema(outputSchema)]
    // An imported server checks its schemas itself.
    if (runtime !== IMPORTED_RUNTIME) return { input, inputSchema, output }
    return { input: boundedCheck(input, inputSchema), inputSchema, output: boundedCheck(output, outputSchema) }
  }
}

/** The outcome of a run: a result that states a failure, or does not fit its capability, fails it. */
function judgedOutcome(outcome: AgentOutcome, output: Check, capability: string): AgentOutcome {
  if (!outcome.ok) return outcome
  const stated = hasMember(outcome.result, 'a2a') ? statedState(outcome.result) : null
  const ended = stated === null ? null : statedFailure(stated)
  if (ended !== null) return { ok: false, ...ended }
  const { result } = outcome
  const isContent = outcome.content === undefined && hasMember(result, 'content') && isToolContent(result)
  if (isContent && result.isError === true) return toolFailure(result)
  const faults = stated === null ? output(isContent ? plainValue(result) : result) : []
  // No schema of results applies to a question, a stated end, or a result in the words of A2A.
  if (faults.length === 0 || answerIn(result) !== null) return outcome
  return { ok: false, code: 'INVALID_OUTPUT', message: `the result does not fit ${capability}: ${faultText(faults)}` }
}

/** Cheap, for the many results without. */
function hasMember(result: unknown, name: string): boolean {
  return typeof result === 'object' && result !== null && name in result
}

function noTurn(agentId: string, turn: Exclude<QueueTurn, 'held'>): HostOutcome {
  switch (turn) {
    case 'aborted':
      return { ok: false, code: 'CANCELED', message: 'canceled before it began' }
    case 'closed':
      return { ok: false, code: 'AGENT_NOT_FOUND', message: `agent ${agentId} is no longer on this node` }
    case 'full':
      return { ok: false, code: 'OVERLOADED', message: 'too many tasks wait for this agent' }
  }
}

/** Counts the ended runs of an agent and their time. */
class RunMeter {
  readonly #within = RUN_BOUNDS.map(() => 0)
  #failures = 0
  #runs = 0
  #spentMs = 0

  /** Ended runs. */
  get runs(): number {
    return this.#runs
  }

  /** Their total time. */
  get spentMs(): number {
    return this.#spentMs
  }

  /** Counts an ended run; `isDone`: with a result. */
  add(durationMs: number, isDone: boolean): void {
    this.#runs++
    this.#spentMs += durationMs
    if (!isDone) this.#failures++
    for (let i = RUN_BOUNDS.length - 1; i >= 0 && durationMs <= (RUN_BOUNDS[i] ?? 0) * 1000; i--)
      this.#within[i] = (this.#within[i] ?? 0) + 1
  }

  /** The counts now. */
  snapshot(): {
    readonly runs: number
    readonly failures: number
    readonly spentMs: number
    readonly within: readonly number[]
  } {
    return { runs: this.#runs, failures: this.#failures, spentMs: this.#spentMs, within: [...this.#within] }
  }
}
