import type { PushVersion } from '../../../domain/gateway/push.js'
import type { WebhookContent } from '../../../ports/webhooks.js'
import { WIRE_V03 } from '../server/wire-v03.js'
import { WIRE_V1 } from '../server/wire-v1.js'

/** Most bytes of a notification. A larger one has the task without contents, which the receiver can fetch. */
export const MAX_WEBHOOK_BYTES = 1_048_576

/** Media types of notifications, by version. */
export const WEBHOOK_TYPES: Readonly<Record<PushVersion, string>> = {
  '1.0': 'application/a2a+json',
  '0.3': 'application/json'
}

/** A notification as JSON: in 1.0 an item of a stream (`task`, `statusUpdate`, `artifactUpdate`), in 0.3 the task. */
export function webhookBody(version: PushVersion, content: WebhookContent): string {
  const text = JSON.stringify(version === '1.0' ? bodyV1(content) : bodyV03(content))
  if (Buffer.byteLength(text) <= MAX_WEBHOOK_BYTES) return text
  const { message: _, ...task } = 'snapshot' in content ? content.snapshot.task : content.task
  const bare = { snapshot: { task: { ...task, message: null }, history: [], artifacts: [] } }
  return JSON.stringify(version === '1.0' ? bodyV1(bare) : bodyV03(bare))
}

function bodyV1(content: WebhookContent): object {
  if ('snapshot' in content) return { task: WIRE_V1.task(content.snapshot, { historyLength: null }) }
  const { task, event } = content
  return (
    WIRE_V1.event(event, task) ?? { task: WIRE_V1.task({ task, history: [], artifacts: [] }, { historyLength: null }) }
  )
}

function bodyV03(content: WebhookContent): object {
  const snapshot = 'snapshot' in content ? content.snapshot : { task: content.task, history: [], artifacts: [] }
  return WIRE_V03.task(snapshot, { historyLength: null })
}
