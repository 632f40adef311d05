import { JUSTIFICATION_PLACE, RESULT } from '../../../domain/gateway/content.js'
import type { Artifact, Message, Part } from '../../../domain/gateway/message.js'
import { ENDED_STATES, type GatewayEvent, RESTING_STATES } from '../../../domain/gateway/task.js'
import { present } from '../server/wire.js'

/** The version of AG-UI that a run speaks. */
export const AGUI_VERSION = '1.0'
/** Most artifact texts that stream at once; one more ends the oldest. */
export const MAX_OPEN_TEXTS = 64

/** A question or credential that a run waits for. */
export interface AguiInterrupt {
  readonly id: string
  readonly reason: string
  readonly message?: string
}

/** Outcome of a run that did not fail. */
export type AguiOutcome =
  | { readonly type: 'success' }
  | { readonly type: 'cancelled' }
  | { readonly type: 'interrupt'; readonly interrupts: readonly AguiInterrupt[] }

/** The events of AG-UI 1.0 that this node sends. */
export type AguiEvent =
  | {
      readonly type: 'RUN_STARTED'
      readonly threadId: string
      readonly runId: string
      readonly protocolVersion: string
      readonly parentRunId?: string
    }
  | {
      readonly type: 'RUN_FINISHED'
      readonly threadId: string
      readonly runId: string
      readonly outcome: AguiOutcome
      readonly result?: unknown
    }
  | { readonly type: 'RUN_ERROR'; readonly message: string; readonly code: string }
  | { readonly type: 'STEP_STARTED' | 'STEP_FINISHED'; readonly stepName: string }
  | { readonly type: 'TEXT_MESSAGE_START'; readonly messageId: string; readonly role: 'assistant' }
  | { readonly type: 'TEXT_MESSAGE_CONTENT'; readonly messageId: string; readonly delta: string }
  | { readonly type: 'TEXT_MESSAGE_END'; readonly messageId: string }
  | { readonly type: 'CUSTOM'; readonly name: string; readonly value: unknown }

/** Identity of a run: its thread and task. */
export interface AguiRunHead {
  readonly threadId: string
  readonly runId: string
  readonly parentRunId: string | null
  readonly task: {
    readonly id: string
    readonly contextId: string
    readonly agent: string
    readonly capability: string
  }
  /** The run begins after this message; null: with the first event. */
  readonly behind: string | null
  /** Generation of the task when the run began: earlier questions are answered. */
  readonly settled: number
}

/** A run under way. */
export interface AguiRun extends Pick<AguiRunHead, 'threadId' | 'runId' | 'behind' | 'settled'> {
  readonly taskId: string
  /** The open step. */
  readonly step: string | null
  /** Open text messages by artifact. */
  readonly texts: ReadonlyMap<string, string>
  /** Result of the task; null: none yet. */
  readonly result: unknown
  readonly isEnded: boolean
}

/** A run after an event, with the events for its client. */
export interface AguiStep {
  readonly run: AguiRun
  readonly events: readonly AguiEvent[]
}

/** Begins a run. `warnings`: unused parts of the client's input. */
export function startRun(head: AguiRunHead, warnings: readonly string[]): AguiStep {
  const { threadId, runId, parentRunId, behind, settled, task } = head
  const { id: taskId, contextId, agent, capability: skill } = task
  const run = {
    threadId,
    runId,
    behind,
    settled,
    taskId,
    step: null,
    texts: new Map<string, string>(),
    result: null,
    isEnded: false
  }
  const started = { type: 'RUN_STARTED', threadId, runId, protocolVersion: AGUI_VERSION } as const
  return {
    run,
    events: [
      parentRunId === null ? started : { ...started, parentRunId },
      custom('a2a.task', { taskId, contextId, agent, skill }),
      ...warnings.map((message) => custom('a2a.warning', { message }))
    ]
  }
}

/** Translates an event of the task. Never throws: for any log the events are legal, and none follows the last. */
export function translate(run: AguiRun, event: GatewayEvent): AguiStep {
  if (run.isEnded) return { run, events: [] }
  if (run.behind !== null)
    return event.type === 'message' && event.message.messageId === run.behind ? begun(run, event) : { run, events: [] }
  if (event.type === 'status') return tellStatus(run, event)
  return event.type === 'artifact' ? tellArtifact(run, event) : { run, events: [] }
}

/** Ends a run whose event stream broke off while its task goes on; no events when the run has ended. */
export function breakOff(run: AguiRun): AguiStep {
  if (run.isEnded) return { run, events: [] }
  return {
    run: { ...run, isEnded: true },
    events: [errorEvent('the stream ended before the task, which goes on', 'STREAM_ENDED')]
  }
}

/** A failure as the last event of a run. */
export function errorEvent(message: string, code: string): AguiEvent {
  return { type: 'RUN_ERROR', message: message.replace(JUSTIFICATION_PLACE, 'in forwardedProps.justification'), code }
}

/** The first message of a task opens the step `submitted`; an answered task reports its next state itself. */
function begun(run: AguiRun, { generation }: GatewayEvent): AguiStep {
  return generation === 1
    ? inStep({ ...run, behind: null }, 'submitted')
    : { run: { ...run, behind: null }, events: [] }
}

