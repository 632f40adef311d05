import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { LeftOut, SwarmCounts, SwarmEvent, SwarmResults } from '../../ports/swarm-api.js'
import { EXIT } from '../exit-codes.js'
import type { Screen } from '../terminal/screen.js'
import { jsonLine, type Output } from '../terminal/output.js'
import { type Cell, plural, tableLines } from '../terminal/render.js'
import { boundedResults, printCombined } from './results.js'
import { errorSteps, type LaunchedStep, stepLines } from './steps.js'
import { SwarmTree } from './tree.js'

/** How a swarm ended, as an exit code. */
export const STATUS_EXITS = {
  completed: EXIT.ok,
  partial: EXIT.partly,
  failed: EXIT.failed,
  canceled: EXIT.failed
} as const

/** The last event of a swarm. */
export type SwarmDone = Extract<SwarmEvent, { type: 'done' }>
type ItemEvent = Extract<SwarmEvent, { type: 'item' }>

const FAILURES_SHOWN = 10
const REDRAW_MS = 50
const IDLE_MS = 1000

/** The launch of a followed swarm, as far as it is known. */
export interface KnownLaunch {
  /** Its number of items. */
  readonly total: number | null
  /** Its launch by this command line; null for another one. */
  readonly launched: LaunchedStep | null
}

/** Follows the events of one swarm: shows progress, keeps what the summary needs. */
export class SwarmScreen {
  readonly #output: Output
  readonly #live: Screen | null
  readonly #tree: SwarmTree
  readonly #launched: LaunchedStep | null
  readonly #byAgent = new Map<string, { completed: number; failed: number; unknown: number; released: number }>()
  readonly #failures: ItemEvent[] = []
  #leftOut: readonly LeftOut[] = []
  #lost = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #isIdle = false

  constructor(output: Output, { total, launched }: KnownLaunch) {
    this.#output = output
    this.#tree = new SwarmTree(total)
    this.#launched = launched
    this.#live = output.json ? null : output.noteScreen()
  }

  /**
   * Takes one event: NDJSON on stdout with `--json`, else progress on stderr. `results`: those of an ended swarm, for
   * the last line of `--json`.
   */
  take(event: SwarmEvent, results: SwarmResults | null = null): void {
    this.#count(event)
    this.#tree.take(event, Date.now())
    if (this.#output.json) this.#output.print(jsonLine(lineOf(event, results)))
    if (this.#live === null) {
      const line = progressLine(event)
      if (line !== null) this.#output.note(line)
    } else this.#draw(this.#live, event)
  }

  /** Removes the live line, e.g. when the swarm cannot be followed any more. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#live?.clear()
  }

  #count(event: SwarmEvent): void {
    if (event.type === 'swarm') this.#leftOut = event.leftOut
    else if (event.type === 'left-out') this.#leftOut = [...this.#leftOut, event]
    else if (event.type === 'gap') this.#lost += event.lost
    else if (event.type === 'released' || event.type === 'item') {
      const isNeedless = event.type === 'item' && (event.status === 'skipped' || event.status === 'canceled')
      if (isNeedless) return
      const counts = this.#byAgent.get(event.agent) ?? { completed: 0, failed: 0, unknown: 0, released: 0 }
      counts[
        event.type === 'released'
          ? 'released'
          : event.status === 'completed' || event.status === 'unknown'
            ? event.status
            : 'failed'
      ]++
      this.#byAgent.set(event.agent, counts)
      if (event.type === 'item' && event.status !== 'completed') this.#failures.push(event)
    }
  }

  #draw(live: Screen, event: SwarmEvent): void {
    if (event.type === 'done') return this.close()
    if (
      ['released', 'waiting', 'left-out'].includes(event.type) ||
      (event.type === 'item' && event.status !== 'completed')
    ) {
      live.clear()
      this.#output.note(progressLine(event) ?? '')
    }
    // Hundreds of events a second would only flicker.
    this.#redraw(live, REDRAW_MS)
  }

  /** Times and rates change also while nothing happens. */
  #redraw(live: Screen, ms: number): void {
    if (this.#timer !== null && (ms === IDLE_MS || !this.#isIdle)) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#isIdle = ms === IDLE_MS
    this.#timer = setTimeout(() => {
      this.#timer = null
      live.draw(this.#tree.lines(Date.now(), live.columns))
      this.#redraw(live, IDLE_MS)
    }, ms)
  }

