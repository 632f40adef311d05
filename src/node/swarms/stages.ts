import { NodeError, type ErrorBody } from '../../kit/errors.js'
import {
  createGraph,
  graphVerdict,
  lookupOf,
  settleItem,
  stageOf,
  stageValue,
  startGraph,
  leavesOf
} from '../../domain/swarm/graph.js'
import type { GraphMove, GraphState } from '../../domain/swarm/graph.js'
import { graphStages, type Stage } from '../../domain/swarm/expand.js'
import { isReducer, reduceResults } from '../../domain/swarm/reduce.js'
import { fillTemplate, valueAt, type Lookup } from '../../kit/template/fill.js'
import type { SwarmEvent, SwarmStage, SwarmStageInfo, SwarmStatus } from '../../ports/swarm-api.js'
import type { SwarmHead, SwarmItem, SwarmRow } from './store.js'

/** The effects of an item's outcome. */
export interface StageChange {
  readonly moves: readonly GraphMove[]
  /** Sub-tasks with a new state. */
  readonly events: readonly Extract<SwarmEvent, { type: 'stage' }>[]
}

/**
 * The sub-tasks of one swarm: which may begin, their inputs, the combined result. All of it is read from recorded
 * outcomes.
 */
export class SwarmStages {
  readonly #head: SwarmHead
  readonly #graph: GraphState
  readonly #rows = new Map<number, SwarmRow>()
  readonly #result = (index: number): unknown => {
    const row = this.#rows.get(index)?.row
    return row?.status === 'completed' ? row.result : undefined
  }

  constructor(head: SwarmHead) {
    this.#head = head
    this.#graph = createGraph(graphStages(head.stages))
  }

  /** Begins a swarm, or resumes it after the recorded outcomes. */
  begin(rows: readonly SwarmRow[]): StageChange {
    return this.#change(() => {
      const moves = startGraph(this.#graph, this.#result)
      for (const row of rows.toSorted(byOrder)) moves.push(...this.#settle(row))
      return moves
    })
  }

  /** Applies the recorded outcome of an item. */
  settled(row: SwarmRow): StageChange {
    return this.#change(() => this.#settle(row))
  }

  #settle(row: SwarmRow): GraphMove[] {
    this.#rows.set(row.index, row)
    return settleItem(this.#graph, { index: row.index, status: row.row.status }, this.#result)
  }

  #change(step: () => readonly GraphMove[]): StageChange {
    const before = this.#graph.states.map(({ status }) => status)
    const moves = step()
    const events = this.#graph.states.flatMap(({ status, reason }, index) => {
      const stage = this.#head.stages[index]?.id ?? ''
      return status === before[index] ? [] : [{ type: 'stage' as const, stage, status, reason }]
    })
    return { moves, events: this.isPlain ? [] : events }
  }

  /** Is it one sub-task over items or agents, without a combined result? */
  get isPlain(): boolean {
    return this.#head.stages.length === 1 && ['each', 'map'].includes(this.#head.request.strategy)
  }

  /** The sub-task of an item. */
  of(index: number): Stage | undefined {
    return this.#head.stages[stageOf(this.#graph, index)]
  }

  /** The capability requested for an item. */
  capability(index: number): string {
    return this.of(index)?.capability ?? this.#head.request.capability
  }

  /**
   * The input of an item.
   * @throws NodeError INVALID_INPUT when its template cannot be filled, PAYLOAD_TOO_LARGE when it was not stored.
   */
  input(index: number, items: readonly SwarmItem[]): unknown {
    const stage = this.of(index)
    if (stage === undefined || !('template' in stage))
      return kept(items[this.#head.request.strategy === 'each' ? 0 : index])
    const filled = fillTemplate(stage.template, this.#lookup(items, index))
    if (filled.ok) return filled.value
    throw new NodeError('INVALID_INPUT', `the input of ${stage.id} cannot be made: ${filled.reason}`)
  }

  #lookup(items: readonly SwarmItem[], index: number): Lookup {
    const { request } = this.#head
    const ofStages = lookupOf(this.#graph, this.#result)
    const given = new Map<string, () => unknown>([
      ['goal', () => request.goal],
      ['input', () => items[0]?.given],
      ['item', () => kept(items[index])],
      ['round', () => request.round?.number ?? 1],
      ['check', () => request.round?.check ?? '']
    ])
    return (reference) => {
      const value = given.get(reference.name)
      return value === undefined ? ofStages(reference) : valueAt(value(), reference.pointer)
    }
  }

  /** The combined result; empty when the strategy has none, or without results. */
  together(): { readonly result?: unknown } {
    const result = this.#together()
    return result === undefined ? {} : { result }
  }

  #together(): unknown {
    const { output } = this.#head
    if (output !== undefined) {
      const filled = fillTemplate(output, lookupOf(this.#graph, this.#result))
      return filled.ok ? filled.value : undefined
    }
    const { reduce } = this.#head.request
    if (this.isPlain && reduce === undefined) return undefined
    const leaves = leavesOf(this.#graph)
    const values = leaves.flatMap((index) => {
      const value = stageValue(this.#graph, index, this.#result)
      return value === undefined ? [] : [[this.#head.stages[index]?.id ?? '', value] as const]
    })
    const [only] = values
    if (reduce !== undefined && isReducer(reduce)) {
      const isList = leaves.length === 1 && this.#head.stages[leaves[0] ?? 0]?.isList === true
      return reduceResults(reduce, isList && Array.isArray(only?.[1]) ? only[1] : values.map(([, value]) => value))
    }
    if (leaves.length === 1) return only?.[1]
    return values.length === 0 ? undefined : Object.fromEntries(values)
  }

  /** The final status, when all items have their outcome. */
  verdict(): Exclude<SwarmStatus, 'running' | 'stalled' | 'canceled'> {
    return graphVerdict(this.#graph)
  }

  /** The error of the first sub-task that failed for a reason outside its items; null for none. */
  fault(): ErrorBody | null {
    const index = this.#graph.states.findIndex(({ status, completed }) => status === 'failed' && completed > 0)
    const [stage, state] = [this.#head.stages[index], this.#graph.states[index]]
    if (stage === undefined) return null
    return new NodeError('TASK_FAILED', `${stage.id}: ${state?.reason ?? ''}`, {
      next: [`a2a-node swarm results ${this.#head.id}`]
    }).toBody()
  }

  /** The state of every sub-task. */
  info(): SwarmStageInfo[] {
    return shownStages(this.#head).map((stage, index) => {
      const { status = 'waiting', reason = '' } = this.#graph.states[index] ?? {}
      return { ...stage, status, reason }
    })
  }
}

/** The sub-tasks of a swarm, for people. */
export function shownStages({ stages }: SwarmHead): SwarmStage[] {
  return stages.map(({ id, capability, labels = [], count, needs }) => ({
    id,
    capability,
    labels,
    items: count,
    needs
  }))
}

function byOrder(a: SwarmRow, b: SwarmRow): number {
  return a.order - b.order
}

function kept(item: SwarmItem | undefined): unknown {
  if (item === undefined || !('input' in item))
    throw new NodeError('PAYLOAD_TOO_LARGE', 'the input of the item is too large to be kept')
  return item.input
}
