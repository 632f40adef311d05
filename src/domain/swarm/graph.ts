import { sameText, type Condition, isMet } from './condition.js'
import { type Facet, type Lookup, valueAt } from '../../kit/template/fill.js'
import type { FinalSwarmStatus, ItemOutcome } from './types.js'

/**
 * Completion rule of a stage. `all`: every item has its outcome (some failed: partial). `any`: the same, and failures
 * are accepted if one completed. `first`: the first that completes. `majority`: more than half of the items have the
 * same result.
 */
export type StageRule = 'all' | 'any' | 'first' | 'majority'

/** A sub-task of a swarm: items of one kind, next to each other, that are opened together. */
export interface GraphStage {
  readonly id: string
  readonly rule: StageRule
  /** Index of its first item, and how many it has: at least 1. */
  readonly from: number
  readonly count: number
  /** Is its value a list, one result an item? Else it is the one result. */
  readonly isList: boolean
  /** Indexes of the stages before it. */
  readonly needs: readonly number[]
  /**
   * It opens when one of `needs` completed at least in part: a judge, a reducer. Else all of them have to be complete.
   */
  readonly isGathering: boolean
  readonly when: Condition | null
  /** Indexes of `needs` whose status the condition reads: they may have any status. */
  readonly bears: ReadonlySet<number>
}

/** State of a stage. */
export type StageStatus = 'waiting' | 'open' | 'completed' | 'partial' | 'failed' | 'skipped'

interface StageState {
  status: StageStatus
  /** Why it was skipped or failed; '' else. */
  reason: string
  /**
   * Did it fail, or was it skipped since one that it needs did? One that was skipped for its condition is as good as
   * done.
   */
  isBad: boolean
  completed: number
  settled: number
  /** The item that gives the stage its result, by the rules `first` and `majority`; -1 for none. */
  winner: number
  /** By the rule `majority`: number of items with each result, and the first of them. */
  readonly tally: Map<string, { count: number; readonly first: number }>
}

/** The stages of a swarm and their states. Owned by its caller. */
export interface GraphState {
  readonly stages: readonly GraphStage[]
  readonly states: readonly StageState[]
  /** By the names of stages: for templates and conditions. */
  readonly byName: ReadonlyMap<string, number>
}

/** Moves of items, in this order. */
export type GraphMove =
  /** The items of the stage may be given out. */
  | { readonly type: 'open'; readonly stage: number }
  /** Items without an outcome get this one: they are not needed. */
  | { readonly type: 'drop'; readonly stage: number; readonly status: 'skipped' | 'canceled'; readonly reason: string }

/** The accepted results, by index of the item; undefined for none. */
export type Results = (index: number) => unknown

/** Stages of which nothing is known yet. */
export function createGraph(stages: readonly GraphStage[]): GraphState {
  const states = stages.map(
    (): StageState => ({
      status: 'waiting',
      reason: '',
      isBad: false,
      completed: 0,
      settled: 0,
      winner: -1,
      tally: new Map()
    })
  )
  return { stages, states, byName: new Map(stages.map(({ id }, index) => [id, index])) }
}

/** Opens the stages that need no other. */
export function startGraph(graph: GraphState, results: Results): GraphMove[] {
  return settleStages(graph, results)
}

/** Which stage an item belongs to. */
export function stageOf({ stages }: GraphState, item: number): number {
  let [low, high] = [0, stages.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((stages[middle]?.from ?? 0) <= item) low = middle
    else high = middle - 1
  }
  return low
}

/**
 * Records the outcome of one item, and returns the moves of others. The same outcomes in the same order give the same
 * moves, so a graph can be rebuilt from records. `results` has the result of this item already.
 */
export function settleItem(
  graph: GraphState,
  { index, status }: { index: number; status: ItemOutcome },
  results: Results
): GraphMove[] {
  const at = stageOf(graph, index)
  const [stage, state] = [graph.stages[at], graph.states[at]]
  if (stage === undefined || state === undefined) return []
  // An unneeded outcome changes nothing.
  if (state.status !== 'waiting' && state.status !== 'open') return []
  state.settled++
  if (status === 'completed') {
    state.completed++
    count(stage, state, { index, text: stage.rule === 'majority' ? sameText(results(index)) : null })
  }
  const verdict = verdictOf(stage, state)
  if (verdict === null) return []
  Object.assign(state, verdict, { isBad: verdict.status === 'failed' })
  state.tally.clear()
  const reason =
    stage.rule === 'first' ? 'another was first' : stage.rule === 'majority' ? 'the vote is decided' : 'not needed'
  const rest: GraphMove[] = state.settled < stage.count ? [{ type: 'drop', stage: at, status: 'canceled', reason }] : []
  return [...rest, ...settleStages(graph, results)]
}

function count(stage: GraphStage, state: StageState, { index, text }: { index: number; text: string | null }): void {
  if (stage.rule === 'first' && state.winner === -1) state.winner = index
  if (text === null) return
  const same = state.tally.get(text) ?? { count: 0, first: index }
  same.count++
  state.tally.set(text, same)
  if (same.count * 2 > stage.count) state.winner = same.first
}