  /**
   * Prints the work of each agent, the agents left out, and the end. `deadlineMs`: the time that it had; absent where
   * it is not known.
   */
  async summary(done: SwarmDone, deadlineMs?: number, output = this.#output): Promise<void> {
    const { counts, status } = done
    const style = status === 'completed' ? 'green' : status === 'partial' ? 'yellow' : 'red'
    output.print(
      `swarm ${shown(done.id)}   ${output.paint(style, status)}   ${counts.completed} of ${plural(counts.total, 'item')} done${failuresText(counts)}   ${formatDuration(done.durationMs)}`
    )
    const isShown = this.#failures.some(({ error }) => error?.message === done.error?.message)
    if (done.error !== null && !isShown) {
      output.print(`  ${output.paint('red', shown(done.error.message, 500))}  [${shown(done.error.code)}]`)
      for (const line of errorSteps(output, done.error)) output.print(line)
    }
    if (this.#byAgent.size > 0) for (const line of await this.#agentTable(output)) output.print(line)
    for (const one of this.#failures.slice(0, FAILURES_SHOWN))
      output.print(`  ${output.paint('red', one.status)}  ${shown(one.item, 80)}  ${shown(reasonOf(one), 300)}`)
    if (this.#failures.length > FAILURES_SHOWN)
      output.print(`  and ${this.#failures.length - FAILURES_SHOWN} more failures`)
    // An excluded agent that later joined and worked is no longer listed.
    const leftOut = this.#leftOut.filter(({ agent }) => !this.#byAgent.has(agent))
    if (leftOut.length > 0) output.print('left out')
    for (const one of leftOut) output.print(`  ${shown(one.agent)}  ${output.paint('dim', ruleText(one))}`)
    if (this.#lost > 0) output.note(`${plural(this.#lost, 'event')} not shown; the results are complete`)
    if (status !== 'canceled')
      for (const line of stepLines(output, this.#failures, ended(this.#launched, done.id, deadlineMs)))
        output.print(line)
    printCombined(output, done)
  }

  async #agentTable(output: Output): Promise<string[]> {
    const hasUnknown = [...this.#byAgent.values()].some(({ unknown }) => unknown > 0)
    const rows = [...this.#byAgent]
      .sort(([a, one], [b, two]) => two.completed - one.completed || a.localeCompare(b))
      .map(([address, counts]): Cell[] => {
        const at = address.lastIndexOf('@')
        const [agent, node] = at === -1 ? [address, '-'] : [address.slice(0, at), address.slice(at + 1)]
        return [
          { text: node, style: 'bold' },
          agent,
          cell(counts.completed),
          cell(counts.failed),
          ...(hasUnknown ? [cell(counts.unknown)] : []),
          cell(counts.released)
        ]
      })
    return await tableLines(
      output,
      ['NODE', 'AGENT', 'DONE', 'FAILED', ...(hasUnknown ? ['UNKNOWN'] : []), 'REQUEUED'],
      rows
    )
  }
}

/** The line of `--json`: errors as they are kept, the same at every node. */
function lineOf(event: SwarmEvent, results: SwarmResults | null): object {
  if (event.type !== 'done') return event
  return { schema: 'a2a-node/swarm@1', ...event, ...(results === null ? {} : boundedResults(results)) }
}

/** Number of failed items, and of those with an unknown outcome; empty for none. */
export function failuresText({ failed, unknown = 0 }: Pick<SwarmCounts, 'failed' | 'unknown'>): string {
  return `${failed === unknown ? '' : `, ${failed - unknown} failed`}${unknown === 0 ? '' : `, ${unknown} unknown`}`
}

/** Why an agent does not take part, with the code of its own node where that refused it. */
export function ruleText({ code, rule }: Pick<LeftOut, 'code' | 'rule'>): string {
  return `${code === undefined ? '' : `${shown(code)}  `}${shown(rule)}`
}

function cell(count: number): string {
  return count === 0 ? '-' : String(count)
}

function reasonOf(event: ItemEvent): string {
  return event.error === null ? 'no reason given' : `${event.error.message}  [${event.error.code}]`
}

function progressLine(event: SwarmEvent): string | null {
  switch (event.type) {
    case 'swarm':
      return `swarm ${shown(event.id)}: ${plural(event.agents.length, 'agent')}${event.leftOut.length === 0 ? '' : `, ${event.leftOut.length} left out`}`
    case 'left-out':
      return `out     ${shown(event.agent, 60)}  ${ruleText(event)}`
    case 'lease':
      return `begin   ${shown(event.item, 60)}  ${shown(event.agent, 60)}${event.attempt > 1 ? `  attempt ${event.attempt}` : ''}`
    case 'waiting':
      return `${event.waitingFor === null ? 'goes on' : 'waits  '} ${shown(event.item, 60)}  ${shown(event.agent, 60)}${event.waitingFor === null ? '' : '  waiting for approval'}`
    case 'released':
      return `requeue ${shown(event.item, 60)}  ${shown(event.agent, 60)}  ${shown(event.reason, 100)}`
    case 'item':
      return event.status === 'completed'
        ? `done    ${shown(event.item, 60)}  ${shown(event.agent, 60)}`
        : `${event.status.padEnd(7)} ${shown(event.item, 60)}  ${shown(event.agent, 60)}  ${shown(reasonOf(event), 150)}`
    case 'stage':
      return event.status === 'waiting'
        ? null
        : `stage   ${shown(event.stage, 60)}  ${event.status}${event.reason === '' ? '' : `: ${shown(event.reason, 200)}`}`
    case 'status':
      if (event.status === 'running') return 'goes on an agent is back'
      return `stalled ${shown(event.reason ?? 'no agent for the remaining items', 200)}`
    case 'coordinator':
      return `leader  ${event.coordinator === null ? 'none' : shown(event.coordinator, 64)}`
    case 'gap':
      return `...     ${plural(event.lost, 'event')} not shown`
    case 'done':
      return null
  }
}

function ended(launched: LaunchedStep | null, id: string, deadlineMs: number | undefined): LaunchedStep | null {
  return launched === null ? null : { ...launched, id, ...(deadlineMs === undefined ? {} : { deadlineMs }) }
}
