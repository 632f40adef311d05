import type { SwarmEvent, SwarmInfo, SwarmResults } from '../ports/swarm-api.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { SwarmEnd, SwarmHead, SwarmRow } from './swarm-book.js'
import { SwarmCourse } from './swarm-course.js'
import type { Following } from './swarm-course.js'

/** What people see of a swarm, under way or ended. */
export interface SwarmView {
  info(): SwarmInfo
  results(): SwarmResults
  follow(listener: (event: SwarmEvent) => void): Following
}

/** Where a swarm stands; no lease of it is live. */
export function infoOf(
  { id, request, createdAt }: SwarmHead,
  { status, counts, durationMs, participants, leftOut }: Omit<SwarmEnd, 'status' | 'error'> & Pick<SwarmInfo, 'status'>
): SwarmInfo {
  const { goal, capability, strategy } = request
  const at = { createdAt: new Date(createdAt).toISOString(), durationMs }
  return { id, goal, capability, strategy, status, participants, leftOut, counts, running: 0, waitingForApproval: 0, ...at }
}

/** A swarm that has ended, as the ledger tells of it. */
export function endedSwarm(
  head: SwarmHead,
  end: SwarmEnd,
  { rows, telemetry }: { rows: readonly SwarmRow[]; telemetry: Telemetry }
): SwarmView {
  const { id, agents, leftOut } = head
  const { status, counts, durationMs, error } = end
  const course = new SwarmCourse(telemetry)
  course.tell({ type: 'swarm', id, agents, leftOut })
  for (const row of rows) course.settled(row)
  course.tell({ type: 'done', id, status, counts, durationMs, error })
  return {
    info: () => infoOf(head, end),
    results: () => ({ id, status, results: course.results() }),
    follow: (listener) => course.follow(listener)
  }
}
