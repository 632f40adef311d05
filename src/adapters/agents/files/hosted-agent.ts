import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { formatDuration } from '../../../kit/units.js'
import type { AbortSignalLike } from '../../../kit/clock.js'
import type {
  AgentDefinition,
  AgentOutcome,
  AgentRun,
  AgentTask,
  FailureCode,
  HealthFinding,
  HostedAgent,
  RunCaller
} from '../../../ports/agent-runtime.js'

/** Most progress reports of one run; later ones are dropped. */
const MAX_PROGRESS = 10_000

/** Context of one run of a {@link Runtime}. */
export interface RuntimeContext {
  /** Aborted at the timeout, on cancellation and on close; the reason for the caller is not the runtime's worry. */
  readonly signal: AbortSignal
  progress(data: unknown): void
  /** Absent: it takes neither questions nor log lines. */
  readonly caller?: RunCaller | undefined
}

/** Runs an agent; timeout, cancellation and closing are handled outside. */
export interface Runtime {
  /** Does one task and resolves when it is really over, soon after an abort too. A rejection becomes TASK_FAILED. */
  run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome>
  /** Could it take a task now? Absent where nothing can be said of it. */
  check?(signal: AbortSignal): HealthFinding | Promise<HealthFinding>
  /** Ends children. Called once, when no run is under way. */
  end(): Promise<void>
}

/** A {@link HostedAgent} that can also be taken out of service gently. */
export interface LocalAgent extends HostedAgent {
  /** Closes when the runs under way have ended by themselves. For an agent whose file has changed. */
  retire(): Promise<void>
}

/** Dependencies of {@link hostAgent}. */
export interface HostDeps {
  readonly definition: AgentDefinition
  readonly runtime: Runtime
  readonly clock: Clock
}

/** Makes an agent of a runtime: adds the timeout, cancellation, the bound on progress, and closing. */
export function hostAgent(deps: HostDeps): LocalAgent {
  return new Host(deps)
}

/** How a run without a result ends. */
type AgentFailure = Extract<AgentOutcome, { ok: false }>

/** An outcome without a result. */
export function failure(code: FailureCode, message: string): AgentFailure {
  return { ok: false, code, message }
}

/** The bound of results, as the owner of an agent changes it. */
export const OUTPUT_SETTING = 'a2a.limits.maxOutput of its agent file'

/** The outcome of a run whose result is larger than its bound. */
export function outputTooLarge(maxOutputBytes: number): AgentFailure {
  return failure('PAYLOAD_TOO_LARGE', `the agent's result has more than ${maxOutputBytes} bytes (${OUTPUT_SETTING})`)
}

class Host implements LocalAgent {
  readonly definition: AgentDefinition
  /** Only for a runtime with a check: without one no agent counts as healthy. */
  readonly check?: (signal: AbortSignalLike) => Promise<HealthFinding>
  readonly #runtime: Runtime
  readonly #clock: Clock
  /** Runs under way, each with the function that stops it. */
  readonly #runs = new Map<Promise<AgentOutcome>, () => void>()
  #closing: Promise<void> | null = null

  constructor({ definition, runtime, clock }: HostDeps) {
    this.definition = definition
    this.#runtime = runtime
    this.#clock = clock
    const { check } = runtime
    if (check !== undefined) this.check = async (signal) => await this.#check(check.bind(runtime), signal)
  }

  async run(task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
    if (this.#closing !== null)
      return failure('TASK_FAILED', `the agent ${this.definition.id} is no longer served by this node`)
    if (run.signal.aborted) return failure('CANCELED', 'canceled before it began')
    const stop = new AbortController()
    const ended: { by: AgentFailure | null; isWanted: boolean } = { by: null, isWanted: false }
    const stopAs = (outcome: AgentFailure, isWanted = false): void => {
      if (ended.by === null) Object.assign(ended, { by: outcome, isWanted })
      stop.abort()
    }
    const { timeoutMs } = this.definition.limits
    const onAbort = (): void => stopAs(failure('CANCELED', 'canceled'), true)
    const message = `no result within ${formatDuration(timeoutMs)}, the time limit of the agent; its work was ended`
    const late = { ok: false, code: 'TIMEOUT', message, data: { limitMs: timeoutMs } } as const
    const timer = this.#clock.after(timeoutMs, () => stopAs(late))
    run.signal.addEventListener('abort', onAbort)
    const work = this.#work(task, {
      signal: stop.signal,
      progress: boundedProgress(run),
      caller: run.caller
    })
    this.#runs.set(work, () => stopAs(failure('CANCELED', 'the agent was closed')))
    const outcome = await work
    this.#runs.delete(work)
    run.signal.removeEventListener('abort', onAbort)
    this.#clock.clear(timer)
    if (ended.by === null) return outcome
    // A run that its caller canceled ends as canceled. Stopped for another reason, it may continue elsewhere: its end
    // is unknown.
    const isUnknown = !ended.isWanted && !outcome.ok && outcome.isUnknown === true
    return isUnknown ? { ...ended.by, isUnknown } : ended.by
  }

  async #check(check: NonNullable<Runtime['check']>, signal: AbortSignalLike): Promise<HealthFinding> {
    const stop = new AbortController()
    const onAbort = (): void => stop.abort()
    signal.addEventListener('abort', onAbort)
    try {
      return await check(stop.signal)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    for (const stop of this.#runs.values()) stop()
    return this.#closing
  }

  async retire(): Promise<void> {
    while (this.#closing === null && this.#runs.size > 0) await Promise.all(this.#runs.keys())
    return this.close()
  }

  async #work(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    try {
      return await this.#runtime.run(task, context)
    } catch (error) {
      return failure('TASK_FAILED', messageOf(error))
    }
  }

  async #close(): Promise<void> {
    while (this.#runs.size > 0) await Promise.all(this.#runs.keys())
    await this.#runtime.end()
  }
}

function boundedProgress(run: AgentRun): (data: unknown) => void {
  let count = 0
  return (data) => {
    if (++count > MAX_PROGRESS) return
    try {
      run.progress(data)
    } catch {
      // The listener's own fault; the work continues.
    }
  }
}
