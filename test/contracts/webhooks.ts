import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { PushHook } from '../../src/domain/gateway/push.js'
import type { GatewayEvent, GatewayTask } from '../../src/domain/gateway/task.js'
import { Abort } from '../../src/kit/abort.js'
import type { WebhookContent, WebhookCall, Webhooks } from '../../src/ports/webhooks.js'
import { holds } from '../support/holds.js'

/** How a receiver answers: `holds`: never. */
export type ReceiverMood = 'takes' | 'refuses' | 'is gone' | 'is busy' | 'holds'

/** Webhooks under test, with a receiver. */
export interface WebhooksSubject {
  readonly webhooks: Webhooks
  /** Of the receiver. */
  readonly url: string
  /** An address to which nothing may be sent. */
  readonly inside: string
  /** How the receiver answers from now on; one that is busy asks for 7 seconds. */
  mood(mood: ReceiverMood): void
  /** Resolves once the receiver got so many. */
  until(count: number): Promise<readonly WebhookCall[]>
}

const CALL: WebhookCall = { id: 'hook_a.7', event: 'task.completed', body: '{"task":{"id":"task_1"}}' }

/** What every way to webhooks keeps. */
export function webhooksContract(name: string, make: (t: Assert) => Promise<WebhooksSubject>): void {
  const hookTo = (url: string): PushHook => ({ id: 'mine', hook: 'hook_a', task: 'task_1', version: '1.0', url })
  const check = (title: string, body: (t: Assert, subject: WebhooksSubject) => Promise<void>): void => {
    test(`${name}: ${title}`, async (t: Assert) => await body(t, await make(t)))
  }

  check(
    'an address inside is refused with a reason, and reached by nothing that is sent',
    async (t: Assert, { webhooks, url, inside, until }) => {
      t.is(webhooks.refusal(url), null)
      t.ok((webhooks.refusal(inside) ?? '') !== '')
      const answer = await webhooks.send(hookTo(inside), CALL, new Abort())
      t.ok(answer.type !== 'taken' && answer.reason !== '', 'nor does it throw')
      await webhooks.send(hookTo(url), CALL, new Abort())
      t.is((await until(1)).length, 1)
    }
  )

  check(
    'a notification arrives unchanged, each try under the same id, and its answer is returned',
    async (t: Assert, { webhooks, url, mood, until }) => {
      t.alike(await webhooks.send(hookTo(url), CALL, new Abort()), { type: 'taken' })
      mood('refuses')
      const refused = await webhooks.send(hookTo(url), CALL, new Abort())
      t.ok(refused.type === 'refused' && refused.reason !== '')
      mood('is gone')
      const gone = await webhooks.send(hookTo(url), CALL, new Abort())
      t.ok(gone.type === 'gone' && gone.reason !== '')
      mood('is busy')
      const failed = await webhooks.send(hookTo(url), CALL, new Abort())
      t.alike([failed.type, failed.type === 'failed' ? failed.retryAfterMs : null], ['failed', 7000])
      t.alike(
        (await until(4)).map(({ id, event, body }) => ({ id, event, body })),
        [CALL, CALL, CALL, CALL]
      )
    }
  )

  check(
    'one that is sent no longer, or was never to be, ends at once',
    async (t: Assert, { webhooks, url, mood, until }) => {
      mood('holds')
      const stop = new Abort()
      const sending = webhooks.send(hookTo(url), CALL, stop)
      await until(1)
      stop.abort()
      t.ok((await sending).type !== 'refused', 'it says nothing of the receiver')
      t.ok(await webhooks.send(hookTo(url), CALL, stop))
    }
  )

  check(
    'the body of any notification is JSON in both versions, and the same at every try',
    async (t: Assert, { webhooks }) => {
      const message = fc.record({
        messageId: fc.string(),
        role: fc.constant('agent' as const),
        parts: fc.array(fc.record({ text: fc.string() }))
      })
      const event = fc.oneof(
        fc.record({
          type: fc.constant('status' as const),
          state: fc.constantFrom('working' as const, 'failed' as const),
          message
        }),
        fc.record({
          type: fc.constant('artifact' as const),
          artifact: fc.record({ artifactId: fc.string(), parts: fc.array(fc.record({ text: fc.string() })) }),
          append: fc.boolean(),
          lastChunk: fc.boolean()
        })
      )
      const numbered = event.map((one): GatewayEvent => ({ ...one, generation: 2, at: 0 }))
      const property = fc.property(numbered, fc.boolean(), (one, isWhole) => {
        const told: WebhookContent = isWhole
          ? { snapshot: { task: TASK, history: [], artifacts: [] } }
          : { task: TASK, event: one }
        for (const version of ['1.0', '0.3'] as const) {
          const body = webhooks.bodyOf(version, told)
          if (typeof JSON.parse(body) !== 'object' || webhooks.bodyOf(version, told) !== body) throw new Error(body)
        }
      })
      await holds(t, property, 100)
    }
  )
}

const TASK: GatewayTask = {
  id: 'task_1',
  contextId: 'ctx_1',
  owner: 'token:tok_a',
  messageId: 'm1',
  agent: 'slow@node',
  capability: 'slow.do',
  by: { maxTier: 0, sandboxId: null },
  state: 'working',
  message: null,
  since: 0,
  createdAt: 0,
  updatedAt: 0,
  generation: 2,
  run: { requestId: 'req_1', taskId: 'task_1' }
}
