import { isRecord } from '../../../kit/json.js'
import type { Message, Part } from '../../../domain/gateway/message.js'
import { ASKING_STATES } from '../../../domain/gateway/task.js'
import type { GatewaySnapshot } from '../../../ports/gateway.js'
import {
  type AguiEvent,
  type AguiRunHead,
  type AguiStep,
  breakOff,
  questionId,
  startRun,
  translate
} from './agui-events.js'
import type { AguiAnswer, AguiInput, AguiMessage } from './agui-input.js'
import { A2AFault } from '../server/fault.js'
import { beginTask, type Caller } from '../server/operations.js'
import { invalid, messageOf } from '../server/read-params.js'
import { present } from '../server/wire.js'

/** The caller of a run, with its gateway and agent. */
export type AguiCaller = Pick<Caller, 'gateway' | 'by' | 'agent' | 'signal'>

/** A begun run. `after`: the generation of its task after which events are sent. */
export interface AguiBegun {
  readonly head: AguiRunHead
  readonly after: number
  readonly warnings: readonly string[]
}

/** The input with the last changed task of its thread; null: no task to continue. */
interface AguiThread {
  readonly input: AguiInput
  readonly snapshot: GatewaySnapshot | null
}

/**
 * Begins the task of a run, continues the waiting task of its thread, or finds the task that the same input has begun.
 * @throws A2AFault, NodeError
 */
export async function beginRun(given: AguiInput, caller: AguiCaller): Promise<AguiBegun> {
  const input = { ...given, agent: caller.agent ?? given.agent }
  const thread = { input, snapshot: await newestOf(input, caller) }
  const asked = thread.snapshot === null ? [] : questionsOf(thread.snapshot)
  const answer = input.resume.find(({ interruptId }) => asked.includes(interruptId))
  const strange = input.resume
    .filter((one) => one !== answer)
    .map(({ interruptId }) => `resume: nothing waits for ${interruptId.slice(0, 256)}`)
  const begun =
    answer === undefined || thread.snapshot === null
      ? await say(thread, caller)
      : answer.status === 'cancelled'
        ? await abandon({ ...thread, snapshot: thread.snapshot }, answer, caller)
        : await resolve({ ...thread, snapshot: thread.snapshot }, answer, caller)
  return { ...begun, warnings: [...input.warnings, ...strange.slice(0, 16)] }
}

/** The events of a run, from RUN_STARTED on. Its task goes on when the client disconnects. */
export async function* eventsOf(
  { head, after, warnings }: AguiBegun,
  { gateway, by, signal }: AguiCaller
): AsyncIterable<AguiEvent> {
  let step: AguiStep = startRun(head, warnings)
  yield* step.events
  for await (const event of gateway.follow(by, head.task.id, { after, untilRest: true, signal })) {
    step = translate(step.run, event)
    yield* step.events
    if (step.run.isEnded) return
  }
  yield* breakOff(step.run).events
}

async function newestOf({ threadId, agent }: AguiInput, { gateway, by }: AguiCaller): Promise<GatewaySnapshot | null> {
  const filter = { contextId: threadId, ...(agent === null ? {} : { agentName: agent }) }
  const { tasks } = await gateway.list(by, filter, { after: null, limit: 1, isWhole: true })
  return tasks[0] ?? null
}

/** Sends the last message of the user: as a new task, or as the answer to the waiting one. */
async function say({ input, snapshot }: AguiThread, caller: AguiCaller): Promise<Omit<AguiBegun, 'warnings'>> {
  const { userMessage, agent, skill } = input
  if (userMessage === null) throw invalid('messages', 'there must be one of a user')
  const ofUser = snapshot?.history.filter(({ role }) => role === 'user') ?? []
  const place = ofUser.findIndex(({ messageId }) => messageId === userMessage.messageId)
  const isAnswer = place === -1 ? snapshot !== null && isWaiting(snapshot) : place > 0
  if (isAnswer && snapshot !== null) return await send({ input, userMessage, taskId: snapshot.task.id }, caller)
  if (agent === null && skill === null)
    throw invalid(
      'forwardedProps',
      'must name an agent or a skill, e.g. {"agent": "text"}; or use /agents/{agent}/agui'
    )
  return await send({ input, userMessage }, caller)
}

