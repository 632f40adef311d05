import { access, constants } from 'node:fs/promises'
import { backoffMs } from '../../../kit/backoff.js'
import type { Clock } from '../../../kit/clock.js'
import { formatDuration } from '../../../kit/units.js'
import type { AgentOutcome, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import { failure, type Runtime, type RuntimeContext } from '../files/hosted-agent.js'
import { ModuleChild, type ModuleEnd, type ModuleDeps } from './module-child.js'

/** Pauses after loads in a row that failed, from the second on. */
const PAUSES = { baseMs: 1000, maxMs: 60_000 }

/**
 * An ES module in a child process that stays up between tasks. The child starts with the first task; one that ends,
 * or is killed, is replaced at the next task. A module that cannot be loaded twice in a row is left alone for a second,
 * then two, four ... up to a minute; tasks of that time fail at once with the reason.
 */
export class ModuleRuntime implements Runtime {
  readonly #deps: ModuleDeps & { readonly clock: Clock }
  #child: ModuleChild | null = null
  #failedLoads = 0
  #lastFault = ''
  /** Monotonic milliseconds before which no child is started. */
  #notBefore = 0

  constructor(deps: ModuleDeps & { readonly clock: Clock }) {
    this.#deps = deps
  }

  async run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    while (this.#child?.isEnding === true) await this.#child.gone
    if (context.signal.aborted) return failure('CANCELED', 'canceled before it began')
    const waitMs = this.#notBefore - this.#deps.clock.monotonic()
    if (this.#child === null && waitMs > 0)
      return failure('TASK_FAILED', `${this.#lastFault} (next try in ${formatDuration(waitMs)})`)
    this.#child ??= this.#start()
    return this.#child.run(task, context)
  }

  /** Is its file there, and did it load the last time? */
  async check(): Promise<HealthFinding> {
    const { path } = this.#deps.spec
    const isThere = await access(path, constants.R_OK).then(
      () => true,
      () => false
    )
    if (!isThere) return { state: 'unhealthy', reason: `its module ${path} cannot be read` }
    if (this.#failedLoads === 0 || this.#child?.isReady === true) return { state: 'healthy', reason: null }
    return { state: this.#failedLoads === 1 ? 'degraded' : 'unhealthy', reason: this.#lastFault }
  }

  #start(): ModuleChild {
    let started: ModuleChild | null = null
    started = new ModuleChild(this.#deps, (end) => this.#onGone(started, end))
    return started
  }

  async end(): Promise<void> {
    await this.#child?.end()
  }

  /** `child` is null for one that could not be taken over: another may be in service by now. */
  #onGone(child: ModuleChild | null, { wasReady, reason }: ModuleEnd): void {
    if (child !== this.#child) return
    this.#child = null
    this.#failedLoads = wasReady ? 0 : this.#failedLoads + 1
    this.#lastFault = reason
    if (this.#failedLoads < 2) return
    this.#notBefore = this.#deps.clock.monotonic() + backoffMs(PAUSES, this.#failedLoads - 2)
  }
}
