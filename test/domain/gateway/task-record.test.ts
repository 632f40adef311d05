import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { Message, Part } from '../../../src/domain/gateway/message.js'
import { GATEWAY_STATES, type GatewayEvent, type GatewayTask } from '../../../src/domain/gateway/task.js'
import { decodeLog, decodeTask, encodeLog, encodeTask } from '../../../src/domain/gateway/task-record.js'
import { utf8 } from '../../../src/kit/ids.js'
import { holds } from '../../support/holds.js'
import { arbJson } from '../../support/mcp.js'

const text = fc.string({ unit: 'binary', maxLength: 12 })
const time = fc.integer({ min: 0, max: 2 ** 42 })
const about = fc.dictionary(fc.constantFrom('a', 'b'), arbJson())
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text }),
  fc.record({ data: arbJson(), mediaType: text }),
  fc.record({ raw: fc.constant('aGk='), filename: text, metadata: about }, { requiredKeys: ['raw'] })
)
const parts = fc.array(part, { minLength: 1, maxLength: 3 })
/** Often the same: what a message has of its task is not written again. */
const id = fc.constantFrom('task_1', 'task_2', 'ctx_1')
const uris = fc.array(text, { maxLength: 2 })
const message: fc.Arbitrary<Message> = fc.record(
  {
    messageId: text,
    role: fc.constantFrom('user', 'agent'),
    parts,
    contextId: id,
    taskId: id,
    metadata: about,
    extensions: uris,
    referenceTaskIds: uris
  },
  { requiredKeys: ['messageId', 'role', 'parts'] }
)
const run = fc.record(
  { requestId: text, taskId: text, isAttended: fc.constant(true as const) },
  { requiredKeys: ['requestId', 'taskId'] }
)
const state = fc.constantFrom(...GATEWAY_STATES)
const artifact = fc.record(
  { artifactId: text, name: text, parts, metadata: about },
  { requiredKeys: ['artifactId', 'parts'] }
)
const told = fc.oneof(
  fc.record(
    { type: fc.constant('message' as const), message, run, at: time },
    { requiredKeys: ['type', 'message', 'at'] }
  ),
  fc.record(
    { type: fc.constant('status' as const), state, message, at: time },
    { requiredKeys: ['type', 'state', 'at'] }
  ),
  fc.record({
    type: fc.constant('artifact' as const),
    artifact,
    append: fc.boolean(),
    lastChunk: fc.boolean(),
    at: time
  })
)
const log: fc.Arbitrary<GatewayEvent[]> = fc
  .tuple(fc.integer({ min: 1, max: 10_000 }), fc.array(told, { minLength: 1, maxLength: 6 }))
  .map(([first, all]) => all.map((one, at) => ({ ...one, generation: first + at })))
const by = fc.record(
  {
    maxTier: fc.constantFrom(0 as const, 3 as const),
    sandboxId: fc.option(text),
    capabilities: fc.array(text, { maxLength: 2 })
  },
  { requiredKeys: ['maxTier'] }
)
const task: fc.Arbitrary<GatewayTask> = fc.record({
  id,
  contextId: id,
  owner: text,
  messageId: text,
  agent: text,
  capability: text,
  by,
  state,
  message: fc.option(message),
  since: time,
  createdAt: time,
  updatedAt: time,
  generation: fc.integer({ min: 1, max: 10_000 }),
  run: fc.option(run)
})

test('any task and any log are read as they were written, together and apart', async (t: Assert) => {
  await holds(
    t,
    fc.property(task, log, (one, events) => {
      const alone = decodeTask(one.id, utf8(encodeTask(one)))
      const whole = decodeTask(one.id, utf8(encodeTask(one, encodeLog(one, events))))
      const read = decodeLog(one, utf8(encodeLog(one, events)))
      const asJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
      return (
        alone?.log === null &&
        sameMembers(alone.task, asJson(one)) &&
        sameMembers(whole?.task, asJson(one)) &&
        sameMembers(whole?.log, asJson(events)) &&
        sameMembers(read, asJson(events))
      )
    }),
    300
  )
})

test('bytes that are no record give none', async (t: Assert) => {
  const some = { id: 'task_1', contextId: 'ctx_1', createdAt: 1 }
  for (const bytes of ['', '{}', '[', 'null', '7', '[1,7]', '[1,["x"]]', '{"id":"task_1"}']) {
    t.is(decodeLog(some, utf8(bytes)), null, bytes)
    t.is(decodeTask('task_1', utf8(bytes)), null, bytes)
  }
  await holds(
    t,
    fc.property(fc.uint8Array(), arbJson(), (bytes, json) => {
      for (const read of [bytes, utf8(JSON.stringify(json) ?? '')]) {
        decodeTask('task_1', read)
        decodeLog(some, read)
      }
      return true
    })
  )
})

/** Are two values of JSON the same, whatever the order of their members? */
function sameMembers(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return Object.is(one, other)
  const [names, others] = [Object.keys(one), Object.keys(other)]
  const at = (value: object, name: string): unknown => (value as Record<string, unknown>)[name]
  return (
    names.length === others.length &&
    names.every((name) => Object.hasOwn(other, name) && sameMembers(at(one, name), at(other, name)))
  )
}
