import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { isRecord, parseJson, RESULT_LIMITS } from '../../../kit/json.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { agentEnvironment, type Environment } from '../files/environment.js'
import { failure, outputTooLarge, type RuntimeContext } from '../files/hosted-agent.js'
import { type ChildOutcome, type FromChild, readFromChild, type ToChild } from './module-messages.js'
import type { ModuleSpec } from './module-type.js'
import { TailOutput } from '../process/output.js'
import { KILL_AFTER_MS, type ProcessGroups } from '../process/process-groups.js'

const STDERR_TAIL_BYTES = 2048

/** Dependencies of {@link ModuleChild}. */
export interface ModuleDeps {
  readonly spec: ModuleSpec
  /** Bytes of a result (as JSON) at most. */
  readonly maxOutputBytes: number
  readonly groups: ProcessGroups
  /** The node's own environment, from which PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME are taken. */
  readonly env: Environment
  /** Where `ctx.log` writes. */
  readonly log: (message: string) => void
}

/** How a child ended. */
export interface ModuleEnd {
  /** Had the module been loaded? */
  readonly wasReady: boolean
  /** For people. */
  readonly reason: string
}

/** Files that Node runs only where it strips types. */
const TYPESCRIPT = /\.[cm]?ts$/i
/** Node before 22.18 needs it to strip types, and Node before 22.6 has none. */
const STRIP = '--experimental-strip-types'

/** Options of Node for a module; null: this Node cannot run it, since it strips no types. */
export function nodeOptionsFor(file: string): readonly string[] | null {
  const { typescript = false } = process.features as { readonly typescript?: string | false }
  if (!TYPESCRIPT.test(file) || typescript !== false) return []
  return process.allowedNodeEnvironmentFlags.has(STRIP) ? [STRIP] : null
}

interface PendingRun {
  readonly context: RuntimeContext
  readonly settle: (outcome: AgentOutcome) => void
}

/** One child process of a `module` agent, from its start to its end. */
export class ModuleChild {
  readonly #deps: ModuleDeps
  readonly #child: ChildProcess
  readonly #processGroup: number
  readonly #stderr = new TailOutput(STDERR_TAIL_BYTES)
  readonly #runs = new Map<number, PendingRun>()
  #lastRun = 0
  #isReady = false
  #isEnding = false
  #loadFault: string | null = null
  /** Resolves when the process and all it started are gone. */
  readonly gone: Promise<void>
  /** Resolves when the module is loaded; false: the process ended before. Never rejects. */
  readonly loaded: Promise<boolean>
  #setLoaded: (isLoaded: boolean) => void = () => {}