function verdictOf(stage: GraphStage, state: StageState): Pick<StageState, 'status' | 'reason'> | null {
  const { rule, count: total } = stage
  const { completed, settled, winner } = state
  if (winner !== -1) return { status: 'completed', reason: '' }
  if (rule === 'majority' && total - settled + mostOf(state) <= total / 2)
    return { status: 'failed', reason: votesText(state, total) }
  if (settled < total) return null
  if (completed === 0) return { status: 'failed', reason: total === 1 ? 'it failed' : 'none of its items was done' }
  return { status: completed < total && rule === 'all' ? 'partial' : 'completed', reason: '' }
}

function mostOf({ tally }: StageState): number {
  let most = 0
  for (const same of tally.values()) most = Math.max(most, same.count)
  return most
}

function votesText(state: StageState, total: number): string {
  const counts = [...state.tally.values()].map((same) => same.count).sort((a, b) => b - a)
  const given = counts.length === 0 ? 'no answer' : `${counts.slice(0, 8).join(', ')} alike`
  return `no majority among ${total}: ${given}${state.settled > state.completed ? `, ${state.settled - state.completed} failed` : ''}`
}

/** Opens and skips stages whose needs are settled, until nothing changes: a skipped stage settles others. */
function settleStages(graph: GraphState, results: Results): GraphMove[] {
  const moves: GraphMove[] = []
  for (let isNew = true; isNew; ) {
    isNew = false
    for (const [index, stage] of graph.stages.entries()) {
      const state = graph.states[index]
      if (state?.status !== 'waiting' || !stage.needs.every((one) => isSettled(graph.states[one]))) continue
      const hindered = hindrance(graph, stage, results)
      Object.assign(state, hindered === null ? { status: 'open' } : { status: 'skipped', ...hindered })
      moves.push(
        hindered === null
          ? { type: 'open', stage: index }
          : { type: 'drop', stage: index, status: 'skipped', reason: hindered.reason }
      )
      isNew = true
    }
  }
  return moves
}

function isSettled(state: StageState | undefined): boolean {
  return state !== undefined && state.status !== 'waiting' && state.status !== 'open'
}

/** Why a stage whose needs are settled is skipped; null when it opens. */
function hindrance(
  graph: GraphState,
  stage: GraphStage,
  results: Results
): Pick<StageState, 'reason' | 'isBad'> | null {
  const bad = stage.needs.filter((one) => !stage.bears.has(one) && !isUsable(graph, one, stage.isGathering))
  const [first] = bad
  if (first !== undefined && (!stage.isGathering || bad.length === stage.needs.length)) {
    const reason = `it needs ${graph.stages[first]?.id ?? ''}, which ${graph.states[first]?.status === 'skipped' ? 'was skipped' : 'failed'}`
    return { reason, isBad: bad.some((one) => graph.states[one]?.status !== 'skipped' || graph.states[one].isBad) }
  }
  if (stage.when === null || isMet(stage.when, lookupOf(graph, results))) return null
  return { reason: 'its condition is not met', isBad: false }
}

function isUsable({ states }: GraphState, index: number, isPartEnough: boolean): boolean {
  const status = states[index]?.status
  return status === 'completed' || (isPartEnough && status === 'partial')
}

/**
 * The value of a stage: its winner's result, its one result, or the list of completed results. Undefined when it has
 * none.
 */
export function stageValue(graph: GraphState, index: number, results: Results): unknown {
  const [stage, state] = [graph.stages[index], graph.states[index]]
  if (stage === undefined || state === undefined || state.completed === 0) return undefined
  if (state.winner !== -1) return results(state.winner)
  if (!isSettled(state)) return undefined
  if (!stage.isList) return stage.rule === 'majority' ? undefined : results(stage.from)
  return Array.from({ length: stage.count }, (_, at) => results(stage.from + at)).filter((one) => one !== undefined)
}

/** Reads names of stages: their values, how they ended, and why. */
export function lookupOf(graph: GraphState, results: Results): Lookup {
  return ({ name, pointer, facet }) => {
    const index = graph.byName.get(name)
    if (index === undefined) return undefined
    return facet === 'result'
      ? valueAt(stageValue(graph, index, results), pointer)
      : facetOf(graph.states[index], facet)
  }
}

function facetOf(state: StageState | undefined, facet: Exclude<Facet, 'result'>): unknown {
  return facet === 'status' ? state?.status : state?.reason === '' ? undefined : state?.reason
}

/** Stages that no other needs: the purpose of the swarm. */
export function leavesOf({ stages }: GraphState): number[] {
  const needed = new Set(stages.flatMap(({ needs }) => needs))
  return [...stages.keys()].filter((index) => !needed.has(index))
}

/**
 * The end of a swarm with all outcomes, by its final stages. A stage skipped for its condition counts as done; a stage
 * skipped for its needs does not.
 */
export function graphVerdict(graph: GraphState): Exclude<FinalSwarmStatus, 'canceled'> {
  const leaves = leavesOf(graph)
  const isPartial = graph.states.some(({ status }) => status === 'partial')
  const isBad = leaves.some((index) => graph.states[index]?.isBad === true)
  if (!isBad) return isPartial ? 'partial' : 'completed'
  return leaves.some((index) => isUsable(graph, index, true)) ? 'partial' : 'failed'
}
