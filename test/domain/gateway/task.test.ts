import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { utf8 } from '../../../src/kit/ids.js'
import { artifactOf, inputOf, partsOf, statedBy, reportParts } from '../../../src/domain/gateway/content.js'
import { type Message, readArtifact, readMessage } from '../../../src/domain/gateway/message.js'
import { decodeLog, decodeTask, encodeLog, encodeTask } from '../../../src/domain/gateway/task-record.js'
import {
  applyGateway,
  ENDED_STATES,
  GATEWAY_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewayTask,
  snapshotOf
} from '../../../src/domain/gateway/task.js'
import { leadsTo } from '../../../src/domain/task/machine.js'
import { holds } from '../../support/holds.js'
import { arbJson } from '../../support/mcp.js'

const fresh: GatewayTask = {
  id: 'task_1',
  contextId: 'ctx_1',
  owner: 'token:1',
  messageId: 'm1',
  agent: 'text@node',
  capability: 'text.do',
  by: { maxTier: 0, sandboxId: null },
  state: 'submitted',
  message: null,
  since: 1000,
  createdAt: 1000,
  updatedAt: 1000,
  generation: 0,
  run: { requestId: 'req_1', taskId: 'task_1' }
}

const message = (role: Message['role']): fc.Arbitrary<Message> =>
  fc.record({
    messageId: fc.uuid(),
    role: fc.constant(role),
    parts: fc.array(fc.record({ text: fc.string() }), { minLength: 1, maxLength: 3 })
  })

const input: fc.Arbitrary<GatewayInput> = fc.oneof(
  fc.record({ type: fc.constant('message' as const), message: message('user') }),
  fc.record({
    type: fc.constant('status' as const),
    state: fc.constantFrom(...GATEWAY_STATES),
    message: message('agent')
  }),
  fc.record({ type: fc.constant('status' as const), state: fc.constantFrom(...GATEWAY_STATES) }),
  fc.record({
    type: fc.constant('artifact' as const),
    artifact: fc.record({
      artifactId: fc.constantFrom('a', 'b'),
      parts: fc.array(fc.record({ text: fc.string() }), { minLength: 1, maxLength: 2 })
    }),
    append: fc.boolean(),
    lastChunk: fc.boolean()
  })
)

/** Applies inputs, at times that may go back; gives the task and the events of those that fitted. */
function run(inputs: readonly (readonly [GatewayInput, number])[]): {
  readonly task: GatewayTask
  readonly events: GatewayEvent[]
} {
  let task = fresh
  const events: GatewayEvent[] = []
  for (const [one, at] of inputs) {
    const step = applyGateway(task, one, at)
    if (!step.ok) continue
    task = step.task
    events.push(step.event)
  }
  return { task, events }
}

const steps = fc.array(fc.tuple(input, fc.integer({ min: 0, max: 10_000 })), { maxLength: 40 })

test('events of a task rise by one, its states follow the task model, and it leaves no final one', async (t: Assert) => {
  await holds(
    t,
    fc.property(steps, (inputs) => {
      let task = fresh
      for (const [one, at] of inputs) {
        const step = applyGateway(task, one, at)
        if (!step.ok) continue
        const { task: next, event } = step
        const isLegal = next.state === task.state || leadsTo(task.state, next.state)
        if (!isLegal || ENDED_STATES.has(task.state)) return false
        if (
          event.generation !== task.generation + 1 ||
          next.updatedAt < task.updatedAt ||
          next.generation !== event.generation
        )
          return false
        task = next
      }
      return true
    })
  )
})