  /**
   * Starts the process. `onGone` is called once, before the runs under way learn of the end.
   * @throws Error when it cannot be started
   */
  constructor(deps: ModuleDeps, onGone: (end: ModuleEnd) => void) {
    this.#deps = deps
    const { spec, groups } = deps
    const main = fileURLToPath(new URL('./module-main.js', import.meta.url))
    this.loaded = new Promise((resolve) => {
      this.#setLoaded = resolve
    })
    this.#child = spawn(process.execPath, [...(nodeOptionsFor(spec.path) ?? []), main], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: agentEnvironment(deps.env, spec.env),
      cwd: path.dirname(spec.path)
    })
    this.#child.on('error', () => {})
    if (this.#child.pid === undefined)
      throw new Error(`the process of the agent could not be started in ${path.dirname(spec.path)}`)
    this.#processGroup = this.#child.pid
    this.gone = this.#follow(onGone)
    groups.adopt(this.#processGroup, null)
    // The module is named only now: if the node dies before, the channel closes and nothing of the agent has run.
    this.#send({ type: 'load', path: spec.path, maxOutputBytes: deps.maxOutputBytes })
    this.#hold(false)
  }

  /** Has the module been loaded? */
  get isReady(): boolean {
    return this.#isReady
  }

  /** It takes no more tasks: it has ended or is being killed. */
  get isEnding(): boolean {
    return this.#isEnding
  }

  /** It got no task yet. */
  get isUnused(): boolean {
    return this.#lastRun === 0
  }

  /** Runs one task. When it has not ended two seconds after an abort, the whole process is killed. */
  run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    const id = ++this.#lastRun
    const abort = (): void => void this.#abort(id)
    return new Promise<AgentOutcome>((settle) => {
      this.#runs.set(id, { context, settle })
      this.#hold(true)
      this.#send({ type: 'run', run: id, task })
      if (context.signal.aborted) abort()
      context.signal.addEventListener('abort', abort)
    }).finally(() => {
      context.signal.removeEventListener('abort', abort)
      this.#runs.delete(id)
      if (this.#runs.size === 0) this.#hold(false)
    })
  }

  /** Ends the process and everything it started. Idempotent. */
  async end(): Promise<void> {
    this.#isEnding = true
    this.#hold(true)
    await this.#deps.groups.end(this.#processGroup)
    await this.gone
  }

  /** Kills a process whose module has not been loaded, for a reason for people. */
  async giveUpLoading(reason: string): Promise<void> {
    this.#loadFault = reason
    this.#isEnding = true
    this.#hold(true)
    await this.#deps.groups.kill(this.#processGroup)
    await this.gone
  }

  /** An idle child must not keep the node's process alive; a busy one must. */
  #hold(isBusy: boolean): void {
    const { stdout, stderr } = this.#child as ChildProcess &
      Record<'stdout' | 'stderr', { ref(): void; unref(): void } | null>
    for (const part of [this.#child, this.#child.channel, stdout, stderr]) {
      if (isBusy) part?.ref()
      else part?.unref()
    }
  }

  #send(message: ToChild): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  async #abort(id: number): Promise<void> {
    this.#send({ type: 'abort', run: id })
    const isOver = this.gone.then(() => true)
    const end = performance.now() + KILL_AFTER_MS
    while (this.#runs.has(id) && performance.now() < end) {
      if (await Promise.race([isOver, pause(25, false)])) return
    }
    if (!this.#runs.has(id)) return
    this.#isEnding = true
    await this.#deps.groups.kill(this.#processGroup)
    await this.gone
  }

  async #follow(onGone: (end: ModuleEnd) => void): Promise<void> {
    const { groups } = this.#deps
    const child = this.#child
    child.stderr?.on('data', (chunk: Uint8Array) => this.#stderr.push(chunk))
    child.stdout?.resume()
    child.on('message', (value) => this.#onMessage(readFromChild(value)))
    const closed = new Promise((resolve) => child.once('close', resolve))
    const exited = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`)
      )
    })
    // Without its channel it can receive no task and send no answer.
    child.once('disconnect', () => {
      this.#isEnding = true
      void groups.end(this.#processGroup)
    })
    const how = await exited
    this.#isEnding = true
    this.#hold(true)
    await groups.end(this.#processGroup)
    // A process that left the group may hold the pipes: do not wait longer for the rest of the output.
    await Promise.race([closed, pause(KILL_AFTER_MS, null, { ref: false })])
    child.stdout?.destroy()
    child.stderr?.destroy()
    const reason = this.#reason(how)
    this.#setLoaded(false)
    onGone({ wasReady: this.#isReady, reason })
    for (const { settle } of this.#runs.values()) settle(failure('TASK_FAILED', reason))
  }

  #reason(how: string): string {
    const stderr = this.#stderr.text()
    if (this.#loadFault !== null)
      return `the agent's module could not be loaded: ${reportedPlace(stderr)}${this.#loadFault}`
    return `the agent's process ${how}${stderr === '' ? '' : `: ${stderr}`}`
  }

  #onMessage(message: FromChild | null): void {
    if (message === null) return
    if (message.type === 'ready') this.#onReady()
    else if (message.type === 'load-failed') this.#loadFault = message.message
    else if (message.type === 'log') this.#log(message)
    else if (message.type === 'ask') void this.#ask(message)
    else if (message.type === 'progress') this.#runs.get(message.run)?.context.progress(message.data)
    else this.#runs.get(message.run)?.settle(this.#outcome(message.outcome))
  }

  #log({ run, message }: Extract<FromChild, { type: 'log' }>): void {
    this.#deps.log(message)
    this.#runs.get(run)?.context.caller?.log({ level: 'info', data: message })
  }

  async #ask({ run, id, params }: Extract<FromChild, { type: 'ask' }>): Promise<void> {
    const caller = this.#runs.get(run)?.context.caller
    const question = { method: 'elicitation/create', params: isRecord(params) ? params : {} } as const
    const answer = (await caller?.ask(question)) ?? { ok: false, message: 'the caller of the task cannot be asked' }
    this.#send({ type: 'answer', run, id, answer })
  }

  #onReady(): void {
    this.#isReady = true
    this.#setLoaded(true)
  }

  #outcome(outcome: ChildOutcome): AgentOutcome {
    if (!outcome.ok) return outcome
    const { maxOutputBytes } = this.#deps
    if (Buffer.byteLength(outcome.json) > maxOutputBytes) return outputTooLarge(maxOutputBytes)
    const result = parseJson(outcome.json, RESULT_LIMITS)
    return result.ok
      ? { ok: true, result: result.value }
      : failure('INVALID_OUTPUT', `the agent's result: ${result.reason}`)
  }
}

/** `file:line: ` where Node's report of an uncaught error begins with it; '' elsewhere. */
function reportedPlace(stderr: string): string {
  const [, url, line] = /^(file:\/\/\/\S+):(\d+)$/m.exec(stderr) ?? []
  return url === undefined ? '' : `${fileURLToPath(url)}:${line}: `
}
