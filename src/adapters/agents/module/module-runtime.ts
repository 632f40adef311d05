import { access, constants } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '../../../kit/backoff.js'
import type { Clock } from '../../../kit/clock.js'
import { formatDuration } from '../../../kit/units.js'
import type { AgentOutcome, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import { failure, type Runtime, type RuntimeContext } from '../files/hosted-agent.js'
import { ModuleChild, type ModuleEnd, type ModuleDeps, nodeOptionsFor } from './module-child.js'

/** Pauses after loads in a row that failed, from the second on. */
const PAUSES = { baseMs: 1000, maxMs: 60_000 }

/** How long a check waits until a module is loaded, in milliseconds: less than a health check may take. */
const LOAD_MS = 8000

/**
 * An ES module in a child process that stays up between tasks. The child starts with the first task; one that ends,
 * or is killed, is replaced at the next task. The first check loads the module too, and ends its child again. A module
 * that cannot be loaded twice in a row is left alone for a second, then two, four ... up to a minute; tasks of that
 * time fail at once with the reason.
 */
export class ModuleRuntime implements Runtime {
  readonly #deps: ModuleDeps & { readonly clock: Clock }
  #child: ModuleChild | null = null
  #failedLoads = 0
  #lastFault = ''
  /** The module was loaded once. */
  #isProven = false
  /** Monotonic milliseconds before which no child is started. */
  #notBefore = 0

  constructor(deps: ModuleDeps & { readonly clock: Clock }) {
    this.#deps = deps
  }

  async run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    while (this.#child?.isEnding === true) await this.#child.gone
    if (context.signal.aborted) return failure('CANCELED', 'canceled before it began')
    const unable = this.#typeFault()
    if (unable !== null) return failure('TASK_FAILED', unable)
    const waitMs = this.#notBefore - this.#deps.clock.monotonic()
    if (this.#child === null && waitMs > 0)
      return failure('TASK_FAILED', `${this.#lastFault} (next try in ${formatDuration(waitMs)})`)
    this.#child ??= this.#start()
    return this.#child.run(task, context)
  }

  /** Is its file there, and can it be loaded? A module that was never loaded is loaded now, in at most 8 s. */
  async check(signal: AbortSignal): Promise<HealthFinding> {
    const { path } = this.#deps.spec
    const isThere = await access(path, constants.R_OK).then(
      () => true,
      () => false
    )
    if (!isThere) return { state: 'unhealthy', reason: `its module ${path} cannot be read` }
    const unable = this.#typeFault()
    if (unable !== null) return { state: 'unhealthy', reason: unable }
    if (!this.#isProven && this.#notBefore <= this.#deps.clock.monotonic()) await this.#load(signal)
    if (this.#failedLoads === 0 || this.#child?.isReady === true) return { state: 'healthy', reason: null }
    return { state: 'unhealthy', reason: this.#lastFault }
  }

  /** Loads the module in a child, which ends again when no task came meanwhile. */
  async #load(signal: AbortSignal): Promise<void> {
    while (this.#child?.isEnding === true) await this.#child.gone
    this.#child ??= this.#start()
    const child = this.#child
    const over = new AbortController()
    const late = pause(LOAD_MS, false, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => false)
    const isLoaded = await Promise.race([child.loaded, late])
    over.abort()
    if (isLoaded) this.#isProven = true
    // A task has a time limit of its own.
    if (!child.isUnused) return
    if (isLoaded || signal.aborted) await child.end()
    else if (!child.isEnding) await child.giveUpLoading(`it was not loaded within ${formatDuration(LOAD_MS)}`)
    else await child.gone
  }

  /** Why this Node runs no module of that kind; null: it does. */
  #typeFault(): string | null {
    const { path } = this.#deps.spec
    if (nodeOptionsFor(path) !== null) return null
    const state = `its module ${path} is TypeScript, and Node ${process.versions.node} strips no types`
    return `${state}: use Node 22.18 or later, or compile the module`
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
    if (wasReady) this.#isProven = true
    this.#failedLoads = wasReady ? 0 : this.#failedLoads + 1
    this.#lastFault = reason
    if (this.#failedLoads < 2) return
    this.#notBefore = this.#deps.clock.monotonic() + backoffMs(PAUSES, this.#failedLoads - 2)
  }
}
