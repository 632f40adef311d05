import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { SwarmEvent, SwarmStage } from '../../ports/swarm-api.js'
import { plural } from '../terminal/render.js'

const BAR = 24
/** Items under way that one sub-task shows. */
const ITEMS_SHOWN = 8
/** Displayed sub-tasks when there are many: open ones first. */
const STAGES_SHOWN = 16
/** Milliseconds before the first rate is displayed. */
const RATE_FROM_MS = 1000

interface Running {
  readonly item: string
  readonly agent: string
  readonly attempt: number
  readonly since: number
  awaitsApproval: boolean
}

interface Branch {
  readonly stage: SwarmStage | null
  status: string
  reason: string
  completed: number
  failed: number
  /** Failed items with an unknown outcome. */
  unknown: number
  skipped: number
  readonly running: Map<string, Running>
}

/** Progress of a swarm as a tree of its sub-tasks and running items. Every number is counted from its events. */
export class SwarmTree {
  readonly #branches = new Map<string, Branch>()
  #total: number
  #isStalled = false
  /** Does this node coordinate it? Only then leases are known. */
  #isHere = false
  /** Another node that coordinates it. */
  #coordinator: string | null = null
  /** Outcomes and time of the first drawing: what came before is no rate. */
  #base: { readonly done: number; readonly at: number } | null = null

  /** `total` is the number of items when it is known already. */
  constructor(total: number | null) {
    this.#total = total ?? 0
  }

  /** Takes one event, at a time in milliseconds. */
  take(event: SwarmEvent, now: number): void {
    if (event.type === 'swarm') {
      for (const stage of event.stages) this.#branches.set(stage.id, branchOf(stage))
      this.#total = event.stages.reduce((sum, { items }) => sum + items, 0) || this.#total || event.agents.length
    } else if (event.type === 'stage')
      Object.assign(this.#branch(event.stage), { status: event.status, reason: event.reason })
    else if (event.type === 'status') this.#isStalled = event.status === 'stalled'
    // Leases are their coordinator's.
    else if (event.type === 'coordinator') {
      this.#isHere = event.isHere === true
      this.#coordinator = this.#isHere ? null : event.coordinator
      for (const branch of this.#branches.values()) branch.running.clear()
    } else if (event.type === 'lease') {
      this.#isHere = true
      this.#coordinator = null
      const { item, agent, attempt } = event
      this.#branch(event.stage).running.set(item, { item, agent, attempt, since: now, awaitsApproval: false })
    } else if (event.type === 'waiting') {
      const running = this.#branch(event.stage).running.get(event.item)
      if (running !== undefined) running.awaitsApproval = event.waitingFor !== null
    } else if (event.type === 'released') this.#branch(event.stage).running.delete(event.item)
    else if (event.type === 'item') this.#settle(event)
  }

  #settle(event: Extract<SwarmEvent, { type: 'item' }>): void {
    const branch = this.#branch(event.stage)
    branch.running.delete(event.item)
    if (event.status === 'completed') branch.completed++
    else if (event.status === 'skipped' || event.status === 'canceled') branch.skipped++
    else {
      branch.failed++
      if (event.status === 'unknown') branch.unknown++
    }
  }

  /** The sub-task of that name; the only one when there is no name. */
  #branch(stage: string | undefined): Branch {
    const name = stage ?? this.#branches.keys().next().value ?? ''
    const known = this.#branches.get(name) ?? branchOf(null)
    this.#branches.set(name, known)
    return known
  }

