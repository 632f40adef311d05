import type { PushVersion } from '../../../domain/gateway/push.js'
import type { Told } from '../../../ports/webhooks.js'
import { WIRE_V03 } from '../server/wire-v03.js'
import { WIRE_V1 } from '../server/wire-v1.js'

/** Bytes of a notification; what would be larger is told without its contents, which its receiver can ask for. */
export const MAX_WEBHOOK_BYTES = 1_048_576

/** Media types of notifications, by version. */
export const WEBHOOK_TYPES: Readonly<Record<PushVersion, string>> = { '1.0': 'application/a2a+json', '0.3': 'application/json' }

/** A notification as JSON: in 1.0 what a stream tells (`task`, `statusUpdate`, `artifactUpdate`), in 0.3 the task. */
export function webhookBody(version: PushVersion, told: Told): string {
  const text = JSON.stringify(version === '1.0' ? toldV1(told) : toldV03(told))
  if (Buffer.byteLength(text) <= MAX_WEBHOOK_BYTES) return text
  const { message: _, ...task } = 'snapshot' in told ? told.snapshot.task : told.task
  const bare = { snapshot: { task: { ...task, message: null }, history: [], artifacts: [] } }
  return JSON.stringify(version === '1.0' ? toldV1(bare) : toldV03(bare))
}

function toldV1(told: Told): object {
  if ('snapshot' in told) return { task: WIRE_V1.task(told.snapshot, { historyLength: null }) }
  const { task, event } = told
  return WIRE_V1.event(event, task) ?? { task: WIRE_V1.task({ task, history: [], artifacts: [] }, { historyLength: null }) }
}

function toldV03(told: Told): object {
  const snapshot = 'snapshot' in told ? told.snapshot : { task: told.task, history: [], artifacts: [] }
  return WIRE_V03.task(snapshot, { historyLength: null })
}
