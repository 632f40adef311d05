import { asNodeError, NodeError, type ErrorBody } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import {
  expandPlan,
  needsOf,
  singleStage,
  withReducer,
  type Expanded,
  type StageWants
} from '../../domain/swarm/expand.js'
import { checkPlan, type Plan, type PlanTask } from '../../domain/swarm/plan.js'
import { isReducer, REDUCERS } from '../../domain/swarm/reduce.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { SwarmPreview, SwarmRequest } from '../../ports/swarm-api.js'
import type { SwarmHead, SwarmItem } from './store.js'
import type { Directory } from '../cards/directory.js'
import { nobody, type Eligibility, type Survey } from './eligibility.js'

/** Items of one swarm, at most. */
export const MAX_ITEMS = 10_000
/** Kinds of agents (by capability and labels) that one swarm looks for. */
export const MAX_NEEDS = 64

/** The parts of a swarm, and the eligible agents for each. */
export interface Prepared {
  readonly stages: SwarmHead['stages']
  readonly items: readonly SwarmItem[]
  /** Template of the result; absent unless its plan has one. */
  readonly output?: unknown
  readonly wants: readonly StageWants[]
  /** By {@link Prepared.wants}. */
  readonly found: readonly Survey[]
  /** The capability that makes one result of many; absent: none does. */
  readonly reducer?: string
}

/** The request to split into sub-tasks. */
export interface Wanted {
  readonly request: SwarmRequest
  /** Capabilities that agents need beside the requested one. */
  readonly further: readonly string[]
  readonly onBehalfOf?: CertifiedPower | undefined
}

/**
 * Splits a request into sub-tasks and items, and finds eligible agents. `onRecord`: as in {@link Eligibility.survey}.
 * @throws NodeError USAGE when it cannot be split: faults of a plan with their path in `data.faults`.
 */
export function prepare(
  eligibility: Pick<Eligibility, 'survey'>,
  wanted: Wanted,
  onRecord: Set<string> | null
): Prepared {
  const { request, further, onBehalfOf } = wanted
  const known = new Map<string, Survey>()
  const look = (wants: StageWants): Survey => {
    const key = JSON.stringify([wants.capability, wants.further ?? [], [...(wants.labels ?? [])].sort()])
    const found = known.get(key) ?? eligibility.survey({ request, wants, onBehalfOf }, onRecord)
    known.set(key, found)
    return found
  }
  const plan = planOf(request)
  const expanded = plan === null ? plainStage(request, further, look) : expandPlan(plan, (wants) => look(wants).allowed)
  const { reduce } = request
  const bound = bounded(expanded)
  const reducer = reduce === undefined || isReducer(reduce) ? null : reduce
  const { stages, items } = reducer === null ? bound : withReducer(bound, reducer)
  const { wants } = needsOf(stages)
  if (wants.length > MAX_NEEDS)
    throw new NodeError('USAGE', `a swarm looks for at most ${MAX_NEEDS} kinds of agents, not ${wants.length}`)
  const [first, ...others] = items
  const given = first === undefined ? [] : [plan === null ? first : { ...first, given: request.input ?? {} }, ...others]
  return {
    stages,
    items: given,
    wants,
    found: wants.map(look),
    ...(plan?.output === undefined ? {} : { output: plan.output }),
    ...(reducer === null ? {} : { reducer })
  }
}

/** The error for a name that is neither that of a reducer nor a known capability. */
function unknownReducer(reduce: string): NodeError {
  const message = `${shown(reduce, 128)} is none of the reducers ${REDUCERS.join(', ')}, and no agent in the mesh has a capability of that name`
  return new NodeError('NO_CAPABLE_AGENT', message, { data: { capability: reduce } })
}

/**
 * @throws NodeError when a sub-task has no eligible agent: see {@link nobody}; NO_CAPABLE_AGENT for too few different
 * agents.
 */
