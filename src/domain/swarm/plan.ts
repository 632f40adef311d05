import { z } from 'zod'
import { canonicalJson, isRecord, jsonFault } from '../../kit/json.js'
import { utf8 } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { capabilityIdSchema, labelSchema } from '../card/schema.js'
import { CONDITION_MAX, parseCondition, referencesOf } from './condition.js'
import { NAME, type Reference, referencesIn, referenceText } from './template.js'

/** Sub-tasks of one plan. */
export const PLAN_MAX_TASKS = 256
/** Bytes of a plan: the UTF-8 of its canonical JSON. */
export const PLAN_MAX_BYTES = 262_144
/** Answers that a race or a vote asks for, at most. */
export const ANSWERS_MAX = 64
/** Needs that one sub-task names, and faults of a plan that are told. */
const NEEDS_MAX = 64
const FAULTS_MAX = 32

/** Names that every template knows, beside those of sub-tasks. `item`: only where there are items. */
const GIVEN: ReadonlySet<string> = new Set(['goal', 'input', 'item', 'round', 'check'])

/** One sub-task of a plan, as its author writes it. */
export interface PlanTask {
  /** A letter first, then letters, digits, `_` and `-`; at most 64. */
  readonly id: string
  readonly capability: string
  /** Labels that the agent's node must carry, all of them. */
  readonly labels?: readonly string[]
  /** Ids of sub-tasks that have to be complete before; those that `input` and `when` name are added. */
  readonly needs?: readonly string[]
  /** A condition over the results of others; see `parseCondition`. */
  readonly when?: string
  /** A template, see `fillTemplate`. Default: the result of its one need, an object of those of several, else the given input. */
  readonly input?: unknown
  /** Default: one agent does it. `each`: every agent; `race`, `vote`: several answer. */
  readonly strategy?: 'each' | 'race' | 'vote'
  /** How many answer in a race or vote. Default: every agent that may, at most {@link ANSWERS_MAX}. */
  readonly answers?: number
  /** Capability that decides a vote in the place of the majority. */
  readonly judge?: string
  /** It is done once for each of these; `{item}` stands for one. */
  readonly items?: readonly unknown[]
}

/** A graph of sub-tasks. */
export interface Plan {
  readonly tasks: readonly PlanTask[]
  /** A template of the swarm's result. Default: the results of the sub-tasks that no other needs. */
  readonly output?: unknown
}

/** What is wrong with a plan, and where. */
export interface PlanFault {
  /** Keys and indexes, outermost first. */
  readonly path: readonly (string | number)[]
  readonly reason: string
}

const taskSchema: z.ZodType<PlanTask> = z.strictObject({
  id: z.string().regex(NAME, 'must be 1 to 64 letters, digits, _ and -, a letter first'),
  capability: capabilityIdSchema,
  labels: z.array(labelSchema).min(1).max(32).exactOptional(),
  needs: z.array(z.string()).max(NEEDS_MAX).exactOptional(),
  when: z.string().min(1).max(CONDITION_MAX).exactOptional(),
  input: z.unknown().exactOptional(),
  strategy: z.enum(['each', 'race', 'vote']).exactOptional(),
  answers: z.int().min(1).max(ANSWERS_MAX).exactOptional(),
  judge: capabilityIdSchema.exactOptional(),
  items: z.array(z.unknown()).min(1).max(10_000).exactOptional()
})
const planSchema: z.ZodType<Plan> = z.strictObject({
  tasks: z.array(taskSchema).min(1).max(PLAN_MAX_TASKS),
  output: z.unknown().exactOptional()
})

/** What {@link checkPlan} finds. `needs` of the plan's sub-tasks are complete then. */
export type PlanCheck = { readonly ok: true; readonly plan: Plan } | { readonly ok: false; readonly faults: readonly PlanFault[] }

/** Checks a plan in full: form, bounds, names, conditions, circles. Whoever wrote it: never throws. */
export function checkPlan(value: unknown): PlanCheck {
  const fault = jsonFault(value) ?? sizeFault(value)
  if (fault !== null) return { ok: false, faults: [{ path: [], reason: fault }] }
  const parsed = planSchema.safeParse(value)
  if (!parsed.success) return { ok: false, faults: formFaults(parsed.error, value) }
  const plan = parsed.data
  const faults = [...nameFaults(plan), ...plan.tasks.flatMap((task, index) => taskFaults(plan, task, index)), ...outputFaults(plan)]
  if (faults.length > 0) return { ok: false, faults: faults.slice(0, FAULTS_MAX) }
  const complete = { ...plan, tasks: plan.tasks.map(withNeeds) }
  const circle = circleOf(complete.tasks)
  return circle === null ? { ok: true, plan: complete } : { ok: false, faults: [circle] }
}

function sizeFault(value: unknown): string | null {
  try {
    return utf8(canonicalJson(value)).byteLength > PLAN_MAX_BYTES ? `a plan has at most ${PLAN_MAX_BYTES} bytes` : null
  } catch {
    return 'a plan is JSON'
  }
}

function formFaults(error: z.ZodError, value: unknown): PlanFault[] {
  return error.issues.slice(0, FAULTS_MAX).map(({ path, message, ...issue }) => {
    const keys = path.map((key) => (typeof key === 'symbol' ? '' : key))
    const [unknown] = 'keys' in issue && Array.isArray(issue.keys) ? issue.keys : []
    const isMissing = !isThere(value, keys)
    return {
      path: typeof unknown === 'string' ? [...keys, unknown] : keys,
      reason: isMissing ? `${keys.at(-1) ?? 'it'} is missing` : shown(message)
    }
  })
}

