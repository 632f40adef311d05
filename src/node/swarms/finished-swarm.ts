import type { SwarmEvent, SwarmInfo, SwarmResults } from '../../ports/swarm-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { Cancellation, SwarmEnd, SwarmHead, SwarmRow } from './store.js'
import { SwarmEventLog, type Following } from './event-log.js'
import { shownStages, SwarmStages } from './stages.js'

/** The public view of a swarm, running or ended. */
export interface SwarmView {
  readonly head: SwarmHead
  info(): SwarmInfo
  results(): SwarmResults
  follow(listener: (event: SwarmEvent) => void): Following
}

/** Gets the changes of swarms. */
export interface SwarmObserver<Swarm> {
  /** A swarm has no agent for its waiting items, or no coordinator; or one again. */
  onStatus(swarm: Swarm, status: 'running' | 'stalled'): void
  /** Called once when a swarm has ended. */
  onEnd(swarm: Swarm): void
}

/** The info of a swarm without live leases. */
export function infoOf(
  { id, request, createdAt, deadline }: SwarmHead,
  {
    status,
    counts,
    durationMs,
    participants,
    leftOut,
    stages,
    error,
    canceledBy
  }: Omit<SwarmEnd, 'status'> & Pick<SwarmInfo, 'status'>,
  directory: Pick<Directory, 'ref'>
): SwarmInfo {
  const { goal, capability, strategy } = request
  const at = { createdAt: new Date(createdAt).toISOString(), deadlineAt: new Date(deadline).toISOString(), durationMs }
  const { round } = request
  const loop = round === undefined ? {} : { round: { number: round.number, first: round.first ?? id } }
  const live = { running: 0, waitingForApproval: 0 }
  return {
    id,
    goal,
    capability,
    strategy,
    ...loop,
    stages,
    status,
    participants,
    leftOut,
    counts,
    ...live,
    ...at,
    ...(canceledBy === undefined ? {} : { canceledBy: cancellationInfo(canceledBy, directory) }),
    error
  }
}

function cancellationInfo(
  { node, caller, at }: Cancellation,
  directory: Pick<Directory, 'ref'>
): NonNullable<SwarmInfo['canceledBy']> {
  return { node: directory.ref(node), caller, at: new Date(at).toISOString() }
}

/** The event log of a swarm, with its first event. */
export function eventLogOf(head: SwarmHead, telemetry: Telemetry): SwarmEventLog {
  const { id, agents, leftOut } = head
  const eventLog = new SwarmEventLog(telemetry)
  eventLog.tell({ type: 'swarm', id, agents, leftOut, stages: shownStages(head) })
  return eventLog
}

/** The view of an ended swarm, from the ledger. */
export function endedSwarm(
  head: SwarmHead,
  end: SwarmEnd,
  { rows, telemetry, directory }: { rows: readonly SwarmRow[]; telemetry: Telemetry; directory: Pick<Directory, 'ref'> }
): SwarmView {
  const { id } = head
  const { status, counts, durationMs, error } = end
  const eventLog = eventLogOf(head, telemetry)
  const stages = new SwarmStages(head)
  stages.begin(rows)
  const together = stages.together()
  for (const row of rows) eventLog.settled(row)
  if (!stages.isPlain)
    for (const { id: stage, status: at, reason } of end.stages)
      eventLog.tell({ type: 'stage', stage, status: at, reason })
  eventLog.tell({ type: 'done', id, status, counts, durationMs, error, ...together })
  return {
    head,
    info: () => infoOf(head, end, directory),
    results: () => ({ id, status, ...together, results: eventLog.results() }),
    follow: (listener) => eventLog.follow(listener)
  }
}
