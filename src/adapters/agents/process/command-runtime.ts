import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../../kit/errors.js'
import { fromUtf8 } from '../../../kit/ids.js'
import { isRecord, jsonFault, RESULT_LIMITS } from '../../../kit/json.js'
import { LineSplitter, type LongLine } from '../../../kit/lines.js'
import type { AgentOutcome, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import type { CommandSpec } from './command-type.js'
import { fillArguments } from './command-arguments.js'
import { findProgram, type Launched, launch } from './command-launch.js'
import { CommandQuestions } from './command-questions.js'
import { agentEnvironment, type Environment } from '../files/environment.js'
import { failure, outputTooLarge, type Runtime, type RuntimeContext } from '../files/hosted-agent.js'
import { BoundedOutput, TailOutput } from './output.js'
import type { ProcessGroups } from './process-groups.js'

/** Bytes of stderr in a failure. */
const STDERR_TAIL_BYTES = 2048
/** Longest progress line on descriptor 3, in bytes. */
const MAX_PROGRESS_LINE = 65_536
/** Bounds for output that a process outside the group holds open: looks without new data, and looks in all. */
const IDLE_LOOKS = 20
const MAX_LOOKS = 100
const LOOK_MS = 50
const NO_TEXT =
  "the agent's stdout is no UTF-8 text; for bytes, give the capability `output: { type: string, contentEncoding: base64 }` in the agent file"

/** Dependencies of {@link CommandRuntime}. */
export interface CommandDeps {
  readonly spec: CommandSpec
  /** Capabilities whose result is stdout as bytes, given to callers as base64 text. */
  readonly binary: ReadonlySet<string>
  /** Bytes of stdout at most. */
  readonly maxOutputBytes: number
  readonly groups: ProcessGroups
  /** The node's own environment, from which PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME are taken. */
  readonly env: Environment
}

/**
 * One process a task, in a process group of its own, without a shell. The program reads one line of JSON on stdin,
 * writes its result to stdout (base64 text of its bytes for a binary capability, else JSON when it parses, else text)
 * and progress to descriptor 3, where it may also ask its caller. A non-zero exit is a failure, and so are bytes that
 * are no UTF-8 without a binary capability.
 */
export class CommandRuntime implements Runtime {
  readonly #deps: CommandDeps

  constructor(deps: CommandDeps) {
    this.#deps = deps
  }

  async run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    const { spec, groups } = this.#deps
    const filled = fillArguments(spec.command, task.input)
    if (!filled.ok) return failure('TASK_FAILED', filled.reason)
    const [name = '', ...args] = filled.command
    const env = agentEnvironment(this.#deps.env, spec.env)
    if (!fs.existsSync(spec.cwd))
      return failure('TASK_FAILED', `the agent's working directory ${spec.cwd} does not exist`)
    const program = findProgram(name, env, spec.cwd)
    if (program === null)
      return failure('TASK_FAILED', `the agent's program ${name} was not found or may not be executed`)
    let launched: Launched
    try {
      launched = await launch(groups, { program, args, env, cwd: spec.cwd, requestId: task.requestId })
    } catch (error) {
      return failure('TASK_FAILED', `the agent's program ${name} could not be started: ${messageOf(error)}`)
    }
    return this.#follow(launched, task, context)
  }

  /** Does its program exist, and may it be run? A program named by the input of a task is not known before. */
  check(): HealthFinding {
    const { spec, env } = this.#deps
    const [name = ''] = spec.command
    if (!fs.existsSync(spec.cwd))
      return { state: 'unhealthy', reason: `its working directory ${spec.cwd} does not exist` }
    if (name.includes('{') || findProgram(name, agentEnvironment(env, spec.env), spec.cwd) !== null)
      return { state: 'healthy', reason: null }
    return { state: 'unhealthy', reason: `its program ${name} was not found or may not be executed` }
  }

  end(): Promise<void> {
    return Promise.resolve()
  }

  async #follow(launched: Launched, task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    const { groups, maxOutputBytes, spec } = this.#deps
    const questions = spec.asks ? new CommandQuestions(context.caller, launched.stdin) : null
    const endGroup = (): Promise<void> => groups.end(launched.processGroup)
    const output = new BoundedOutput(maxOutputBytes)
    const stderr = new TailOutput(STDERR_TAIL_BYTES)
    const progress = new LineSplitter({ maxBytes: MAX_PROGRESS_LINE })
    let isTooLarge = false
    let change = 0
    launched.stdout.on('data', (chunk: Uint8Array) => {
      change++
      if (isTooLarge || output.push(chunk)) return
      isTooLarge = true
      void endGroup()
    })
    launched.stderr.on('data', (chunk: Uint8Array) => stderr.push(chunk))
    launched.progress.on('data', (chunk: Uint8Array) => {
      change++
      for (const line of progress.push(chunk)) readReport(line, context, questions)
    })
    const drained = closedStreams(launched)
    const onAbort = (): void => void endGroup()
    if (context.signal.aborted) onAbort()
    context.signal.addEventListener('abort', onAbort)
    launched.stdin.write(taskLine(task))
    if (questions === null) launched.stdin.end()
    const { code, signal } = await launched.exited
    // Processes that the program left in its group serve no caller any more.
    await endGroup()
    context.signal.removeEventListener('abort', onAbort)
    await giveUpWhenIdle(launched, drained, () => change)
    readReport(progress.end(), context, null)
    if (isTooLarge) return outputTooLarge(maxOutputBytes)
    if (code !== 0) return failure('TASK_FAILED', exitText({ code, signal, stderr: stderr.text() }))
    return this.#deps.binary.has(task.capability)
      ? { ok: true, result: output.bytes().toString('base64') }
      : resultOf(output.text())
  }
}

