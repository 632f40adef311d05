import { faultyPlan, type PlanFile, readPlanFile } from '../../config/plan-file.js'
import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import { isGlob } from '../items/glob.js'
import { ITEMS_MAX, type RawItem, readItems } from '../items/source.js'
import { type InputTemplate, parseTemplate, plainInput, type TemplateSwarm } from '../items/template.js'
import { PLANNER } from './planner.js'
import { countOption, durationOption, given, isSet, type Options, textOption, textsOption } from '../options.js'

const KEY_MAX = 256
/** Answers of a race or vote, and stages of a pipeline. */
const SEVERAL_MAX = 64

type Strategy = SwarmRequest['strategy']

type Inputs = Pick<SwarmRequest, 'input' | 'items'>

/** A request and its command line. */
export interface AskedSwarm {
  readonly request: SwarmRequest
  /** The input of a later round, with new values of `{goal}`, `{round}` and `{check}`. */
  inputsOf(swarm: TemplateSwarm): Inputs
  /** Are its items lines, not files? */
  readonly isList: boolean
  readonly planFile: PlanFile | null
}

/** Do the flags leave it to a planner what is done? */
export function isForPlanner(options: Options): boolean {
  const isPlan = (textOption(options, 'strategy') ?? 'plan') === 'plan'
  return (
    isPlan &&
    ['plan', 'items', 'judge', 'answers'].every((name) => textOption(options, name) === undefined) &&
    !isGiven(options)
  )
}

function isGiven(options: Options): boolean {
  return textsOption(options, 'capability').length > 0 || textsOption(options, 'label').length > 0
}

/** Makes the request of a goal that a planner is to cut: all but its plan. @throws NodeError USAGE */
export function goalRequest(goal: string, options: Options): AskedSwarm {
  if (goal.trim() === '') throw usage('the goal is empty')
  const inputsOf = inputsBy(templateOf(options), null)
  const request = {
    goal,
    capability: PLANNER,
    strategy: 'plan',
    ...inputsOf(firstOf(goal)),
    ...sharedOf(options)
  } as const
  return { request, inputsOf, isList: false, planFile: null }
}

/** Makes the request of the flags of `swarm run`. @throws NodeError USAGE */
export async function swarmRequest(goal: string, options: Options): Promise<AskedSwarm> {
  if (goal.trim() === '') throw usage('the goal is empty')
  const file = textOption(options, 'plan')
  const planFile = file === undefined ? null : await readPlanFile(file)
  const capabilities = textsOption(options, 'capability').flatMap((text) => text.split(',').map((one) => one.trim()))
  const source = textOption(options, 'items')
  const strategy = strategyOf(options, { capabilities, planFile })
  checkFlags(options, { strategy, capabilities })
  const template = templateOf(options)
  const items =
    source === undefined ? null : await readItems(source, { cwd: process.cwd(), attach: isSet(options, 'attach') })
  const inputsOf = inputsBy(template, items)
  const work = workOf(strategy, { capabilities, planFile, labels: labelsOf(options) })
  const request = { goal, ...work, ...inputsOf(firstOf(goal)), ...sharedOf(options) }
  return { request, inputsOf, isList: source !== undefined && !isGlob(source), planFile }
}

function templateOf(options: Options): InputTemplate | null {
  const text = textOption(options, 'input')
  return text === undefined ? null : parseTemplate(text)
}

function firstOf(goal: string): TemplateSwarm {
  return { goal, round: 1, check: '' }
}

function strategyOf(
  options: Options,
  { capabilities, planFile }: { capabilities: readonly string[]; planFile: PlanFile | null }
): Strategy {
  const named = textOption(options, 'strategy')
  if (named !== undefined) return named as Strategy
  if (textOption(options, 'items') !== undefined) return 'map'
  return planFile !== null || capabilities.length > 1 ? 'plan' : 'each'
}

function checkFlags(
  options: Options,
  { strategy, capabilities }: { strategy: Strategy; capabilities: readonly string[] }
): void {
  const source = textOption(options, 'items')
  const isPlan = textOption(options, 'plan') !== undefined
  if (isPlan && strategy !== 'plan') throw usage(`--plan has a strategy of its own, not ${strategy}`)
  if (isPlan && capabilities.length > 0)
    throw usage('the sub-tasks of --plan name their capabilities: leave --capability out')
  if (isPlan && textsOption(options, 'label').length > 0)
    throw usage('the sub-tasks of --plan name their labels: leave --label out')
  if (!isPlan && strategy === 'plan' && capabilities.length === 0) throw unplanned()
  if (!isPlan && (capabilities.length === 0 || capabilities.includes('')))
    throw usage('--capability is required: it selects the agents', ['a2a-node agents', 'a2a-node swarm run --help'])
  if (capabilities.length > 1 && strategy !== 'pipeline' && strategy !== 'plan')
    throw usage(
      `the strategy ${strategy} takes one capability; several are the stages of a pipeline, or sub-tasks side by side`
    )
  if (strategy === 'map' && source === undefined) throw usage('the strategy map needs --items')
  if (strategy !== 'map' && source !== undefined)
    throw usage(`the strategy ${strategy} takes no --items${itemsAdvice(strategy)}`)
  if (source === undefined && isSet(options, 'attach')) throw usage('--attach needs --items')
  if (textOption(options, 'judge') !== undefined && strategy !== 'vote') throw usage('--judge needs --strategy vote')
  if (textOption(options, 'answers') !== undefined && strategy !== 'vote' && strategy !== 'race')
    throw usage('--answers needs --strategy vote or race')
}

