import { shown } from '../../kit/text.js'
import { parseCondition, referencesOf } from './condition.js'
import { malformedIn, type Reference, referencesIn, referenceText } from '../../kit/template/fill.js'

/** A fault of a plan and its path. */
export interface PlanFault {
  /** Keys and indexes, outermost first. */
  readonly path: readonly (string | number)[]
  readonly reason: string
}

/** The readable fields of a sub-task, valid or not. */
export interface TaskDraft {
  /** Also one that nothing may be called; null for none. */
  readonly id: string | null
  /** null in the place of one that is no text. */
  readonly needs: readonly (string | null)[]
  readonly when: string | null
  readonly input: unknown
  /** `one`: none is given; null: one that does not exist. */
  readonly strategy: 'one' | 'each' | 'race' | 'vote' | null
  /** Its keys, also those whose value has a fault. */
  readonly has: ReadonlySet<string>
}

/** The readable fields of a plan. */
export interface PlanDraft {
  readonly tasks: readonly TaskDraft[]
  readonly output: unknown
}

/** Names that every template knows, beside those of sub-tasks. `item`: only where there are items. */
const GIVEN: ReadonlySet<string> = new Set(['goal', 'input', 'item', 'round', 'check'])

/** The name of the answers that a judge decides on. */
export function votesName(id: string): string {
  return `${id}_votes`
}

/**
 * Faults of the references between sub-tasks: unknown and duplicate names, conditions, circles. Consequences of a
 * reported fault are not reported. At most `maxCircles` circles.
 */
export function graphFaults({ tasks, output }: PlanDraft, maxCircles: number): PlanFault[] {
  const names: Names = {
    ids: new Set(tasks.map(({ id }) => id).filter((id) => id !== null)),
    areAllNamed: tasks.every(({ id }) => id !== null)
  }
  return [
    ...nameFaults(tasks),
    ...tasks.flatMap((task, index) =>
      taskFaults(task, names).map(({ path, reason }) => ({ path: ['tasks', index, ...path], reason }))
    ),
    ...outputFaults(output, names),
    ...circles(tasks, maxCircles)
  ]
}

/** Sub-tasks that a sub-task names, in the order of their first mention. */
export function needsOf(task: {
  readonly needs?: readonly (string | null)[]
  readonly when?: string | null
  readonly input?: unknown
}): string[] {
  const condition = parseCondition(task.when ?? '')
  const named = [
    ...(condition.ok ? referencesOf(condition.condition) : []),
    ...referencesIn(task.input).map(({ reference }) => reference)
  ]
  const names = named.map(({ name }) => name).filter((name) => !GIVEN.has(name))
  return [...new Set([...(task.needs ?? []).filter((need) => need !== null), ...names])]
}

interface Names {
  readonly ids: ReadonlySet<string>
  readonly areAllNamed: boolean
}

function noSuch(name: string, { areAllNamed }: Names): string {
  return `there is no sub-task ${shown(name, 64)}${areAllNamed ? '' : ' (one has no id)'}`
}

function nameFaults(tasks: readonly TaskDraft[]): PlanFault[] {
  const seen = new Set<string>()
  return tasks.flatMap(({ id, has }, index) => {
    if (id === null) return []
    // The votes of a judged sub-task are one of their own.
    const names = has.has('judge') ? [id, votesName(id)] : [id]
    const reason = GIVEN.has(id)
      ? `${id} is a name that every template knows already`
      : names.some((one) => seen.has(one))
        ? `${shown(id, 64)} is there twice`
        : null
    for (const one of names) seen.add(one)
    return reason === null ? [] : [{ path: ['tasks', index, 'id'], reason }]
  })
}