export function checkPrepared(directory: Pick<Directory, 'namer'>, { stages, wants, found, reducer }: Prepared): void {
  for (const [need, one] of wants.entries()) {
    const some = found[need]
    if (some === undefined || some.allowed.length > 0) continue
    throw one.capability === reducer && some.leftOut.length === 0
      ? unknownReducer(reducer)
      : nobody(directory, one, some)
  }
  const { needOf } = needsOf(stages)
  for (const [index, { id, count, isDistinct, capability }] of stages.entries()) {
    const may = found[needOf[index] ?? 0]?.allowed.length ?? 0
    if (isDistinct !== true || count <= may) continue
    const message = `${id} asks for ${count} answers of different agents, but only ${may} that have ${capability} may take part`
    throw new NodeError('NO_CAPABLE_AGENT', message, { data: { capability } })
  }
}

function plainStage(request: SwarmRequest, further: readonly string[], look: (wants: StageWants) => Survey): Expanded {
  const { capability, labels = [], strategy, items = [], input } = request
  const wants = { capability, further, labels }
  if (strategy === 'map')
    return singleStage(
      'map',
      wants,
      items.map((one) => ({ name: one.item, input: one.input ?? null }))
    )
  const [first, ...others] = look(wants).allowed.map((agent) => ({ name: agent, pinnedTo: agent }))
  // All agents get the same input: it is stored once.
  return singleStage('each', wants, first === undefined ? [] : [{ ...first, input: input ?? {} }, ...others])
}

function bounded(expanded: Expanded): Expanded {
  const { length } = expanded.items
  if (length > MAX_ITEMS) throw new NodeError('USAGE', `a swarm takes at most ${MAX_ITEMS} items, not ${length}`)
  return expanded
}

/** The plan of a request; null for strategies without one. @throws NodeError USAGE */
function planOf(request: SwarmRequest): Plan | null {
  const { strategy, capability, answers, judge, labels, stages = [], plan } = request
  const marked = labels === undefined ? {} : { labels }
  if (strategy === 'each' || strategy === 'map') return null
  if (strategy === 'plan') return checked(plan)
  if (strategy === 'pipeline') {
    if (stages.length === 0) throw new NodeError('USAGE', 'a pipeline needs at least one stage')
    return checked({
      tasks: stages.map(
        (one, index): PlanTask => ({ id: `stage-${index + 1}`, capability: one, ...marked, ...afterThe(index) })
      )
    })
  }
  const several = answers === undefined ? {} : { answers }
  const judged = judge === undefined ? {} : { judge }
  return checked({ tasks: [{ id: strategy, capability, strategy, ...marked, ...several, ...judged }] })
}

function afterThe(index: number): { readonly needs?: readonly string[] } {
  return index === 0 ? {} : { needs: [`stage-${index}`] }
}

function checked(plan: unknown): Plan {
  const found = checkPlan(plan)
  if (found.ok) return found.plan
  const [first] = found.faults
  const place = first === undefined || first.path.length === 0 ? 'the plan' : first.path.join('.')
  const others = found.faults.length + found.more - 1
  const message = `${shown(place)}: ${shown(first?.reason ?? 'not a plan', 500)}${others > 0 ? ` (and ${others} more)` : ''}`
  throw new NodeError('USAGE', message, { data: { faults: found.faults, moreFaults: found.more } })
}

/**
 * A preview of a launch, with the eligible agents. Nothing is recorded, no agent is asked.
 * @throws NodeError USAGE, as {@link prepare}
 */
export function previewOf(
  eligibility: Pick<Eligibility, 'survey'>,
  directory: Pick<Directory, 'namer'>,
  wanted: Wanted
): SwarmPreview {
  const prepared = prepare(eligibility, wanted, null)
  const { stages, items, found } = prepared
  const { needOf } = needsOf(stages)
  const namer = directory.namer()
  return {
    stages: stages.map(({ id, capability, labels = [], from, count, needs }, index) => {
      const { allowed = [], leftOut = [] } = found[needOf[index] ?? 0] ?? {}
      const agents = allowed.map((one) => namer(one))
      const isPinned = count > 0 && items.slice(from, from + count).every((one) => one.pinnedTo !== undefined)
      return {
        id,
        capability,
        labels,
        items: count,
        needs,
        agents,
        leftOut: leftOut.map((one) => ({ ...one, agent: namer(one.agent) })),
        isPinned
      }
    }),
    error: faultOf(() => checkPrepared(directory, prepared))
  }
}

function faultOf(check: () => void): ErrorBody | null {
  try {
    check()
    return null
  } catch (error) {
    return asNodeError(error).toBody()
  }
}
