import { z } from 'zod'
import { canonicalJson, isRecord, jsonFault } from '../../kit/json.js'
import { utf8 } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { capabilityIdSchema, labelSchema } from '../card/schema.js'
import { JSON_KINDS, type KindWords, plainReason } from '../schema-words.js'
import { CONDITION_MAX } from './condition.js'
import { graphFaults, needsOf, type PlanDraft, type PlanFault, type TaskDraft } from './plan-graph.js'
import { NAME } from '../../kit/template/fill.js'

/** Sub-tasks of one plan. */
export const PLAN_MAX_TASKS = 256
/** Bytes of a plan: the UTF-8 of its canonical JSON. */
export const PLAN_MAX_BYTES = 262_144
/** Answers that a race or a vote asks for, at most. */
export const ANSWERS_MAX = 64
/** Needs that one sub-task names. */
const NEEDS_MAX = 64
/** Reported faults of a plan; further ones are counted. */
const FAULTS_MAX = 32

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
  /**
   * A template, see `fillTemplate`. Default: the result of its one need, an object of several results, or the given
   * input.
   */
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

const strategySchema = z.enum(['each', 'race', 'vote'])
const conditionSchema = z.string().min(1).max(CONDITION_MAX)
const taskSchema: z.ZodType<PlanTask> = z.strictObject({
  id: z.string().regex(NAME, 'must be 1 to 64 letters, digits, _ and -, a letter first'),
  capability: capabilityIdSchema,
  labels: z.array(labelSchema).min(1).max(32).exactOptional(),
  needs: z.array(z.string()).max(NEEDS_MAX).exactOptional(),
  when: conditionSchema.exactOptional(),
  input: z.unknown().exactOptional(),
  strategy: strategySchema.exactOptional(),
  answers: z.int().min(1).max(ANSWERS_MAX).exactOptional(),
  judge: capabilityIdSchema.exactOptional(),
  items: z.array(z.unknown()).min(1).max(10_000).exactOptional()
})
const planSchema: z.ZodType<Plan> = z.strictObject({
  tasks: z.array(taskSchema).min(1).max(PLAN_MAX_TASKS),
  output: z.unknown().exactOptional()
})

const KINDS: KindWords = { ...JSON_KINDS, object: 'a mapping (lines of the form "key: value")' }

/** Result of {@link checkPlan}. The `needs` of sub-tasks are complete. `more`: number of unreported faults. */
export type PlanCheck =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly faults: readonly PlanFault[]; readonly more: number }

/**
 * Checks a plan in full: form, bounds, names, conditions, circles. Faults of form do not hide others that can be found.
 * Faults are in the order of the sub-tasks. Never throws.
 */
export function checkPlan(value: unknown): PlanCheck {
  const fault = jsonFault(value) ?? sizeFault(value)
  if (fault !== null) return failed([{ path: [], reason: fault }])
  const parsed = planSchema.safeParse(value, { error: (issue) => plainReason(issue, KINDS) })
  const draft = draftOf(value)
  const faults = [
    ...(parsed.success ? [] : formFaults(parsed.error, value)),
    ...(draft === null ? [] : graphFaults(draft, FAULTS_MAX))
  ]
  if (!parsed.success || faults.length > 0) return failed(faults)
  return {
    ok: true,
    plan: { ...parsed.data, tasks: parsed.data.tasks.map((task) => ({ ...task, needs: needsOf(task) })) }
  }
}

function failed(faults: readonly PlanFault[]): PlanCheck {
  const inOrder = faults.toSorted((a, b) => taskOf(a) - taskOf(b))
  return { ok: false, faults: inOrder.slice(0, FAULTS_MAX), more: Math.max(0, faults.length - FAULTS_MAX) }
}

/** Index of the sub-task of a fault; faults of the whole plan come last. */
function taskOf({ path: [, index] }: PlanFault): number {
  return typeof index === 'number' ? index : Number.MAX_SAFE_INTEGER
}

/** The readable part of a plan; null when its graph is unreadable. */
function draftOf(value: unknown): PlanDraft | null {
  const { tasks, output } = isRecord(value) ? value : {}
  if (!Array.isArray(tasks) || tasks.length === 0 || tasks.length > PLAN_MAX_TASKS) return null
  return { tasks: tasks.map(taskDraft), output }
}

function taskDraft(value: unknown): TaskDraft {
  const task = isRecord(value) ? value : {}
  const { id, needs, when, input, strategy } = task
  return {
    id: typeof id === 'string' ? id : null,
    needs: Array.isArray(needs)
      ? needs.slice(0, NEEDS_MAX).map((one: unknown) => (typeof one === 'string' ? one : null))
      : [],
    when: conditionSchema.safeParse(when).data ?? null,
    input,
    strategy: Object.hasOwn(task, 'strategy') ? (strategySchema.safeParse(strategy).data ?? null) : 'one',
    has: new Set(Object.keys(task))
  }
}

function sizeFault(value: unknown): string | null {
  try {
    return utf8(canonicalJson(value)).byteLength > PLAN_MAX_BYTES ? `a plan has at most ${PLAN_MAX_BYTES} bytes` : null
  } catch {
    return 'a plan is JSON'
  }
}

function formFaults(error: z.ZodError, value: unknown): PlanFault[] {
  return error.issues.flatMap((issue) => {
    const keys = issue.path.map((key) => (typeof key === 'symbol' ? '' : key))
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ path: [...keys, key], reason: `there is no key ${shown(key, 64)} here` }))
    return [{ path: keys, reason: isThere(value, keys) ? shown(issue.message) : `${keys.at(-1) ?? 'it'} is missing` }]
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
