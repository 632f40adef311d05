import { NodeError } from '../../kit/errors.js'
import type { ErrorBody } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { BroadcastTarget } from '../../ports/node-api.js'
import { isRefusal } from '../../domain/reliable/repeat.js'

/** What became of one target of a broadcast. */
export type Outcome = Omit<BroadcastTarget, 'agent'>

/** What a broadcast counts as having got there. */
const TAKEN: ReadonlySet<string> = new Set(['COMPLETED', 'DELIVERED', 'SENT', 'QUEUED'])

/** The message did not get there, or nobody knows: not the agent failed. */
const UNDELIVERED: ReadonlySet<string> = new Set(['PEER_OFFLINE', 'DELIVERY_FAILED', 'CHANNEL_CLOSED', 'OVERLOADED', 'UNKNOWN'])

/** Why a target was left out, in the order in which they are told. */
const LEFT_OUT = { refused: 'by rules', unapproved: 'not approved in time', skipped: 'without a capability' } as const

/** The rule by which a node refused, null for what is no refusal: then the target was asked. */
export function refusingRule({ code, data }: Pick<ErrorBody, 'code' | 'data'>): string | null {
  if (!isRefusal(code) && code !== 'FORBIDDEN') return null
  return isRecord(data) && typeof data['rule'] === 'string' ? shown(data['rule']) : code
}

/**
 * How a broadcast failed; null: it did not. A target that is left out is as it should be, unless there is no other; one that
 * failed is not.
 */
export function broadcastError(targets: readonly Outcome[]): NodeError | null {
  const leftOut = leftOutText(targets)
  const asked = targets.filter(({ rule }) => rule === null)
  const failed = asked.filter(({ outcome }) => !TAKEN.has(outcome))
  if (targets.length > 0 && asked.length === 0) return new NodeError('DELIVERY_FAILED', `no agent took the message${leftOut}`)
  if (failed.length === 0) return null
  const code = failed.some(({ outcome }) => UNDELIVERED.has(outcome)) ? 'DELIVERY_FAILED' : 'TASK_FAILED'
  const isAll = failed.length === asked.length
  const where = asked.length === 1 ? 'the only agent' : `${isAll ? 'all' : `${failed.length} of`} ${asked.length} agents`
  const offline = failed.filter(({ outcome }) => outcome === 'PEER_OFFLINE').length
  const away = offline === 0 ? '' : ` (${offline} offline)`
  return new NodeError(code, `${isAll ? 'no agent took it' : 'partly done'}: it failed at ${where}${away}${leftOut}`)
}

function leftOutText(targets: readonly Outcome[]): string {
  const counts = { refused: 0, unapproved: 0, skipped: 0 }
  for (const one of targets) if (one.rule !== null) counts[whyLeftOut(one)]++
  const parts = (['refused', 'unapproved', 'skipped'] as const).filter((why) => counts[why] > 0)
  return parts.length === 0 ? '' : `; left out: ${parts.map((why) => `${counts[why]} ${LEFT_OUT[why]}`).join(', ')}`
}

function whyLeftOut({ outcome }: Outcome): keyof typeof LEFT_OUT {
  return outcome === 'SKIPPED' ? 'skipped' : outcome === 'APPROVAL_TIMEOUT' ? 'unapproved' : 'refused'
}
