import { type ErrorBody, NodeError } from '../kit/errors.js'
import { isRecord } from '../kit/json.js'
import { shellWord, shown } from '../kit/text.js'
import { LONGEST_UNIT_FIRST } from '../kit/units.js'
import type { Reply } from '../ports/node-api.js'
import { EXIT, EXIT_CODES } from './exit-codes.js'
import type { CommandRow } from './terminal/table.js'

/** Milliseconds that a call waits without `--timeout`: the default of `tasks.requestTimeoutMs`. */
const DEFAULT_MS = 30_000
/** Milliseconds that a node has for most answers without `--timeout`. */
const ANSWER_MS = 15_000
/** The longest duration of an option, in milliseconds: 30 days. */
const LONGEST_MS = 30 * 86_400_000

/**
 * The option of a command that bounds its wait, and the time that this command line gave; undefined for the default.
 */
export interface TimeOption {
  readonly name: '--timeout' | '--deadline'
  readonly givenMs: number | undefined
}

/**
 * The option with twice the time, as a step of an error: `--timeout 1m`. `defaultMs` holds without a given time. At
 * most 30 days.
 */
export function longerStep({ name, givenMs }: TimeOption, defaultMs: number): string {
  const ms = Math.min(LONGEST_MS, 2 * (givenMs ?? defaultMs))
  const [unit, factor] = LONGEST_UNIT_FIRST.find(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${name} ${ms / factor}${unit}`
}

/**
 * The steps after a call ran out of time: commands that show and cancel the work, then this command line with a longer
 * time. After the limit of the agent itself the step shows that agent, as no time of the caller helps. null for any
 * other end.
 */
export function timeoutSteps(
  reply: Pick<Reply, 'outcome' | 'error' | 'taskId' | 'agent'>,
  option: TimeOption
): readonly string[] | null {
  const { outcome, error, taskId, agent } = reply
  if (error !== null && isLimitOfAgent(error))
    return [`a2a-node agents show ${shellWord(agent)}`, ...taskSteps(taskId, false)]
  const waitedMs = waitedOf(error)
  const isUnknown = outcome === 'UNKNOWN' && (error === null || error.code === 'TIMEOUT')
  if (!isUnknown && error?.code !== 'TIMEOUT' && waitedMs === null) return null
  const first = error?.code === 'PEER_OFFLINE' ? error.next : []
  return [...first, ...taskSteps(taskId, isUnknown), longerStep(option, waitedMs ?? DEFAULT_MS)]
}

/**
 * An error that time ended, with this command line and a longer time as its last step. `spec` has the option
 * `--timeout`. Unchanged where a step names such an option already, or the limit of an agent ended it.
 */
export function withLongerStep(
  error: NodeError,
  { options = [] }: Pick<CommandRow, 'options'>,
  givenMs: number | undefined
): NodeError {
  if (EXIT_CODES[error.code] !== EXIT.timedOut || isLimitOfAgent(error)) return error
  const isTimed = options.some(({ flags }) => flags.startsWith('--timeout '))
  if (!isTimed || error.next.some((step) => /(?:^|\s)--(?:timeout|deadline)\b/.test(step))) return error
  const next = [...error.next, longerStep({ name: '--timeout', givenMs }, waitedOf(error) ?? ANSWER_MS)]
  return new NodeError(error.code, error.message, { data: error.data, retryable: error.retryable, next, cause: error })
}

/** Was the work ended by the limit of its agent? No time of the caller changes that. */
export function isLimitOfAgent({ code, data }: Pick<ErrorBody, 'code' | 'data'>): boolean {
  return code === 'TIMEOUT' && isRecord(data) && 'limitMs' in data
}

/**
 * A change that may still be made after a timeout is shown by the list of its command group. `list` is that command,
 * null for none.
 * Any other error is returned as it is.
 */
export function withListStep(error: NodeError, list: string | null): NodeError {
  if (error.code !== 'TIMEOUT' || list === null || !isRecord(error.data) || error.data['outcome'] !== 'unknown')
    return error
  const isNamed = error.next.includes(list.replace(/ ls$/, ''))
  return isNamed
    ? error
    : new NodeError(error.code, error.message, { data: error.data, next: [list, ...error.next], cause: error })
}

function taskSteps(taskId: string | null, mayRun: boolean): string[] {
  if (taskId === null) return ['a2a-node tasks']
  const id = shown(taskId)
  return [`a2a-node tasks show ${id}`, ...(mayRun ? [`a2a-node tasks cancel ${id}`] : [])]
}

/**
 * The caller's own time, which has passed. The bytes may be a peer's, so anything but a plain number counts as none.
 */
function waitedOf(error: Pick<ErrorBody, 'data'> | null): number | null {
  const waited = error !== null && isRecord(error.data) ? error.data['timeoutMs'] : null
  return typeof waited === 'number' && Number.isSafeInteger(waited) && waited > 0 && waited <= LONGEST_MS
    ? waited
    : null
}