function taskFaults(task: TaskDraft, names: Names): PlanFault[] {
  const { id, needs, when, input, strategy, has } = task
  const faults: PlanFault[] = []
  const tell = (path: PlanFault['path'], reason: string | null): void =>
    void (reason !== null && faults.push({ path, reason }))
  for (const [place, need] of needs.entries()) {
    if (need === null) continue
    tell(['needs', place], !names.ids.has(need) ? noSuch(need, names) : need === id ? 'it needs itself' : null)
  }
  const condition = when === null ? null : parseCondition(when)
  if (condition?.ok === false) tell(['when'], condition.reason)
  if (condition?.ok === true)
    for (const one of referencesOf(condition.condition))
      tell(['when'], referenceFault(one, { names, self: id, hasItems: false }))
  for (const { reference, path } of referencesIn(input))
    tell(['input', ...path], referenceFault(reference, { names, self: id, hasItems: has.has('items') }))
  for (const { text, path } of malformedIn(input, (name) => GIVEN.has(name) || names.ids.has(name)))
    tell(['input', ...path], malformedFault(text))
  if (has.has('answers') && (strategy === 'one' || strategy === 'each'))
    tell(['answers'], 'only a race or a vote has answers')
  if (has.has('judge') && strategy !== null && strategy !== 'vote') tell(['judge'], 'only a vote has a judge')
  if (has.has('items') && strategy !== null && strategy !== 'one') tell(['items'], `${strategy} takes no items`)
  return faults
}

function outputFaults(output: unknown, names: Names): PlanFault[] {
  const unknown = referencesIn(output).flatMap(({ reference, path }) =>
    names.ids.has(reference.name) ? [] : [{ path: ['output', ...path], reason: noSuch(reference.name, names) }]
  )
  const malformed = malformedIn(output, (name) => names.ids.has(name)).map(({ text, path }) => ({
    path: ['output', ...path],
    reason: malformedFault(text)
  }))
  return [...unknown, ...malformed]
}

function malformedFault(text: string): string {
  const found = shown(text, 100)
  return `${found} is no placeholder: members are written with a slash, as in {task/member}; for the text itself write {${found}}`
}

function referenceFault(
  reference: Reference,
  { names, self, hasItems }: { readonly names: Names; readonly self: string | null; readonly hasItems: boolean }
): string | null {
  const { name, facet } = reference
  const text = referenceText(reference)
  if (name === self) return `${text} is its own result`
  if (name === 'item' && !hasItems) return '{item} needs items, and there are none here'
  if (GIVEN.has(name)) return facet === 'result' ? null : `${name} has no ${facet}`
  return names.ids.has(name) ? null : `${text}: ${noSuch(name, names)}; for the text itself write {${text}}`
}

type Waits = ReadonlyMap<string, { readonly index: number; readonly for: Set<string> }>

/** The circles of needs: each of the next is looked for as if those before were mended. */
function circles(tasks: readonly TaskDraft[], max: number): PlanFault[] {
  const waits = waitsOf(tasks)
  const faults: PlanFault[] = []
  for (let circle = circleOf(waits); circle !== null && faults.length < max; circle = circleOf(waits)) {
    const [first = '', last = ''] = [circle[0], circle.at(-1)]
    faults.push({
      path: ['tasks', waits.get(first)?.index ?? 0],
      reason: `it needs itself: ${[...circle, first].join(' -> ')}`
    })
    waits.get(last)?.for.delete(first)
  }
  return faults
}

/** Duplicate and unknown names are ambiguous: they close no circle. */
function waitsOf(tasks: readonly TaskDraft[]): Waits {
  const isOne = ({ id }: TaskDraft): boolean => id !== null && tasks.filter((other) => other.id === id).length === 1
  const known = new Map(
    tasks.map((task, index) => [task.id ?? '', { task, index }] as const).filter(([, { task }]) => isOne(task))
  )
  return new Map(
    [...known].map(([id, { task, index }]) => [
      id,
      { index, for: new Set(needsOf(task).filter((need) => need !== id && known.has(need))) }
    ])
  )
}

/** The first circle, each sub-task before the one it waits for; null when there is none. */
function circleOf(waits: Waits): string[] | null {
  const isDone = new Set<string>()
  // Removes sub-tasks that the rest does not need: the remaining ones are in circles, or behind one.
  for (let isNew = true; isNew; ) {
    isNew = false
    for (const [id, { for: needs }] of waits) {
      if (isDone.has(id) || ![...needs].every((one) => isDone.has(one))) continue
      isDone.add(id)
      isNew = true
    }
  }
  const start = [...waits.keys()].find((id) => !isDone.has(id))
  if (start === undefined) return null
  const path: string[] = []
  let at = start
  while (!path.includes(at)) {
    path.push(at)
    at = [...(waits.get(at)?.for ?? [])].find((one) => !isDone.has(one)) ?? at
  }
  return path.slice(path.indexOf(at))
}