function itemsAdvice(strategy: Strategy): string {
  if (strategy === 'plan') return ': its sub-tasks may have items of their own'
  return strategy === 'each' ? ': every agent gets the same input' : ''
}

function workOf(
  strategy: Strategy,
  {
    capabilities,
    planFile,
    labels
  }: { capabilities: readonly string[]; planFile: PlanFile | null; labels: { labels?: readonly string[] } }
): Pick<SwarmRequest, 'capability' | 'strategy' | 'stages' | 'plan'> {
  const [capability = PLANNER] = capabilities
  if (strategy === 'pipeline') return { capability, strategy, stages: capabilities }
  if (strategy !== 'plan') return { capability, strategy }
  // The node checks it, whatever it is.
  if (planFile !== null)
    return {
      capability: firstCapability(planFile.value),
      strategy,
      plan: planFile.value as NonNullable<SwarmRequest['plan']>
    }
  return {
    capability,
    strategy,
    plan: { tasks: capabilities.map((one, index) => ({ id: `task-${index + 1}`, capability: one, ...labels })) }
  }
}

/** The capability of the first sub-task of a plan. */
export function firstCapability(plan: unknown): string {
  const tasks = isRecord(plan) && Array.isArray(plan['tasks']) ? plan['tasks'] : []
  const first: unknown = tasks[0]
  const capability = isRecord(first) ? first['capability'] : undefined
  return typeof capability === 'string' && capability !== '' && capability.length <= 128 ? capability : PLANNER
}

function labelsOf(options: Options): { labels?: readonly string[] } {
  const labels = textsOption(options, 'label').flatMap((text) => text.split(','))
  return labels.length === 0 ? {} : { labels }
}

function sharedOf(options: Options): Partial<SwarmRequest> {
  return given({
    ...labelsOf(options),
    answers: countOption(options, 'answers', [1, SEVERAL_MAX]),
    judge: textOption(options, 'judge'),
    reduce: textOption(options, 'reduce'),
    maxParallel: countOption(options, 'maxParallel', [1, ITEMS_MAX]),
    retries: countOption(options, 'retries', [0, 100]),
    deadlineMs: durationOption(options, 'deadline'),
    justification: textOption(options, 'justification'),
    idempotencyKey: keyOption(options),
    allowRepeat: isSet(options, 'allowRepeat') ? true : undefined,
    takeover: options['takeover'] === false ? false : undefined
  })
}

function keyOption(options: Options): string | undefined {
  const key = textOption(options, 'idempotencyKey')
  if (key !== undefined && (key === '' || key.length > KEY_MAX))
    throw usage(`--idempotency-key takes 1 to ${KEY_MAX} characters`)
  return key
}

function inputsBy(template: InputTemplate | null, items: readonly RawItem[] | null): AskedSwarm['inputsOf'] {
  if (items !== null) {
    const inputOf = (item: RawItem, swarm: TemplateSwarm): unknown =>
      template === null ? plainInput(item) : template.inputOf(item, swarm)
    return (swarm) => ({ items: items.map((item) => ({ item: item.name, input: inputOf(item, swarm) })) })
  }
  if (template?.needsItems === true) throw usage('{item}, {file} and {text} need --items')
  return (swarm) => (template === null ? {} : { input: template.inputOf(null, swarm) })
}

/** Faults of a plan found by the node, with file and line; any other error as it is. */
export function placed(error: NodeError, planFile: PlanFile | null): NodeError {
  const data = isRecord(error.data) ? error.data : {}
  const faults = Array.isArray(data['faults']) ? data['faults'].filter(isFault) : []
  const more = typeof data['moreFaults'] === 'number' ? data['moreFaults'] : 0
  if (planFile === null || faults.length === 0) return error
  const printed = faults.map(({ path, reason }) => ({
    place: planFile.placeOf(path),
    reason: shown([...(path.length === 0 ? [] : [path.join('.')]), reason].join(': '), 500)
  }))
  return faultyPlan(
    printed.toSorted((a, b) => lineOf(a) - lineOf(b)),
    more
  )
}

function lineOf({ place }: { readonly place: string }): number {
  return Number(place.slice(place.lastIndexOf(':') + 1))
}

function isFault(value: unknown): value is { path: (string | number)[]; reason: string } {
  return isRecord(value) && Array.isArray(value['path']) && typeof value['reason'] === 'string'
}

function unplanned(): NodeError {
  return usage(
    `the strategy plan needs sub-tasks: a file of them (--plan <file>), several --capability, or an agent that offers ${PLANNER} and makes them of the goal`,
    ["--plan '<file>'", 'a2a-node agents', 'a2a-node swarm run --help']
  )
}

function usage(message: string, next: readonly string[] = ['a2a-node swarm run --help']): NodeError {
  return new NodeError('USAGE', message, { next })
}