function taskLine({ peer: _peer, ...task }: AgentTask): string {
  return `${JSON.stringify(task)}\n`
}

/** Lines that are too long, or neither progress nor a question of an agent that asks, are skipped. */
function readReport(
  line: Uint8Array | LongLine,
  context: RuntimeContext,
  questions: Pick<CommandQuestions, 'ask'> | null
): void {
  if (!(line instanceof Uint8Array)) return
  let value: unknown
  try {
    value = JSON.parse(fromUtf8(line))
  } catch {
    return
  }
  if (!isRecord(value) || jsonFault(value) !== null) return
  const { type, ...data } = value
  if (type === 'progress') context.progress(data)
  else if (type === 'ask') questions?.ask(data)
}

function closedStreams({ stdout, stderr, progress }: Launched): Promise<unknown> {
  return Promise.all(
    [stdout, stderr, progress].map((stream) => new Promise((resolve) => stream.once('close', resolve)))
  )
}

/**
 * The group is gone, so its pipes end now, unless a process that left the group holds them: then nothing more is
 * awaited.
 */
async function giveUpWhenIdle(
  { stdout, stderr, progress }: Launched,
  drained: Promise<unknown>,
  change: () => number
): Promise<void> {
  const isDrained = drained.then(() => true)
  let seen = change()
  for (let looks = 0, idle = 0; looks < MAX_LOOKS && idle < IDLE_LOOKS; looks++) {
    if (await Promise.race([isDrained, pause(LOOK_MS, false)])) return
    idle = change() === seen ? idle + 1 : 0
    seen = change()
  }
  for (const stream of [stdout, stderr, progress]) stream.destroy()
}

function exitText({
  code,
  signal,
  stderr
}: {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
}): string {
  const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
  return `the agent's program ${how}${stderr === '' ? '' : `: ${stderr}`}`
}

function resultOf(text: string | null): AgentOutcome {
  if (text === null) return failure('INVALID_OUTPUT', NO_TEXT)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: true, result: text.replace(/\r?\n$/, '') }
  }
  const fault = jsonFault(value, RESULT_LIMITS)
  return fault === null ? { ok: true, result: value } : failure('INVALID_OUTPUT', `the agent's result: ${fault}`)
}
