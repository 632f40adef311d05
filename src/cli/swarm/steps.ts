import type { ErrorBody } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { givenText } from '../../kit/schema/text.js'
import { shellWord, shown } from '../../kit/text.js'
import type { PlanTask } from '../../domain/swarm/plan.js'
import type { SwarmEvent, SwarmRequest } from '../../ports/swarm-api.js'
import type { Output } from '../terminal/output.js'
import { isLimitOfAgent, longerStep } from '../timeouts.js'

/** How a swarm was launched by this command line; null for one that is only watched. */
export interface LaunchedStep {
  readonly request: SwarmRequest
  /** Its items are lines, which may be given again on standard input. */
  readonly isList: boolean
  /** Its id, once it has ended. */
  readonly id?: string
  /** Milliseconds that it had, also without `--deadline`; absent: not known yet. */
  readonly deadlineMs?: number
}

type Failure = Extract<SwarmEvent, { type: 'item' }>

const TEXT_MAX = 400
/** Items that are typed again for a person, at most, and the characters of their names together. */
const AGAIN_MAX = 10
const AGAIN_CHARACTERS = 400
/** Errors of work that an agent had begun. */
const OF_WORK: ReadonlySet<string> = new Set(['TASK_FAILED', 'TIMEOUT', 'INVALID_OUTPUT'])
const BEGUN = '  before you run the failed items again, check what they did: a part of their work may be done'
const IN_DOUBT =
  '  before you run it again with more time, check the unknown items: they were canceled, and a part of their work may be done'
/** The step of errors that know nothing better: the results say the same. */
const GENERAL = 'a2a-node tasks'

/** Next steps after failed items: the expected form of their input, and commands that correct or repeat them. */
export function stepLines(output: Output, failures: readonly Failure[], launched: LaunchedStep | null): string[] {
  const unfit = failures.find(({ error }) => error?.code === 'INVALID_INPUT')
  if (unfit !== undefined) return unfitLines(output, unfit, launched)
  // A new launch with the same key would only find this swarm.
  const mayRetype = launched !== null && launched.request.idempotencyKey === undefined
  const isInDoubt = failures.some(({ status }) => status === 'unknown')
  const isLate = failures.some(({ error }) => error?.code === 'TIMEOUT' && !isLimitOfAgent(error))
  const longer = isLate && mayRetype ? longerLine(output, launched) : null
  const error = failures[0]?.error ?? null
  const slow = failures.find((one) => one.error !== null && isLimitOfAgent(one.error))
  const limit = slow === undefined ? [] : [output.hint(`a2a-node agents show ${shellWord(slow.agent)}`)]
  const mending = [...limit, ...(error === null ? [] : mendingSteps(output, error))]
  const known = failures.filter(({ status }) => status === 'failed')
  const mayRepeat = longer === null && known.length > 0
  const listed = mayRepeat && mayRetype && launched.isList ? againLine(output, known) : null
  const again = listed ?? (mayRepeat ? retryLine(output, launched) : null)
  const steps = [longer, ...(longer === null ? mending : []), again].filter((one) => one !== null)
  const lines = steps.map((one) => `  try: ${shown(one, 1000)}`)
  if (longer !== null && isInDoubt) return [IN_DOUBT, ...lines]
  return again !== null && known.some(hasBegun) ? [...lines.slice(0, -1), BEGUN, ...lines.slice(-1)] : lines
}

/** Had the agent begun the item, as its error says, so that a part of the work may be done? */
function hasBegun({ error }: Failure): boolean {
  return error !== null && !error.retryable && OF_WORK.has(error.code)
}

/** This command line with twice the time. */
function longerLine(output: Output, { request, deadlineMs = request.deadlineMs }: LaunchedStep): string | null {
  if (deadlineMs === undefined) return output.retyped('--deadline', "'<longer>'")
  const [name = '', value = ''] = longerStep({ name: '--deadline', givenMs: request.deadlineMs }, deadlineMs).split(' ')
  return output.retyped(name, value)
}

/** Next steps for the error of a whole swarm. */
export function errorSteps(output: Output, error: ErrorBody): string[] {
  return mendingSteps(output, error).map((one) => `  try: ${shown(one, 1000)}`)
}

function mendingSteps(output: Output, error: ErrorBody): string[] {
  return output.nextOf(error).filter((one) => one !== output.hint(GENERAL))
}

function unfitLines(output: Output, failure: Failure, launched: LaunchedStep | null): string[] {
  const { error } = failure
  const expected = isRecord(error?.data) ? error.data['expected'] : null
  const given = givenOf(failure, launched)
  const input = launched?.request.items === undefined ? "'<json as expected>'" : `'{"<member>":"{item}"}'`
  const again = launched === null || !takesInput(failure, launched) ? null : output.retyped('--input', input)
  const steps = again === null ? (error === null ? [] : output.nextOf(error)) : [again]
  return [
    ...(typeof expected === 'string' ? [`  expected: ${shown(expected, TEXT_MAX)}`] : []),
    ...(given === null ? [] : [`  given: ${given}`]),
    ...steps.map((one) => `  try: ${shown(one, 1000)}`)
  ]
}

/** The input of a failed item, by its error or by the request; null where neither has it. */
function givenOf(failure: Failure, launched: LaunchedStep | null): string | null {
  const { item, error } = failure
  const given = isRecord(error?.data) ? error.data['given'] : null
  if (typeof given === 'string') return shown(given, TEXT_MAX)
  if (launched === null || !takesInput(failure, launched)) return null
  return givenText(launched.request.items?.find((one) => one.item === item)?.input ?? launched.request.input ?? {})
}

/** Has the item the input of the request, not one made of the results of others or of a template of a plan? */
function takesInput({ stage }: Failure, { request }: LaunchedStep): boolean {
  if (stage === undefined) return request.strategy !== 'plan' || isPlain(request.plan?.tasks[0])
  if (request.strategy === 'plan') return isPlain(request.plan?.tasks.find(({ id }) => id === stage))
  // The names of the sub-tasks that a node makes of a request.
  const first = { pipeline: 'stage-1', vote: request.judge === undefined ? 'vote' : 'vote_votes' }
  return stage === (first[request.strategy as keyof typeof first] ?? request.strategy)
}

function isPlain(task: PlanTask | undefined): boolean {
  const { needs = [], input, items, when } = task ?? { input: null }
  return needs.length === 0 && input === undefined && items === undefined && when === undefined
}

/** The failed items once more, with their inputs; null where they cannot be tried again. */
function retryLine(output: Output, launched: LaunchedStep | null): string | null {
  if (launched?.id === undefined || launched.request.strategy !== 'map') return null
  return output.hint(`a2a-node swarm retry ${shown(launched.id)}`)
}

/** The failed items once more, as lines. null when none failed, or too many to be typed. */
function againLine(output: Output, failures: readonly Failure[]): string | null {
  const items = [...new Set(failures.map(({ item }) => item))].map(shellWord)
  const command = output.retyped('--items', '-')
  if (command === null || items.length === 0 || items.length > AGAIN_MAX || items.join(' ').length > AGAIN_CHARACTERS)
    return null
  return `printf '%s\\n' ${items.join(' ')} | ${command}`
}