type AguiWaiting = AguiThread & { readonly snapshot: GatewaySnapshot }

async function resolve(
  { input, snapshot }: AguiWaiting,
  { interruptId, payload }: AguiAnswer,
  caller: AguiCaller
): Promise<Omit<AguiBegun, 'warnings'>> {
  const { userMessage } = input
  const isNew = userMessage !== null && isBehind(snapshot, { userMessage, interruptId })
  if (payload === undefined && isNew) return await send({ input, userMessage, taskId: snapshot.task.id }, caller)
  // The id comes from the question, so a repeated answer counts once.
  const answer = { messageId: `answer.${interruptId}`, parts: [partOf(payload ?? {})] }
  return await send({ input, userMessage: answer, taskId: snapshot.task.id }, caller)
}

/** A canceled question ends its task; a later message of the user begins a new one. */
async function abandon(
  { input, snapshot }: AguiWaiting,
  { interruptId }: AguiAnswer,
  caller: AguiCaller
): Promise<Omit<AguiBegun, 'warnings'>> {
  const { gateway, by } = caller
  const { id, state, message } = snapshot.task
  if (state !== 'canceled') {
    if (!isWaiting(snapshot) || questionId(id, message) !== interruptId)
      throw new A2AFault('UNSUPPORTED_OPERATION', `resume: ${interruptId} has its answer already`)
    await gateway.cancel(by, id)
  }
  if (input.userMessage !== null && isBehind(snapshot, { userMessage: input.userMessage, interruptId }))
    return await say({ input, snapshot: null }, caller)
  const { task } = await gateway.get(by, id)
  return { head: headOf(input, task, null), after: task.generation - 1 }
}

async function send(
  {
    input,
    userMessage,
    taskId
  }: { readonly input: AguiInput; readonly userMessage: AguiMessage; readonly taskId?: string },
  { gateway, by, signal }: AguiCaller
): Promise<Omit<AguiBegun, 'warnings'>> {
  const { agent, skill, justification } = input
  const metadata = justification === null ? undefined : { justification }
  const message = messageOf(present({ ...userMessage, role: 'user', contextId: input.threadId, taskId, metadata }))
  const reply = await beginTask({ gateway, by, agent, signal }, { message, skill }, { wait: false, mayAnswer: false })
  if (reply.kind === 'message') throw new A2AFault('INTERNAL', 'a run is of a task')
  return { head: headOf(input, reply.snapshot.task, userMessage.messageId), after: 0 }
}

function headOf(
  { threadId, runId, parentRunId }: AguiInput,
  task: GatewaySnapshot['task'],
  behind: string | null
): AguiRunHead {
  return { threadId, runId, parentRunId, task, behind, settled: task.generation }
}

function isWaiting({ task: { state } }: GatewaySnapshot): boolean {
  return ASKING_STATES.has(state)
}

/** Ids of all questions of a task, as answers name them. */
function questionsOf({ task, history }: GatewaySnapshot): string[] {
  const asked = [...history.filter(({ role }) => role === 'agent'), ...(task.message === null ? [] : [task.message])]
  return [...asked.map(({ messageId }) => messageId), task.id]
}

/** Is the message newer than the question? */
function isBehind(
  { history }: GatewaySnapshot,
  { userMessage, interruptId }: { readonly userMessage: AguiMessage; readonly interruptId: string }
): boolean {
  const place = (id: string): number => history.findIndex(({ messageId }: Message) => messageId === id)
  const [word, question] = [place(userMessage.messageId), place(interruptId)]
  return word === -1 || (question !== -1 && word > question)
}

function partOf(payload: unknown): Part {
  return typeof payload === 'string' ? { text: payload } : { data: isRecord(payload) ? payload : { value: payload } }
}