function isThere(value: unknown, keys: readonly (string | number)[]): boolean {
  let at: unknown = value
  for (const key of keys) {
    if (Array.isArray(at) && typeof key === 'number') at = at[key]
    else if (isRecord(at) && Object.hasOwn(at, key)) at = at[key]
    else return false
  }
  return true
}

function nameFaults({ tasks }: Plan): PlanFault[] {
  const seen = new Set<string>()
  return tasks.flatMap(({ id, judge }, index) => {
    // The votes of a judged sub-task are one of their own.
    const names = judge === undefined ? [id] : [id, votesName(id)]
    const reason = GIVEN.has(id)
      ? `${id} is a name that every template knows already`
      : names.some((one) => seen.has(one))
        ? `${id} is there twice`
        : null
    for (const one of names) seen.add(one)
    return reason === null ? [] : [{ path: ['tasks', index, 'id'], reason }]
  })
}

/** The name of the answers that a judge decides on. */
export function votesName(id: string): string {
  return `${id}_votes`
}

function taskFaults(plan: Plan, task: PlanTask, index: number): PlanFault[] {
  const at = (key: string, reason: string, path: readonly (string | number)[] = []): PlanFault => ({
    path: ['tasks', index, key, ...path],
    reason
  })
  const ids = new Set(plan.tasks.map(({ id }) => id))
  const faults: PlanFault[] = []
  for (const [place, need] of (task.needs ?? []).entries()) {
    if (!ids.has(need)) faults.push(at('needs', `there is no sub-task ${shown(need, 64)}`, [place]))
    else if (need === task.id) faults.push(at('needs', 'it needs itself', [place]))
  }
  const condition = task.when === undefined ? null : parseCondition(task.when)
  if (condition?.ok === false) faults.push(at('when', condition.reason))
  if (condition?.ok === true) {
    for (const one of referencesOf(condition.condition)) {
      const reason = referenceFault(one, { ids, self: task.id, hasItems: false })
      if (reason !== null) faults.push(at('when', reason))
    }
  }
  for (const { reference, path } of referencesIn(task.input)) {
    const reason = referenceFault(reference, { ids, self: task.id, hasItems: task.items !== undefined })
    if (reason !== null) faults.push(at('input', reason, path))
  }
  if (task.answers !== undefined && task.strategy !== 'race' && task.strategy !== 'vote')
    faults.push(at('answers', 'only a race or a vote has answers'))
  if (task.judge !== undefined && task.strategy !== 'vote') faults.push(at('judge', 'only a vote has a judge'))
  if (task.items !== undefined && task.strategy !== undefined) faults.push(at('items', `${task.strategy} takes no items`))
  return faults
}

function outputFaults({ tasks, output }: Plan): PlanFault[] {
  const ids = new Set(tasks.map(({ id }) => id))
  return referencesIn(output).flatMap(({ reference, path }) => {
    const reason = ids.has(reference.name) ? null : `there is no sub-task ${reference.name}`
    return reason === null ? [] : [{ path: ['output', ...path], reason }]
  })
}

function referenceFault(
  reference: Reference,
  { ids, self, hasItems }: { ids: ReadonlySet<string>; self: string; hasItems: boolean }
): string | null {
  const { name, facet } = reference
  if (name === self) return `${referenceText(reference)} is its own result`
  if (name === 'item' && !hasItems) return '{item} stands for one of the items, and there are none here'
  if (GIVEN.has(name)) return facet === 'result' ? null : `${name} has no ${facet}`
  return ids.has(name)
    ? null
    : `${referenceText(reference)}: there is no sub-task ${name}; for the text itself write {${referenceText(reference)}}`
}

/** A sub-task with all that it needs, in the order of their first mention. */
function withNeeds(task: PlanTask): PlanTask {
  const condition = task.when === undefined ? null : parseCondition(task.when)
  const named = [
    ...(condition?.ok === true ? referencesOf(condition.condition) : []),
    ...referencesIn(task.input).map(({ reference }) => reference)
  ]
  const names = named.map(({ name }) => name).filter((name) => !GIVEN.has(name))
  return { ...task, needs: [...new Set([...(task.needs ?? []), ...names])] }
}

/** The first circle of needs; null when there is none. */
function circleOf(tasks: readonly PlanTask[]): PlanFault | null {
  const byId = new Map(tasks.map((task, index) => [task.id, { task, index }]))
  const isDone = new Set<string>()
  // Those that nobody in the rest needs first: what is left over at the end stands in circles, or behind one.
  for (let isNew = true; isNew; ) {
    isNew = false
    for (const { id, needs = [] } of tasks) {
      if (isDone.has(id) || !needs.every((one) => isDone.has(one))) continue
      isDone.add(id)
      isNew = true
    }
  }
  const start = tasks.find(({ id }) => !isDone.has(id))
  if (start === undefined) return null
  const way: string[] = []
  let at = start.id
  while (!way.includes(at)) {
    way.push(at)
    at = byId.get(at)?.task.needs?.find((one) => !isDone.has(one)) ?? at
  }
  const circle = [...way.slice(way.indexOf(at)), at]
  return { path: ['tasks', byId.get(at)?.index ?? 0], reason: `it needs itself: ${circle.join(' -> ')}` }
}
