import { isRecord } from '../../kit/json.js'
import type { GraphStage, StageRule } from './graph.js'
import { parseCondition, referencesOf } from './condition.js'
import { ANSWERS_MAX, type Plan, type PlanTask } from './plan.js'
import { votesName } from './plan-graph.js'
import type { ItemSpec } from './types.js'

/** The requirements of a sub-task. */
export interface StageWants {
  readonly capability: string
  /** Further capabilities of the agent. Default none. */
  readonly further?: readonly string[]
  /** Labels that its node must carry. Default none. */
  readonly labels?: readonly string[]
}

/** A sub-task as a swarm keeps it: JSON. Its items are `count` from `from` on. */
export interface Stage extends StageWants {
  readonly id: string
  readonly rule: StageRule
  readonly from: number
  readonly count: number
  readonly isList: boolean
  readonly needs: readonly string[]
  readonly isGathering?: boolean
  /** No agent does two of its items. */
  readonly isDistinct?: boolean
  readonly when?: string
  /** The input of its items; absent when each has its own. */
  readonly template?: unknown
}

/** An item of a sub-task, with its `{item}` or its input. */
export interface StageItem {
  readonly name: string
  readonly pinnedTo?: string
  readonly input?: unknown
}

/** Sub-tasks and their items, in the order of the stages. */
export interface Expanded {
  readonly stages: readonly Stage[]
  readonly items: readonly StageItem[]
}

/** The agents, by address, that may do a sub-task now. */
export type AgentsOf = (wants: StageWants) => readonly string[]

/** The one sub-task of a swarm over items, or over agents. */
export function singleStage(id: 'each' | 'map', wants: StageWants, items: readonly StageItem[]): Expanded {
  return { stages: [{ ...wants, id, rule: 'all', from: 0, count: items.length, isList: true, needs: [] }], items }
}

/** Makes the sub-tasks and items of a checked plan. A sub-task without an agent has one item all the same. */
export function expandPlan({ tasks }: Plan, agentsOf: AgentsOf): Expanded {
  const stages: Stage[] = []
  const items: StageItem[] = []
  for (const task of tasks) {
    const made = taskItems(task, agentsOf)
    const name = task.judge === undefined ? task.id : votesName(task.id)
    stages.push({ ...stageOf(task), id: name, from: items.length, count: made.length })
    items.push(...made)
    if (task.judge === undefined) continue
    const template = { goal: '{goal}', answers: `{${name}}` }
    const judging = { capability: task.judge, rule: 'all', isList: false, needs: [name], isGathering: true } as const
    stages.push({ ...judging, id: task.id, template, from: items.length, count: 1 })
    items.push({ name: task.id })
  }
  return { stages, items }
}

/** Appends a sub-task that reduces the final results to one. */
export function withReducer({ stages, items }: Expanded, capability: string): Expanded {
  const needed = new Set(stages.flatMap(({ needs }) => needs))
  const leaves = stages.filter(({ id }) => !needed.has(id))
  const [first] = leaves
  const results = leaves.length === 1 && first?.isList === true ? `{${first.id}}` : leaves.map(({ id }) => `{${id}}`)
  const id = uniqueName('reduce', stages)
  const reduce = {
    id,
    capability,
    rule: 'all',
    isList: false,
    isGathering: true,
    from: items.length,
    count: 1
  } as const
  const needs = leaves.map((one) => one.id)
  return {
    stages: [...stages, { ...reduce, needs, template: { goal: '{goal}', results } }],
    items: [...items, { name: id }]
  }
}

function uniqueName(name: string, stages: readonly Stage[]): string {
  let unique = name
  for (let n = 2; stages.some(({ id }) => id === unique); n++) unique = `${name}-${n}`
  return unique
}

function taskItems(task: PlanTask, agentsOf: AgentsOf): StageItem[] {
  const { id, capability, labels = [], strategy, answers, items } = task
  if (items !== undefined)
    return items.map((input, index) => ({ name: `${id}: ${typeof input === 'string' ? input : index + 1}`, input }))
  if (strategy === undefined) return [{ name: id }]
  const agents = agentsOf({ capability, labels })
  if (strategy === 'each')
    return agents.length === 0 ? [{ name: id }] : agents.map((agent) => ({ name: agent, pinnedTo: agent }))
  const count = Math.max(1, answers ?? Math.min(ANSWERS_MAX, agents.length))
  return Array.from({ length: count }, (_, index) => ({ name: `${id} ${index + 1}` }))
}

function stageOf(task: PlanTask): Omit<Stage, 'id' | 'from' | 'count'> {
  const { capability, labels, needs = [], when, strategy, judge, items } = task
  const rule = strategy === 'race' ? 'first' : strategy === 'vote' ? (judge === undefined ? 'majority' : 'any') : 'all'
  const isList = items !== undefined || strategy === 'each' || judge !== undefined
  return {
    capability,
    rule,
    isList,
    needs,
    template: 'input' in task ? task.input : usualInput(task),
    ...(labels === undefined ? {} : { labels }),
    ...(strategy === 'race' || strategy === 'vote' ? { isDistinct: true } : {}),
    ...(when === undefined ? {} : { when })
  }
}

/** An item, the result of the only need, an object of several results, or the given input. */
function usualInput({ needs = [], items }: PlanTask): unknown {
  if (items !== undefined) return items.every(isRecord) ? '{item}' : { item: '{item}' }
  const [first] = needs
  if (first === undefined) return '{input}'
  return needs.length === 1 ? `{${first}}` : Object.fromEntries(needs.map((one) => [one, `{${one}}`]))
}

/** The graph of some sub-tasks. */
export function graphStages(stages: readonly Stage[]): GraphStage[] {
  const byId = new Map(stages.map(({ id }, index) => [id, index]))
  const indexesOf = (ids: readonly string[]): number[] => ids.flatMap((id) => byId.get(id) ?? [])
  return stages.map(({ id, rule, from, count, isList, needs, isGathering = false, when }) => {
    const parsed = when === undefined ? null : parseCondition(when)
    const condition = parsed?.ok === true ? parsed.condition : null
    const asked = condition === null ? [] : referencesOf(condition).filter(({ facet }) => facet !== 'result')
    const bears = new Set(indexesOf(asked.map(({ name }) => name)))
    return { id, rule, from, count, isList, needs: indexesOf(needs), isGathering, when: condition, bears }
  })
}

/** Kinds of agents that some sub-tasks look for, and which of them each sub-task does. */
export function needsOf(stages: readonly Stage[]): {
  readonly wants: readonly StageWants[]
  readonly needOf: readonly number[]
} {
  const wants: StageWants[] = []
  const known = new Map<string, number>()
  const needOf = stages.map(({ capability, further = [], labels = [] }) => {
    const key = JSON.stringify([capability, further, [...labels].sort()])
    const need = known.get(key) ?? wants.length
    if (need === wants.length) wants.push({ capability, further, labels })
    known.set(key, need)
    return need
  })
  return { wants, needOf }
}

/** Items for the lease machine: items of stages that need others are blocked. */
export function itemSpecs(stages: readonly Stage[], items: readonly StageItem[]): ItemSpec[] {
  const { needOf } = needsOf(stages)
  return stages.flatMap(({ from, count, isDistinct, needs, when }, stage) =>
    items.slice(from, from + count).map(({ name, pinnedTo }) => ({
      name,
      need: needOf[stage] ?? 0,
      isBlocked: needs.length > 0 || when !== undefined,
      ...(pinnedTo === undefined ? {} : { pinnedTo }),
      ...(isDistinct === true ? { group: stage } : {})
    }))
  )
}