function inStep(run: AguiRun, step: string): AguiStep {
  if (run.step === step) return { run, events: [] }
  return { run: { ...run, step }, events: [...endOfStep(run), { type: 'STEP_STARTED', stepName: step }] }
}

type Status = Extract<GatewayEvent, { type: 'status' }>

function tellStatus(run: AguiRun, event: Status): AguiStep {
  const { state, message, generation } = event
  const isQuestion = RESTING_STATES.has(state) && !ENDED_STATES.has(state)
  const stepped = RESTING_STATES.has(state) ? { run, events: [] } : inStep(run, state)
  const isError = state === 'failed' || state === 'rejected'
  // The reason of a failure is sent once, as the message of the error.
  const userMessage = message === undefined ? [] : tellMessage(run, { message, state, generation, isError })
  const isEnd = ENDED_STATES.has(state) || (isQuestion && generation >= run.settled)
  if (!isEnd) return { run: stepped.run, events: [...stepped.events, ...userMessage] }
  const last = isError ? errorEvent(textOf(message) || state, `TASK_${state.toUpperCase()}`) : finished(run, event)
  return {
    run: { ...run, step: null, texts: new Map(), isEnded: true },
    events: [...userMessage, ...[...run.texts.values()].map(endOfText), ...endOfStep(run), last]
  }
}

function finished({ threadId, runId, taskId, result }: AguiRun, { state, message }: Status): AguiEvent {
  const end = { type: 'RUN_FINISHED', threadId, runId } as const
  if (state === 'canceled') return { ...end, outcome: { type: 'cancelled' } }
  if (state === 'completed') return { ...end, outcome: { type: 'success' }, ...(result === null ? {} : { result }) }
  const text = textOf(message)
  const interrupt = {
    id: questionId(taskId, message ?? null),
    reason: state,
    ...(text === '' ? {} : { message: text })
  }
  return { ...end, outcome: { type: 'interrupt', interrupts: [interrupt] } }
}

/** The id by which an answer names a question of a task. */
export function questionId(taskId: string, message: Message | null): string {
  return message?.messageId ?? taskId
}

function tellMessage(
  { taskId }: AguiRun,
  {
    message,
    state,
    generation,
    isError
  }: Pick<Status, 'state' | 'generation'> & { readonly message: Message; readonly isError: boolean }
): AguiEvent[] {
  const rest = message.parts.filter(isNoText)
  const text = isError ? '' : textOf(message)
  const id = `${taskId}.${generation}`
  const spoken: AguiEvent[] =
    text === '' ? [] : [startOfText(id), { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text }, endOfText(id)]
  return rest.length === 0
    ? spoken
    : [...spoken, custom('a2a.message', { taskId, state, messageId: message.messageId, parts: rest })]
}

function tellArtifact(before: AguiRun, event: Extract<GatewayEvent, { type: 'artifact' }>): AguiStep {
  const { artifact, append, lastChunk, generation } = event
  const { artifactId, parts, ...about } = artifact
  const run = {
    ...before,
    result: artifactId === RESULT ? resultOf(artifact, append ? before.result : '') : before.result
  }
  const rest = parts.filter(isNoText)
  const { taskId } = run
  const more =
    rest.length === 0
      ? []
      : [custom('a2a.artifact', { taskId, artifactId, ...present(about), parts: rest, append, lastChunk })]
  const text = textOf(artifact)
  const texts = new Map(run.texts)
  const events: AguiEvent[] = []
  const end = (id: string): void => {
    events.push(endOfText(texts.get(id) ?? ''))
    texts.delete(id)
  }
  // Without `append` the artifact is replaced: its new text is a new message.
  if (!append && texts.has(artifactId)) end(artifactId)
  if (text !== '') {
    const messageId = texts.get(artifactId) ?? `${taskId}.${generation}`
    if (!texts.has(artifactId)) {
      const [oldest] = texts.keys()
      if (texts.size >= MAX_OPEN_TEXTS && oldest !== undefined) end(oldest)
      texts.set(artifactId, messageId)
      events.push(startOfText(messageId))
    }
    events.push({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text })
  }
  if (lastChunk && texts.has(artifactId)) end(artifactId)
  return { run: { ...run, texts }, events: [...events, ...more] }
}

/**
 * A result of one text, perhaps in chunks, or of one data part; null for other results, which their artifact carries.
 */
function resultOf({ parts: [part, ...more] }: Artifact, before: unknown): unknown {
  if (part === undefined || more.length > 0) return null
  if (typeof before === 'string' && part.text !== undefined) return before + part.text
  return before === '' ? (part.data ?? null) : null
}

function isNoText({ text }: Part): boolean {
  return text === undefined
}

function textOf(value: Pick<Message, 'parts'> | undefined): string {
  return (value?.parts ?? []).flatMap(({ text }) => (text === undefined || text === '' ? [] : [text])).join('\n')
}

function startOfText(messageId: string): AguiEvent {
  return { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
}

function endOfText(messageId: string): AguiEvent {
  return { type: 'TEXT_MESSAGE_END', messageId }
}

function endOfStep({ step }: AguiRun): AguiEvent[] {
  return step === null ? [] : [{ type: 'STEP_FINISHED', stepName: step }]
}

function custom(name: string, value: object): AguiEvent {
  return { type: 'CUSTOM', name, value }
}
