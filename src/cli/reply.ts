import { type ErrorBody, NodeError } from '../kit/errors.js'
import { isRecord, parseJson, SIZED_LIMITS } from '../kit/json.js'
import { givenText } from '../kit/schema/text.js'
import { shellWord, shown } from '../kit/text.js'
import { formatDuration } from '../kit/units.js'
import type { BroadcastTarget, Calls, Reply } from '../ports/node-api.js'
import type { CommandContext } from './context.js'
import { EXIT, EXIT_CODES } from './exit-codes.js'
import { followCall, type FollowedCall, type MessageCall } from './follow-message.js'
import { durationOption, given, type GivenOptions, isSet, type Options, textOption } from './options.js'
import { jsonText, type Output, plainText } from './terminal/output.js'
import { type Cell, plural, printTable } from './terminal/render.js'
import type { ProgressLevel } from './terminal/message-progress.js'
import { timeoutSteps } from './timeouts.js'

/** The step of errors that know of no task. */
const ALL_TASKS = 'a2a-node tasks'

/** Outcomes of a target that accepted the message. */
const TAKEN: ReadonlySet<string> = new Set(['COMPLETED', 'DELIVERED', 'SENT', 'QUEUED'])

/** Outcomes of a broadcast's target that are good. */
const GOOD: ReadonlySet<string> = new Set([...TAKEN, 'SKIPPED', 'SIDE_EFFECT'])

/** The options that `send` and `call` share. */
export function replyOptions(options: Options): GivenOptions<{
  justification: string | undefined
  timeoutMs: number | undefined
  wait: boolean | undefined
  allowRepeat: boolean | undefined
}> {
  return given({
    justification: textOption(options, 'justification'),
    timeoutMs: durationOption(options, 'timeout'),
    wait: options['wait'] === false ? false : undefined,
    allowRepeat: options['allowRepeat'] === true ? true : undefined
  })
}

/**
 * How much of a message under way is shown: `--follow`, `--quiet`, else all of it on a terminal.
 * @throws NodeError USAGE for options that exclude each other
 */
export function progressLevel({ output }: Pick<CommandContext, 'output'>, options: Options): ProgressLevel {
  const [isFollowed, isQuiet] = [isSet(options, 'follow'), isSet(options, 'quiet')]
  if (isFollowed && isQuiet) throw new NodeError('USAGE', '--follow and --quiet exclude each other')
  if (isFollowed && options['wait'] === false)
    throw new NodeError('USAGE', '--no-wait follows nothing: a2a-node tasks watch <id> follows the task')
  if (isQuiet) return 'quiet'
  return isFollowed || (output.isNoteTerminal && !output.json) ? 'all' : 'needed'
}

/**
 * Asks and prints what came back; gives the exit code. Ctrl-C gives the answer up: the node then cancels the work, as
 * it does whenever this process hangs up.
 */
export async function awaitReply<N extends MessageCall>(
  context: Pick<CommandContext, 'output' | 'api'>,
  { name, params, level }: Pick<FollowedCall<N>, 'name' | 'params' | 'level'>
): Promise<number> {
  const { output } = context
  const known: { task: string | null } = { task: null }
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  process.once('SIGINT', abort)
  try {
    const onTask = (id: string): void => void (known.task = id)
    const reply = withSteps(await followCall(context, { name, params, level, signal: stop.signal, onTask }), params)
    return await printReply(output, reply, 'type' in params && params.type === 'notification')
  } catch (error) {
    if (!stop.signal.aborted) throw error
    const shows = output.hint(known.task === null ? ALL_TASKS : `a2a-node tasks show ${known.task}`)
    output.note(`given up; the node cancels the work: ${shows} shows it`)
    return EXIT.interrupted
  } finally {
    process.off('SIGINT', abort)
  }
}

/**
 * A reply whose error names the task to look at, the option for more time, and the given input where it does not fit.
 */
function withSteps(reply: Reply, params: Calls[MessageCall]['params']): Reply {
  const error = reply.error ?? (reply.outcome === 'UNKNOWN' ? noAnswer(reply) : null)
  const { taskId } = reply
  if (error === null) return reply
  const late = timeoutSteps({ ...reply, error }, { name: '--timeout', givenMs: params.timeoutMs })
  if (late !== null) return { ...reply, error: { ...error, next: late } }
  const next = error.next.map((step) =>
    step === ALL_TASKS && taskId !== null ? `a2a-node tasks show ${shown(taskId)}` : step
  )
  return {
    ...reply,
    error: { ...error, next, ...(error.code === 'INVALID_INPUT' ? { data: withGiven(error, params) } : {}) }
  }
}

