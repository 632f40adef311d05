import test from 'brittle'
import fc from 'fast-check'
import {
  type AguiEvent,
  type AguiRunHead,
  breakOff,
  MAX_OPEN_TEXTS,
  startRun,
  translate
} from '../../../../src/adapters/a2a/agui/agui-events.js'
import type { Message, Part } from '../../../../src/domain/gateway/message.js'
import {
  ENDED_STATES,
  GATEWAY_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewayState
} from '../../../../src/domain/gateway/task.js'
import { runFault, type WireEvent } from '../../../support/agui.js'
import { holds } from '../../../support/holds.js'
import { arbJson } from '../../../support/mcp.js'

const part: fc.Arbitrary<Part> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ text: fc.string({ maxLength: 4 }) }) },
  fc.record({ data: arbJson() }),
  fc.record({ raw: fc.base64String({ maxLength: 8 }), filename: fc.string() }),
  fc.record({ url: fc.webUrl() })
)
const parts = fc.array(part, { minLength: 1, maxLength: 3 })
const message = (role: Message['role']): fc.Arbitrary<Message> =>
  fc.record({ messageId: fc.constantFrom('m1', 'm2', 'm3'), role: fc.constant(role), parts })
const artifact = fc.record({
  type: fc.constant('artifact' as const),
  artifact: fc.record({ artifactId: fc.constantFrom('a', 'b', 'result'), parts }),
  append: fc.boolean(),
  lastChunk: fc.boolean()
})
const status = (states: readonly GatewayState[]): fc.Arbitrary<GatewayInput> =>
  fc.record(
    { type: fc.constant('status' as const), state: fc.constantFrom(...states), message: message('agent') },
    { requiredKeys: ['type', 'state'] }
  )
const input: fc.Arbitrary<GatewayInput> = fc.oneof(
  { weight: 6, arbitrary: artifact },
  { weight: 4, arbitrary: status(['submitted', 'working']) },
  { weight: 1, arbitrary: status(GATEWAY_STATES) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('message' as const), message: message('user') }) }
)
const log: fc.Arbitrary<GatewayEvent[]> = fc
  .array(input, { maxLength: 40 })
  .map((inputs) => inputs.map((one, at) => ({ ...one, generation: at + 1, at })))

function headOf(behind: string | null, settled: number): AguiRunHead {
  const task = { id: 'task_1', contextId: 'thread', agent: 'text@node', capability: 'text.do' }
  return { threadId: 'thread', runId: 'run', parentRunId: null, task, behind, settled }
}

/** The whole run of a log, as its client has it. */
function runOf(
  events: readonly GatewayEvent[],
  head: AguiRunHead
): { readonly sent: readonly WireEvent[]; readonly isWhole: boolean } {
  const sent: AguiEvent[] = []
  let step = startRun(head, [])
  sent.push(...step.events)
  for (const event of events) {
    step = translate(step.run, event)
    sent.push(...step.events)
  }
  const isWhole = step.run.isEnded
  sent.push(...breakOff(step.run).events)
  return { sent: JSON.parse(JSON.stringify(sent)) as WireEvent[], isWhole }
}

/** The events that are told of in a run: behind its message, up to its end. */
function toldOf(
  events: readonly GatewayEvent[],
  { behind, settled }: AguiRunHead
): { readonly told: readonly GatewayEvent[]; readonly isWhole: boolean } {
  const from =
    behind === null ? 0 : events.findIndex((one) => one.type === 'message' && one.message.messageId === behind) + 1
  const rest = behind !== null && from === 0 ? [] : events.slice(from)
  const end = rest.findIndex(
    (one) =>
      one.type === 'status' &&
      (ENDED_STATES.has(one.state) ||
        ((one.state === 'input-required' || one.state === 'auth-required') && one.generation >= settled))
  )
  return end === -1 ? { told: rest, isWhole: false } : { told: rest.slice(0, end + 1), isWhole: true }
}

const heads = fc
  .tuple(fc.constantFrom(null, 'm1', 'm2'), fc.nat(40))
  .map(([behind, settled]) => headOf(behind, settled))

test('any log of a task is a legal run of AG-UI 1.0, by the schemas of others and the rules of pairing', async (t) => {
  await holds(
    t,
    fc.property(log, heads, (events, head) => {
      const { sent, isWhole } = runOf(events, head)
      const fault = runFault(sent)
      if (fault !== null) throw new Error(fault)
      return isWhole === toldOf(events, head).isWhole
    }),
    1000
  )
})

test('a run says every text and every other part of its log, once and in order', async (t) => {
  const textOf = (list: readonly Part[]): string =>
    list.flatMap(({ text }) => (text === undefined || text === '' ? [] : [text])).join('\n')
  await holds(
    t,
    fc.property(log, heads, (events, head) => {
      const { sent } = runOf(events, head)
      const contents = toldOf(events, head).told.flatMap((one) => {
        if (one.type === 'artifact') return [{ parts: one.artifact.parts, isError: false }]
        if (one.type !== 'status' || one.message === undefined) return []
        return [{ parts: one.message.parts, isError: one.state === 'failed' || one.state === 'rejected' }]
      })
      const texts = contents.filter(({ isError }) => !isError).map((one) => textOf(one.parts))
      const others = contents.flatMap((one) => one.parts.filter(({ text }) => text === undefined))
      const deltas = sent.flatMap(({ delta }) => (delta === undefined ? [] : [delta]))
      const customs = sent.filter(({ type, name }) => type === 'CUSTOM' && name !== 'a2a.task')
      const told = customs.flatMap(({ value }) => (value as { parts: unknown[] }).parts)
      const error = contents.findLast(({ isError }) => isError)
      const failure = sent.findLast(({ type, code }) => type === 'RUN_ERROR' && code !== 'STREAM_ENDED')?.['message']
      return (
        JSON.stringify(deltas) === JSON.stringify(texts.filter((one) => one !== '')) &&
        JSON.stringify(told) === JSON.stringify(others) &&
        (error === undefined || textOf(error.parts) === '' || failure === textOf(error.parts))
      )
    }),
    1000
  )
})

