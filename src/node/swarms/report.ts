import type { SwarmState } from '../../domain/swarm/machine.js'
import type { SwarmResults } from '../../ports/swarm-api.js'
import type { Directory } from '../cards/directory.js'
import type { Leadership } from './consensus/leadership.js'
import type { SwarmEventLog } from './event-log.js'
import { sessionOf, type SwarmSession } from './session.js'
import { SwarmStages } from './stages.js'
import type { SwarmEnd, SwarmHead, SwarmItem, SwarmLease, SwarmRow } from './store.js'

/** What names a lease of a swarm. */
export type LeaseName = Pick<SwarmLease, 'index' | 'agent' | 'attempt'>

/** What is reported of. */
interface ReportOf {
  readonly head: SwarmHead
  readonly items: readonly SwarmItem[]
  readonly eventLog: SwarmEventLog
  readonly term: Pick<Leadership, 'attemptOf'> | null
}

/** Tells people of a swarm under way: names its items and agents, and says where it stands. */
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

  /** A lease as people read it. */
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

  /** Where it stands, by the outcomes that were told. */
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

  /** Where it stands, in the words of the specification. */
  session(state: SwarmState, end: SwarmEnd | null, isRecruiting: boolean): SwarmSession {
    const { id, request, capabilities, createdAt } = this.#head
    const { participants, eventLog } = this
    const [goal, names, rows] = [request.goal, this.#names, eventLog.rows]
    return sessionOf({ id, goal, capabilities, names, state, end: end?.status ?? null, isRecruiting, participants, rows, createdAt })
  }

  /** Its accepted results so far, in the order of the items; those of all together once it has ended. */
  results(status: SwarmResults['status'], isOver: boolean): SwarmResults {
    const together = isOver ? this.stages.together() : {}
    return { id: this.#head.id, status, ...together, results: this.eventLog.results() }
  }
}
