import { messageOf, NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import { type AgentAddress, addressText, OPERATOR, parseAddress } from '../../domain/card/card.js'
import { answerIn, failurePart, partsOf, statedBy } from '../../domain/gateway/content.js'
import { boundedHistory, type Conversation, readThread } from '../../domain/gateway/conversation.js'
import type { ContextExchange, ContextPlace } from '../../domain/gateway/conversation-turns.js'
import type { Message, Part } from '../../domain/gateway/message.js'
import type { ContextStore, ContextCalls, ContextInfo } from '../../ports/task-api.js'
import type { Principal } from '../../ports/node-api.js'
import type { NodeDeps } from '../dependencies.js'
import type { Services } from '../services.js'
import type { Answer } from '../requests/caller/request-codec.js'
import { tasksOfLedger } from '../requests/recovery.js'

/** Contexts of a list, at most. */
const MAX_LISTED_CONTEXTS = 200
/** Characters of the text of a listed turn, at most. */
const MAX_TURN_TEXT = 8192
/** Stands for the id of a context that a call begins. */
const NEW_CONTEXT = 'new'

/** Owner of the operator's turns. */
const OWNER = `operator:${OPERATOR}`

const CONTEXT_IDS: IdKind = {
  one: 'context',
  where: 'on this node',
  several: 'contexts',
  prefix: 'ctx_',
  code: 'TASK_NOT_FOUND',
  list: 'a2a-node completion values contexts'
}

/** Dependencies of the calls about contexts. */
export type ContextsApiDeps = Pick<Services, 'directory' | 'requestStore' | 'tasks'>

/** Dependencies of {@link openTurn}. */
export type ContextTurnDeps = Pick<NodeDeps, 'clock' | 'ids' | 'telemetry' | 'toAgentJson'>

/** A caller, and the conversations of the gateway; null: it is not open. */
interface ContextCaller {
  readonly node: ContextsApiDeps
  readonly host: { contexts(): ContextStore | null }
  readonly principal: Principal
}

/** The calls about contexts: the required scope and the function of each. */
export const CONTEXT_CALLS: {
  readonly [N in keyof ContextCalls]: readonly [
    Principal['scopes'][number],
    (
      caller: ContextCaller,
      params: ContextCalls[N]['params']
    ) => ContextCalls[N]['result'] | Promise<ContextCalls[N]['result']>
  ]
} = {
  'context.list': ['read', (caller) => listContexts(contextStore(caller))],
  'context.show': ['read', (caller, { id }) => showContext(caller.node, contextStore(caller), id)]
}

/** Conversations of all callers. @throws NodeError FORBIDDEN; CONFLICT without a gateway */
export function contextStore({ host, principal }: Pick<ContextCaller, 'host' | 'principal'>): ContextStore {
  if (principal.kind !== 'operator')
    throw new NodeError('FORBIDDEN', 'conversations of all callers are for the operator of the node')
  const store = host.contexts()
  if (store !== null) return store
  throw new NodeError('CONFLICT', 'this node serves A2A neither over HTTP nor to members, so it has no contexts', {
    next: ['a2a-node start --http <[host:]port>']
  })
}

function listContexts(store: ContextStore): ContextCalls['context.list']['result'] {
  const all = [...store.contexts()].sort(([one, at], [other, than]) => than - at || (one < other ? -1 : 1))
  return {
    contexts: all.slice(0, MAX_LISTED_CONTEXTS).map(([id, at]) => ({ id, updatedAt: new Date(at).toISOString() }))
  }
}

function resolved(store: ContextStore, text: string): string {
  return resolveId(text, new Map([...store.contexts().keys()].map((id) => [id, id])), CONTEXT_IDS)
}

async function showContext(node: ContextsApiDeps, store: ContextStore, text: string): Promise<ContextInfo> {
  const id = resolved(store, text)
  const { entries, isCut } = await store.all(id)
  const { messages, isCut: more } = boundedHistory({ messages: entries.map(({ message }) => message), isCut })
  const newest = entries.slice(entries.length - messages.length)
  const turns = newest.map(async ({ at, message: { role, parts, taskId = null }, owner, agent }) => {
    const address = parseAddress(agent)
    return {
      at: new Date(at).toISOString(),
      role,
      caller: owner === OWNER ? OPERATOR : owner.replace(':', ' '),
      agent: address === null ? agent : node.directory.shownAddress(address),
      taskId,
      state: taskId === null ? null : await stateOf(node, store, taskId),
      text: textOf(parts)
    }
  })
  return { id, turns: await Promise.all(turns), more }
}

async function stateOf(
  node: ContextsApiDeps,
  store: ContextStore,
  taskId: string
): Promise<ContextInfo['turns'][number]['state']> {
  const known = store.stateOf(taskId) ?? node.tasks.get(taskId)?.state
  if (known !== undefined) return known
  const recorded = await tasksOfLedger(node.requestStore, taskId)
  return recorded.find(({ task }) => task.id === taskId)?.task.state ?? null
}

function textOf(parts: readonly Part[]): string {
  const texts = parts.map(({ text, data, filename, mediaType }) =>
    text !== undefined ? text : data !== undefined ? JSON.stringify(data) : `[${filename ?? mediaType ?? 'file'}]`
  )
  const text = texts.join('\n')
  return text.length > MAX_TURN_TEXT ? `${text.slice(0, MAX_TURN_TEXT - 1)}…` : text
}

/** A turn of the operator in a context. */
export interface ContextTurn {
  readonly conversation: Conversation
  readonly names: { readonly requestId: string; readonly taskId: string }
  /** Records it with its answer. Never rejects: a failure is logged. */
  answered(answer: Answer): Promise<void>
}

/** The agent of a turn, and its input. */
interface TurnInput {
  readonly target: AgentAddress
  readonly input: unknown
}

/**
 * Begins a turn in the context of an id, a unique prefix or `new`. The agent gets its earlier messages of the context,
 * with all clients. @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED
 */
export async function openTurn(
  { deps }: { readonly deps: ContextTurnDeps },
  { store, context }: { readonly store: ContextStore; readonly context: string },
  { target, input }: TurnInput
): Promise<ContextTurn> {
  const { ids } = deps
  const isNew = context === NEW_CONTEXT
  const contextId = isNew ? ids.next('ctx') : resolved(store, context)
  const agent = addressText(target)
  const { entries, isCut: isShort } = isNew ? { entries: [], isCut: false } : await store.all(contextId)
  const own = entries.filter((one) => one.agent === agent).map(({ message }) => message)
  const { messages: history, isCut } = boundedHistory({ messages: own, isCut: isShort })
  const names = { requestId: ids.next('req'), taskId: ids.next('task') }
  const { taskId } = names
  const parts = inputParts(deps.toAgentJson(input))
  const message: Message = { messageId: ids.next('msg'), contextId, taskId, role: 'user', parts }
  const newest = own.at(-1)
  // A client may write any metadata into its own messages.
  const thread = newest?.role === 'agent' ? readThread(newest.metadata?.['thread']) : null
  const caller = { kind: 'operator', id: OPERATOR }
  const since = deps.clock.now()
  const conversation = { contextId, taskId, message, history, isCut, caller, ...(thread === null ? {} : { thread }) }
  const answered = async (answer: Answer): Promise<void> => {
    const reply: Message = { messageId: ids.next('msg'), contextId, taskId, role: 'agent', ...answerOf(answer, deps) }
    const exchange = [
      { at: since, message },
      { at: deps.clock.now(), message: reply }
    ] as const
    await recordTurn(deps, store, { owner: OWNER, contextId, agent }, exchange)
  }
  return { names, conversation, answered }
}

/** Never rejects. */
async function recordTurn(...[{ telemetry }, store, place, exchange]: TurnRecord): Promise<void> {
  await store.answered(place, exchange, false).catch((error: unknown) => {
    telemetry.count('errors', 'ledger')
    telemetry.log('warn', 'a turn of a context could not be recorded', { reason: messageOf(error) })
  })
}

type TurnRecord = readonly [deps: ContextTurnDeps, store: ContextStore, place: ContextPlace, exchange: ContextExchange]

/** The parts of which the input of an agent was made. */
function inputParts(input: unknown): readonly Part[] {
  if (typeof input === 'string') return [{ text: input }]
  if (!isRecord(input)) return [{ text: JSON.stringify(input) }]
  const { text } = input
  const isText = typeof text === 'string' && Object.keys(input).length === 1 && !text.trimStart().startsWith('{')
  return isText ? [{ text }] : [{ data: input }]
}

/** The message that stands for an answer. A question has the ids that its agent wants back as `metadata.thread`. */
function answerOf(answer: Answer, { toAgentJson }: ContextTurnDeps): Pick<Message, 'parts' | 'metadata'> {
  if (answer.outcome !== 'COMPLETED') return { parts: [failurePart(answer.error)] }
  const result = toAgentJson(answer.result)
  const stated = statedBy(result)
  if (stated !== null) {
    const { state, parts, thread } = stated
    return { parts, metadata: { state, ...(thread === undefined ? {} : { thread }) } }
  }
  const whole = answerIn(result)
  if (whole === null) return { parts: partsOf(result) }
  return { parts: [...whole.artifacts.flatMap(({ parts }) => parts), ...(whole.parts ?? [])] }
}
