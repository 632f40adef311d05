import type { SwarmState } from '../../domain/swarm/machine.js'
import type { SwarmResults } from '../../ports/swarm-api.js'
import type { Directory } from '../cards/directory.js'
import type { Leadership } from './consensus/leadership.js'
import type { SwarmEventLog } from './event-log.js'
import { sessionOf, type SwarmSession } from './session.js'
import { SwarmStages } from './stages.js'
import type { SwarmEnd, SwarmHead, SwarmItem, SwarmLease, SwarmRow } from './store.js'

/** The name of a lease of a swarm. */
export type LeaseName = Pick<SwarmLease, 'index' | 'agent' | 'attempt'>

/** The swarm of a report. */
interface ReportOf {
  readonly head: SwarmHead
  readonly items: readonly SwarmItem[]
  readonly eventLog: SwarmEventLog
  readonly term: Pick<Leadership, 'attemptOf'> | null
}

/** Reports a swarm under way to people: names its items and agents, and gives its state. */
export class SwarmReport {
  readonly eventLog: SwarmEventLog
  readonly stages: SwarmStages
  /** Addresses of agents that got a lease. */
  readonly participants = new Set<string>()
  readonly #directory: Pick<Directory, 'namer' | 'shownAddress'>
  readonly #head: SwarmHead
  readonly #term: ReportOf['term']
  readonly #names: readonly string[]

  /** Keeps the names of the items, not their inputs. */
  constructor(directory: Pick<Directory, 'namer' | 'shownAddress'>, { head, items, eventLog, term }: ReportOf) {
    const namer = directory.namer()
    this.#directory = directory
    this.#head = head
    this.#term = term
    this.#names = items.map((one) => (one.pinnedTo === undefined ? one.name : namer(one.name)))
    this.eventLog = eventLog
    this.stages = new SwarmStages(head)
  }

  /** An agent has a lease. */
  leased(lease: LeaseName): void {
    this.participants.add(lease.agent)
    this.eventLog.tell({ type: 'lease', ...this.shown(lease) })
  }

  /** A lease has ended without an outcome. */
  released(lease: LeaseName, reason: string): void {
    this.eventLog.tell({ type: 'released', ...this.shown(lease), reason })
  }

  /** A lease starts or stops waiting for a person. */
  awaits(lease: LeaseName, awaitsApproval: boolean): void {
    this.eventLog.tell({ type: 'waiting', ...this.shown(lease), waitingFor: awaitsApproval ? 'approval' : null })
  }

  /** A lease in the form for people. */
  shown({ index, agent, attempt }: LeaseName): Pick<SwarmRow['row'], 'stage' | 'item' | 'agent' | 'attempt'> {
    const stage = this.stages.of(index)?.id
    const sub = this.#head.stages.length === 1 || stage === undefined ? {} : { stage }
    return {
      ...sub,
      item: this.#names[index] ?? String(index),
      agent: agent === '' ? '-' : this.#directory.shownAddress(agent),
      attempt: this.#term?.attemptOf(attempt) ?? attempt
    }
  }

  /** Its state, by the reported outcomes. */
  standing(durationMs: number, leftOut: SwarmEnd['leftOut']): Omit<SwarmEnd, 'status' | 'error'> {
    const namer = this.#directory.namer()
    return {
      counts: this.eventLog.counts(this.#head.itemCount),
      durationMs,
      participants: [...this.participants].map((one) => namer(one)),
      leftOut,
      stages: this.stages.info()
    }
  }

  /** Its state in the terms of the specification. */
  session(state: SwarmState, end: SwarmEnd | null, isRecruiting: boolean): SwarmSession {
    const { participants, eventLog } = this
    const [head, names, { rows }] = [this.#head, this.#names, eventLog]
    return sessionOf({ head, names, state, end: end?.status ?? null, isRecruiting, participants, rows })
  }

  /** Its accepted results so far, in the order of the items; once it has ended, also the combined ones. */
  results(status: SwarmResults['status'], isOver: boolean): SwarmResults {
    const together = isOver ? this.stages.together() : {}
    return { id: this.#head.id, status, ...together, results: this.eventLog.results() }
  }
}