test('a log that is read back gives the task that was written: its history, its artifacts, its state', async (t: Assert) => {
  await holds(
    t,
    fc.property(steps, (inputs) => {
      const { task, events } = run(inputs)
      const read = decodeLog(task, utf8(encodeLog(task, events)))
      const snapshot = snapshotOf(decodeTask(task.id, utf8(encodeTask(task)))?.task ?? fresh, read ?? [])
      const said = events.filter((event) => event.type === 'message').length
      // What was said with the last status is that of the task, unless its client has answered.
      const isAnswered =
        events.findLastIndex(({ type }) => type === 'message') > events.findLastIndex(({ type }) => type === 'status')
      const told =
        events.filter((event) => event.type === 'status' && event.message !== undefined).length -
        (task.message === null || isAnswered ? 0 : 1)
      const status = events.findLast((event) => event.type === 'status')
      const texts = snapshot.artifacts.flatMap(({ parts }) => parts).length
      const last = new Map<string, number>()
      for (const event of events)
        if (event.type === 'artifact') {
          const { artifactId, parts } = event.artifact
          last.set(artifactId, (event.append ? (last.get(artifactId) ?? 0) : 0) + parts.length)
        }
      return (
        snapshot.task.state === (status?.type === 'status' ? status.state : 'submitted') &&
        snapshot.history.filter(({ role }) => role === 'user').length === said &&
        snapshot.history.filter(({ role }) => role === 'agent').length === told &&
        texts === [...last.values()].reduce((sum, count) => sum + count, 0)
      )
    })
  )
})

test('reading what clients and agents say never throws, and takes only what has the form', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.oneof(arbJson(), fc.anything()), (value) => {
      readMessage(value)
      readArtifact(value)
      statedBy(value)
      artifactOf(value)
      reportParts(value)
      return partsOf(value).length === 1
    })
  )
  t.ok(readMessage({ messageId: 'm', role: 'user', parts: [{ text: 'a' }] }).ok)
  for (const parts of [[], [{}], [{ text: 'a', url: 'b' }], [{ text: 1 }], 'a'])
    t.absent(readMessage({ messageId: 'm', role: 'user', parts }).ok, JSON.stringify(parts))
  const faults = readMessage({ role: 'root', parts: [{}] })
  t.alike(
    faults.ok ? [] : faults.faults.map(({ path }) => path),
    ['message.messageId', 'message.role', 'message.parts[0]'],
    'all at once'
  )
})

test('a report with a null artifact carries none, as one without the member, and any other value is one to check', (t: Assert) => {
  for (const about of [{ artifact: null }, {}, { artifact: undefined }]) t.is(artifactOf({ a2a: about }), null)
  for (const artifact of [{}, '', 0, false, []])
    t.alike(artifactOf({ a2a: { artifact } }), { artifact, append: false, lastChunk: false })
})

test('a long text of a message is read like a short one', (t: Assert) => {
  const text = 'x'.repeat(3_000_000)
  t.alike(inputOf([{ text: JSON.stringify({ a: text }) }]), { a: text })
  t.ok(readArtifact({ artifactId: 'a', parts: [{ text }] }).ok)
})

test('an agent gets the content of a message: a text, an object, or its parts by kind', (t: Assert) => {
  t.alike(inputOf([{ text: 'hello' }]), { text: 'hello' })
  t.alike(inputOf([{ text: ' {"a":1}' }]), { a: 1 })
  t.alike(inputOf([{ text: '{"a":' }]), { text: '{"a":' })
  t.alike(inputOf([{ text: 'a' }, { text: 'b' }]), { text: 'a\nb' })
  t.alike(inputOf([{ data: { a: 1 } }]), { a: 1 })
  t.alike(inputOf([{ data: [1] }]), { data: [[1]] })
  t.alike(
    inputOf([
      { text: 'see' },
      { raw: 'AA==', mediaType: 'image/png', filename: 'x.png' },
      { url: 'https://a/b' },
      { data: 1 }
    ]),
    {
      text: 'see',
      data: [1],
      files: [{ filename: 'x.png', mediaType: 'image/png', bytes: 'AA==' }, { url: 'https://a/b' }]
    }
  )
  t.alike(statedBy({ a2a: { state: 'input-required', message: 'Which one?' } }), {
    state: 'input-required',
    parts: [{ text: 'Which one?' }]
  })
  t.is(statedBy({ a2a: { state: 'completed' } }), null)
  t.alike(partsOf({ text: 'a' }), [{ text: 'a' }])
  t.alike(partsOf({ text: 'a', b: 1 }), [{ data: { text: 'a', b: 1 }, mediaType: 'application/json' }])
})
