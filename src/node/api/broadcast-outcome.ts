import { type ErrorBody, NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { isRefusal } from '../../domain/reliable/repeat.js'
import type { BroadcastTarget } from '../../ports/node-api.js'

/** The outcome of a broadcast for one target. */
export type MessageOutcome = Omit<BroadcastTarget, 'agent'>

/** Outcomes that count as delivered. */
const TAKEN: ReadonlySet<string> = new Set(['COMPLETED', 'DELIVERED', 'SENT', 'QUEUED'])

/** Outcomes of messages that were not delivered, or may not be: the agent did not fail. */
const UNDELIVERED: ReadonlySet<string> = new Set([
  'PEER_OFFLINE',
  'DELIVERY_FAILED',
  'CHANNEL_CLOSED',
  'OVERLOADED',
  'UNKNOWN'
])

/** Reasons to leave a target out, in the order of the report. */
const LEFT_OUT = {
  refused: 'by rules',
  unapproved: 'not approved in time',
  skipped: 'without a capability',
  changing: 'with side effects'
} as const

/** The rule by which a node refused; null for any other error: then the target was asked. */
export function refusingRule({ code, data }: Pick<ErrorBody, 'code' | 'data'>): string | null {
  if (!isRefusal(code) && code !== 'FORBIDDEN') return null
  return isRecord(data) && typeof data['rule'] === 'string' ? shown(data['rule']) : code
}

/**
 * The failure of a broadcast; null for none. A left-out target is no failure, unless all are left out. A failed one is.
 */
export function broadcastError(targets: readonly MessageOutcome[]): NodeError | null {
  const leftOut = leftOutText(targets)
  const asked = targets.filter(({ rule }) => rule === null)
  const failed = asked.filter(({ outcome }) => !TAKEN.has(outcome))
  if (targets.length > 0 && asked.length === 0)
    return new NodeError('DELIVERY_FAILED', `no agent took the message${leftOut}`)
  if (failed.length === 0) return null
  const code = failed.some(({ outcome }) => UNDELIVERED.has(outcome)) ? 'DELIVERY_FAILED' : 'TASK_FAILED'
  const isAll = failed.length === asked.length
  const where =
    asked.length === 1 ? 'the only agent' : `${isAll ? 'all' : `${failed.length} of`} ${asked.length} agents`
  const offline = failed.filter(({ outcome }) => outcome === 'PEER_OFFLINE').length
  const away = offline === 0 ? '' : ` (${offline} offline)`
  return new NodeError(code, `${isAll ? 'no agent took it' : 'partly done'}: it failed at ${where}${away}${leftOut}`)
}

function leftOutText(targets: readonly MessageOutcome[]): string {
  const counts = { refused: 0, unapproved: 0, skipped: 0, changing: 0 }
  for (const one of targets) if (one.rule !== null) counts[whyLeftOut(one)]++
  const parts = (['refused', 'unapproved', 'skipped', 'changing'] as const).filter((why) => counts[why] > 0)
  return parts.length === 0 ? '' : `; left out: ${parts.map((why) => `${counts[why]} ${LEFT_OUT[why]}`).join(', ')}`
}

function whyLeftOut({ outcome }: MessageOutcome): keyof typeof LEFT_OUT {
  if (outcome === 'SIDE_EFFECT') return 'changing'
  return outcome === 'SKIPPED' ? 'skipped' : outcome === 'APPROVAL_TIMEOUT' ? 'unapproved' : 'refused'
}