  /** The lines to draw: progress and running items. The first line omits fields that exceed `columns`. */
  lines(now: number, columns = Number.POSITIVE_INFINITY): string[] {
    const branches = [...this.#branches.values()]
    const sum = (of: (branch: Branch) => number): number => branches.reduce((all, branch) => all + of(branch), 0)
    const [completed, failed, unknown] = [
      sum((one) => one.completed),
      sum((one) => one.failed),
      sum((one) => one.unknown)
    ]
    const skipped = sum((one) => one.skipped)
    const done = completed + failed + skipped
    this.#base ??= { done, at: now }
    const bar = '#'.repeat(Math.round((this.#total === 0 ? 0 : Math.min(1, done / this.#total)) * BAR)).padEnd(BAR, '.')
    const running = branches.flatMap((one) => [...one.running.values()])
    const waiting = running.filter(({ awaitsApproval }) => awaitsApproval).length
    const parts = [
      `${completed} of ${this.#total || '?'} done`,
      ...(failed === unknown ? [] : [`${failed - unknown} failed`]),
      ...(unknown === 0 ? [] : [`${unknown} unknown`]),
      ...(skipped === 0 ? [] : [`${skipped} not needed`]),
      ...(this.#isHere
        ? [
            `${running.length - waiting} running on ${plural(new Set(running.filter(({ awaitsApproval }) => !awaitsApproval).map(({ agent }) => agent)).size, 'agent')}`
          ]
        : []),
      ...(waiting === 0 ? [] : [`${waiting} waiting for approval`])
    ]
    const rate = this.#rate(done, now)
    const stalled = 'stalled: no agent for the remaining items'
    // A number that is cut in half is another number.
    const endings = this.#isStalled ? [[...rate, stalled], [stalled], ['stalled']] : [rate, rate.slice(1), []]
    const candidates = endings.map((ending) => `[${bar}] ${[...parts, ...ending].join(', ')}`)
    const first = candidates.find((line) => line.length <= columns) ?? candidates.at(-1) ?? ''
    const elsewhere =
      this.#coordinator === null
        ? []
        : [`  coordinated by ${shown(this.#coordinator, 64)}: running items are shown there`]
    return [first, ...this.#tree(branches, now), ...elsewhere]
  }

  #rate(done: number, now: number): string[] {
    if (this.#base === null || now - this.#base.at < RATE_FROM_MS || done <= this.#base.done) return []
    const perSecond = ((done - this.#base.done) * 1000) / (now - this.#base.at)
    const left = Math.max(0, this.#total - done)
    return [
      `${perSecond >= 10 ? Math.round(perSecond) : perSecond.toFixed(1)}/s`,
      `about ${formatDuration(Math.round(left / perSecond) * 1000)} left`
    ]
  }

  #tree(branches: readonly Branch[], now: number): string[] {
    const named = branches.length > 1
    const shownOnes =
      branches.length <= STAGES_SHOWN
        ? branches
        : branches.filter((one) => one.running.size > 0 || one.status === 'open').slice(0, STAGES_SHOWN)
    const lines = shownOnes.flatMap((one) => [...(named ? [stageLine(one)] : []), ...itemLines(one, now)])
    return shownOnes.length === branches.length
      ? lines
      : [...lines, `  and ${plural(branches.length - shownOnes.length, 'more sub-task')}`]
  }
}

function branchOf(stage: SwarmStage | null): Branch {
  const isFirst = stage === null || stage.needs.length === 0
  return {
    stage,
    status: isFirst ? 'open' : 'waiting',
    reason: '',
    completed: 0,
    failed: 0,
    unknown: 0,
    skipped: 0,
    running: new Map()
  }
}

function stageLine({ stage, status, reason, completed, failed }: Branch): string {
  const { id = '?', items = 0, needs = [], labels = [] } = stage ?? {}
  const bad = failed === 0 ? '' : `, ${failed} failed`
  const after = status === 'waiting' && needs.length > 0 ? ` after ${needs.join(', ')}` : ''
  const why = reason === '' ? '' : `: ${shown(reason, 100)}`
  return `  ${shown(id, 40)}  ${status}${shown(after, 100)}  ${completed}/${items}${bad}${labels.length === 0 ? '' : `  [${shown(labels.join(', '), 60)}]`}${why}`
}

function itemLines({ running }: Branch, now: number): string[] {
  const all = [...running.values()]
  const lines = all.slice(0, ITEMS_SHOWN).map(({ item, agent, attempt, since, awaitsApproval }) => {
    const tries = attempt > 1 ? `  attempt ${attempt}` : ''
    return `    ${shown(item, 60)}  ${shown(agent, 60)}${tries}  ${awaitsApproval ? 'waiting for approval' : formatDuration(Math.max(0, now - since))}`
  })
  return all.length > ITEMS_SHOWN ? [...lines, `    and ${all.length - ITEMS_SHOWN} more`] : lines
}