function withGiven({ data }: ErrorBody, params: Calls[MessageCall]['params']): object {
  const parsed = 'text' in params ? parseJson(params.text, SIZED_LIMITS) : null
  const text = 'text' in params ? { text: params.text } : null
  const input = 'input' in params ? params.input : parsed?.ok === true && isRecord(parsed.value) ? parsed.value : text
  return { ...(isRecord(data) ? data : {}), given: givenText(input) }
}

/** Prints what came back of a `send` or `call`; gives the exit code. */
async function printReply(output: Output, reply: Reply, isNotification: boolean): Promise<number> {
  if (output.json) output.object('reply@1', output.hinted(reply))
  else if (isNotification && reply.targets === undefined && reply.outcome === 'COMPLETED')
    output.note(`${shown(reply.agent)}: sent; nothing says whether it arrived`)
  else {
    await printText(output, reply)
    // stdout has the answer alone.
    if (reply.contextId !== undefined)
      output.note(
        `context ${shown(reply.contextId)}; ${output.hint(`a2a-node tasks --context ${shellWord(reply.contextId)}`)} shows it`
      )
  }
  return exitCode(reply)
}

async function printText(output: Output, reply: Reply): Promise<void> {
  if (reply.targets !== undefined) {
    const rows = reply.targets.map((one): Cell[] => [
      one.agent,
      { text: one.outcome, style: GOOD.has(one.outcome) ? 'green' : 'yellow' },
      one.rule ?? '-',
      answerText(one)
    ])
    await printTable(output, ['AGENT', 'OUTCOME', 'RULE', 'ANSWER'], rows)
    const changing = reply.targets.filter(({ outcome }) => outcome === 'SIDE_EFFECT').length
    if (changing > 0)
      output.note(`left out: ${plural(changing, 'agent')} with side effects (write, exec); --all includes them`)
    if (reply.outcome === 'FAILED') output.error(failureOf(reply).toBody())
    return
  }
  if (reply.outcome === 'QUEUED') {
    output.note(
      `queued for ${shown(reply.agent)}${reply.taskId === null ? '' : `; see ${output.hint(`a2a-node tasks show ${shown(reply.taskId)}`)}`}`
    )
    if (reply.taskId !== null) output.print(shown(reply.taskId))
    return
  }
  if (reply.outcome === 'COMPLETED') {
    output.note(output.paintNote('dim', `${shown(reply.agent)}, ${formatDuration(reply.latencyMs)}`))
    if (typeof reply.payload === 'string') output.print(plainText(reply.payload))
    else if (reply.payload !== null && reply.payload !== undefined) output.print(jsonText(reply.payload))
    return
  }
  output.error(failureOf(reply).toBody())
}

/** The beginning of an answer, why there is none, or the task that it will come to. */
function answerText({ outcome, taskId, payload, reason }: BroadcastTarget): string {
  if (outcome === 'QUEUED' && typeof taskId === 'string') return taskId
  if (reason !== undefined) return reason
  return payload === null || payload === undefined ? '-' : shown(JSON.stringify(payload), 200)
}

function failureOf(reply: Reply): NodeError {
  if (reply.error !== null) return NodeError.fromBody(reply.error)
  const next = [reply.taskId === null ? ALL_TASKS : `a2a-node tasks show ${reply.taskId}`]
  return new NodeError('TASK_FAILED', `${reply.agent} failed`, { next })
}

/** The error of an unknown outcome for which the node gives none. */
function noAnswer({ agent }: Reply): ErrorBody {
  return new NodeError('TIMEOUT', `no answer of ${agent} yet; the work may still run`).toBody()
}

function exitCode(reply: Reply): number {
  if (reply.outcome === 'UNKNOWN') return EXIT.timedOut
  if (reply.outcome === 'FAILED' && reply.targets?.some(({ outcome }) => TAKEN.has(outcome)) === true)
    return EXIT.partly
  if (reply.outcome === 'FAILED')
    return reply.error === null ? EXIT.failed : EXIT_CODES[NodeError.fromBody(reply.error).code]
  return EXIT.ok
}