function logOf(...inputs: readonly GatewayInput[]): GatewayEvent[] {
  return inputs.map((one, at) => ({ ...one, generation: at + 1, at }))
}

const user: GatewayInput = { type: 'message', message: { messageId: 'm1', role: 'user', parts: [{ text: 'hello' }] } }
const chunk = (text: string, append: boolean, lastChunk: boolean, artifactId = 'out'): GatewayInput => ({
  type: 'artifact',
  artifact: { artifactId, parts: [{ text }] },
  append,
  lastChunk
})
const state = (name: GatewayState, text?: string): GatewayInput => ({
  type: 'status',
  state: name,
  ...(text === undefined ? {} : { message: { messageId: 'q', role: 'agent', parts: [{ text }] } })
})

test('chunks of one artifact are one streamed message; an artifact without appended chunks is a message of its own', (t) => {
  const events = logOf(
    user,
    chunk('one ', false, false),
    chunk('two', true, true),
    chunk('new', false, false),
    chunk('newer', false, true)
  )
  const { sent } = runOf([...events, { type: 'status', state: 'completed', generation: 6, at: 6 }], headOf('m1', 1))
  t.alike(
    sent
      .filter(({ type }) => type.startsWith('TEXT'))
      .map(({ type, messageId, delta }) => [type.slice(13), messageId, delta]),
    [
      ['START', 'task_1.2', undefined],
      ['CONTENT', 'task_1.2', 'one '],
      ['CONTENT', 'task_1.2', 'two'],
      ['END', 'task_1.2', undefined],
      ['START', 'task_1.4', undefined],
      ['CONTENT', 'task_1.4', 'new'],
      ['END', 'task_1.4', undefined],
      ['START', 'task_1.5', undefined],
      ['CONTENT', 'task_1.5', 'newer'],
      ['END', 'task_1.5', undefined]
    ]
  )
})

test('a result that came in pieces is what the run gives back, whole', (t) => {
  const resultOf = (...pieces: readonly GatewayInput[]): unknown =>
    runOf(logOf(user, ...pieces, state('completed')), headOf('m1', 1)).sent.at(-1)?.['result']
  t.is(resultOf(chunk('one ', false, false, 'result'), chunk('two', true, false, 'result')), 'one two')
  t.is(resultOf(chunk('one ', false, false, 'result'), chunk('two', false, true, 'result')), 'two')
})

test('states in which a task is worked at are steps; one that goes on is not begun again', (t) => {
  const { sent } = runOf(
    logOf(user, state('working'), state('working', 'half'), state('working', 'whole'), state('completed')),
    headOf('m1', 1)
  )
  t.alike(
    sent.flatMap(({ type, stepName }) => (stepName === undefined ? [] : [`${type} ${stepName}`])),
    ['STEP_STARTED submitted', 'STEP_FINISHED submitted', 'STEP_STARTED working', 'STEP_FINISHED working']
  )
})

test('how a task came to rest is how its run ends', (t) => {
  const endOf = (...inputs: GatewayInput[]): WireEvent | undefined =>
    runOf(logOf(user, ...inputs), headOf('m1', 1)).sent.at(-1)
  const finished = { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run' }
  t.alike(endOf(state('completed')), { ...finished, outcome: { type: 'success' } })
  t.alike(endOf(chunk('yes', false, true, 'result'), state('completed')), {
    ...finished,
    outcome: { type: 'success' },
    result: 'yes'
  })
  t.alike(endOf(state('canceled', 'stopped')), { ...finished, outcome: { type: 'cancelled' } })
  t.alike(endOf(state('failed', 'no (X)')), { type: 'RUN_ERROR', message: 'no (X)', code: 'TASK_FAILED' })
  t.alike(endOf(state('rejected')), { type: 'RUN_ERROR', message: 'rejected', code: 'TASK_REJECTED' })
  for (const reason of ['input-required', 'auth-required'] as const)
    t.alike(endOf(state(reason, 'Which?')), {
      ...finished,
      outcome: { type: 'interrupt', interrupts: [{ id: 'q', reason, message: 'Which?' }] }
    })
  t.is(endOf(state('working'))?.['code'], 'STREAM_ENDED')
})

test('a question with an answer does not end the run when it is reported again', (t) => {
  const answered = logOf(
    user,
    state('input-required', 'Which?'),
    { ...user, message: { ...user.message, messageId: 'm2' } },
    state('working'),
    state('completed')
  )
  t.alike(runOf(answered, headOf('m1', 5)).sent.at(-1)?.outcome, { type: 'success' })
  t.is(runOf(answered, headOf('m1', 2)).sent.at(-1)?.outcome?.type, 'interrupt')
})

test('an agent that begins texts and ends none has a bounded number open', (t) => {
  const many = Array.from({ length: 3 * MAX_OPEN_TEXTS }, (_, at) => chunk('x', true, false, `a${at}`))
  let open = 0
  let most = 0
  const { sent } = runOf(logOf(user, ...many, state('completed')), headOf('m1', 1))
  for (const { type } of sent) {
    open += type === 'TEXT_MESSAGE_START' ? 1 : type === 'TEXT_MESSAGE_END' ? -1 : 0
    most = Math.max(most, open)
  }
  t.is(most, MAX_OPEN_TEXTS)
  t.is(runFault(sent), null)
})
