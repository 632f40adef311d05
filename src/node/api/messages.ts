import type { AbortSignalLike } from '../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody } from '../../kit/errors.js'
import { isRecord, parseJson, SIZED_LIMITS } from '../../kit/json.js'
import { safeTitle } from '../../kit/names/safe-name.js'
import { shellWord, shown } from '../../kit/text.js'
import { type AgentAddress, defaultCapability, OPERATOR } from '../../domain/card/card.js'
import type { RegisteredCard } from '../../domain/card/registry.js'
import { barText, broadcastBar } from '../../domain/policy/requested-work.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Severity, QuestionKind } from '../../domain/task/question.js'
import type { AgentHealth } from '../../ports/agent-runtime.js'
import type { ContextStore } from '../../ports/task-api.js'
import type { AgentDetail, AgentInfo, Calls, Reply, TaskInfo } from '../../ports/node-api.js'
import type { Task } from '../../domain/task/task.js'
import { broadcastError, type MessageOutcome, refusingRule } from './broadcast-outcome.js'
import { CallQuestions, type CallQuestionsDeps } from './call-questions.js'
import type { MessageHooks } from './watches.js'
import type { Asked } from '../requests/caller/requests.js'
import { refusal, stepsFor } from '../messaging/error-hints.js'
import type { NodeDeps } from '../dependencies.js'
import type { Pipelines } from '../pipelines.js'
import type { Services } from '../services.js'
import type { Answer } from '../requests/caller/request-codec.js'
import type { DraftHead } from '../messaging/outbound.js'
import { previewOf } from '../../kit/preview.js'
import { agentProblems } from '../agents/health.js'
import { openTurn, type ContextTurn, type ContextTurnDeps } from './contexts.js'
import { findAgent } from '../cards/select-target.js'

/** Dependencies of the calls about agents and messages. */
export interface MessagesApiDeps
  extends Pick<
      Services,
      | 'agentLookup'
      | 'agents'
      | 'directory'
      | 'localCards'
      | 'presence'
      | 'registry'
      | 'remoteCards'
      | 'self'
      | 'visibility'
    >,
    CallQuestionsDeps,
    Pick<Pipelines, 'outbound' | 'requests' | 'selector'> {
  readonly deps: Pick<NodeDeps, 'clock' | 'ids' | 'logState' | 'membership' | 'settings'> & ContextTurnDeps
}

/** Rows of `agents`: this node's first, then by address, without the operator. A sandboxed caller sees its sandbox. */
export function listAgents(
  node: MessagesApiDeps,
  { origin }: Calls['agents.list']['params'],
  by: CallerAuthority
): Calls['agents.list']['result'] {
  const cards = node.registry
    .listAll()
    .filter(
      (card) =>
        card.id !== OPERATOR && (origin === undefined || card.origin === origin) && node.visibility.toCaller(card, by)
    )
  const agents = cards.map((card) => ({
    ...agentInfo(node, card),
    capabilities: card.capabilities.map((one) => one.id)
  }))
  agents.sort((a, b) => a.origin.localeCompare(b.origin) || a.address.localeCompare(b.address))
  const ofHere = origin === 'remote' ? [] : agentProblems(node)
  return { agents, problems: [...ofHere, ...(origin === 'local' ? [] : node.deps.logState.problems())] }
}

/** The longest shown display name of a card, in UTF-16 units. */
const TITLE_MAX = 128

/** One agent in full. @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME. */
export function showAgent(node: MessagesApiDeps, text: string, by: CallerAuthority): AgentDetail {
  const address = node.directory.agent(text, (one) => node.visibility.toCaller(one, by))
  const card = node.directory.card(address)
  if (card === undefined) throw new NodeError('AGENT_NOT_FOUND', `no agent "${shown(text)}" in the mesh`)
  const definition = card.origin === 'local' ? node.agents.definition(card.id) : undefined
  const { name, version, description, capabilities } = card
  return {
    ...agentInfo(node, card),
    name: safeTitle(name, TITLE_MAX),
    version,
    description,
    capabilities,
    prompts: definition?.prompts ?? [],
    source: definition?.source ?? null
  }
}

function agentInfo(node: MessagesApiDeps, card: RegisteredCard): Omit<AgentInfo, 'capabilities'> {
  const isHere = card.origin === 'local'
  const isOnline = isHere || node.presence.isOnline(card.nodeId)
  const load = isHere ? node.agents.load(card.id) : null
  const isBusy = load !== null && load.running >= load.slots
  const health = healthOf(node, card)
  const party = node.directory.party({ agentId: card.id, nodeId: card.nodeId })
  return {
    id: card.id,
    address: node.directory.shownAddress({ agentId: card.id, nodeId: card.nodeId }),
    node: node.directory.ref(card.nodeId),
    tier: tierText(party?.tier ?? card.tier),
    origin: card.origin,
    sandboxId: party?.sandboxId ?? card.sandboxId ?? null,
    labels: card.labels ?? [],
    revision: card.revision,
    ...(card.provider === undefined ? {} : { provider: card.provider }),
    ...(health === null ? {} : { health: { ...health, since: new Date(health.since).toISOString() } }),
    status: !isOnline ? 'offline' : health?.state === 'unhealthy' ? 'unhealthy' : isBusy ? 'busy' : 'ready'
  }
}

/** Its health; of an agent of another node only when that node reports that it cannot work. */
function healthOf({ agents, remoteCards }: MessagesApiDeps, card: RegisteredCard): AgentHealth | null {
  if (card.origin === 'local') return agents.health(card.id)
  const since = remoteCards.unableSince(card.nodeId, card.id)
  return since === null ? null : { state: 'unhealthy', reason: 'its node reports that it cannot work', since }
}

/** `send`: text to an agent's default capability, or to all agents. */
export async function sendText(
  node: MessagesApiDeps,
  params: Calls['message.send']['params'],
  { by, as, ...followed }: ApiCaller
): Promise<Reply> {
  const { agent, text, type, all = false, ...rest } = params
  const question = { ...rest, capability: null, input: inputOf(text), onBehalfOf: by, as, signal: followed.signal }
  if (agent === '*') return broadcast(node, type ?? 'request', { ...question, isForAll: all })
  const target = await agentFor(node, agent, { by, head: headOf(node, type ?? 'request', question) })
  return type === 'notification'
    ? notify(node, question, target)
    : ask(node, question, { target, onBehalfOf: by, as, signal: undefined, ...followed })
}

/** `call`: a capability of a named agent, or of any agent with it. */
export async function callCapability(
  node: MessagesApiDeps,
  params: Calls['message.call']['params'],
  { by, as, store, ...followed }: ApiCaller & { store(): ContextStore }
): Promise<Reply> {
  const { agent, justification, context } = params
  const sees = (one: RegisteredCard): boolean => node.visibility.toCaller(one, by)
  const head = headOf(node, 'request', {
    onBehalfOf: by,
    as,
    ...(justification === undefined ? {} : { justification })
  })
  const target =
    agent === null
      ? node.selector.pick({ ...head, capabilities: [params.capability], mayBeAway: params.wait === false, sees })
      : await agentFor(node, agent, { by, head })
  const card = node.directory.card(target)
  if (card !== undefined && sees(card) && card.capabilities.every((one) => one.id !== params.capability)) {
    const capabilities = card.capabilities.map((one) => one.id)
    const has = capabilities.length === 0 ? 'it has none' : `it has ${capabilities.join(', ')}`
    throw new NodeError(
      'CAPABILITY_NOT_FOUND',
      `${node.directory.shownAddress(target)} has no capability ${params.capability}; ${has}`,
      {
        data: { capabilities }
      }
    )
  }
  const turn =
    context === undefined ? null : await openTurn(node, { store: store(), context }, { target, input: params.input })
  const to = { target, onBehalfOf: by, as, signal: undefined, ...followed }
  return ask(node, turn === null ? params : { ...params, turn }, to)
}

/** `message.judge`: the verdicts of this node's rules on calls of an agent, without a message or a record. */
export async function judgeCalls(
  node: MessagesApiDeps,
  { agent, capabilities }: Calls['message.judge']['params'],
  { by, as }: Pick<ApiCaller, 'by' | 'as'>
): Promise<Calls['message.judge']['result']> {
  const recipient = await findAgent(node, agent, (card) => node.visibility.toCaller(card, by))
  const head = { ...headOf(node, 'request', { onBehalfOf: by, as }), recipient }
  const refused = capabilities.flatMap((capability) => {
    const verdict = node.outbound.verdict({ ...head, capability })
    if (verdict.allowed) return []
    const { code, reason, rule } = verdict
    const error = new NodeError(code, reason, { data: { rule } }).toBody()
    return [{ capability, error: stepsFor(error, node.directory.shownAddress(recipient)) }]
  })
  return { refused }
}

/** The agent that a caller names. An invisible agent counts as unknown; the audit log records the refusal. */
async function agentFor(
  node: MessagesApiDeps,
  text: string,
  { by, head }: { readonly by: CallerAuthority; readonly head: Omit<DraftHead, 'recipient'> }
): Promise<AgentAddress> {
  try {
    return await findAgent(node, text, (card) => node.visibility.toCaller(card, by))
  } catch (error) {
    const hidden = asNodeError(error).code === 'AGENT_NOT_FOUND' ? node.directory.exactAgent(text) : null
    if (hidden !== null && node.outbound.judge({ ...head, recipient: hidden }).allowed) return hidden
    throw error
  }
}

function headOf(
  node: MessagesApiDeps,
  type: 'request' | 'notification',
  { justification, onBehalfOf, as }: Pick<MessageQuery, 'justification' | 'onBehalfOf' | 'as'>
): Omit<DraftHead, 'recipient'> {
  return { sender: senderOf(node, as), type, onBehalfOf, ...(justification === undefined ? {} : { justification }) }
}

/** A task in the form for people. */
export function taskInfo(node: Pick<MessagesApiDeps, 'directory' | 'requests'>, task: Task): TaskInfo {
  const { id, kind, role, capability, state, waitingFor, attempt, result, error } = task
  const agent = kind === 'swarm' ? '*' : node.directory.shownAddress(task.agent)
  const createdAt = new Date(task.createdAt).toISOString()
  return {
    id,
    kind,
    role,
    agent,
    capability,
    state,
    waitingFor: waitingFor ?? (state === 'submitted' ? node.requests.holdup(id) : null),
    attempt,
    createdAt,
    updatedAt: new Date(task.updatedAt).toISOString(),
    result,
    error: error === null ? null : stepsFor(error, agent)
  }
}

/** A JSON object is the input itself; other text becomes `{"text": ...}`. */
function inputOf(text: string): unknown {
  const parsed = parseJson(text, SIZED_LIMITS)
  return parsed.ok && isRecord(parsed.value) ? parsed.value : { text }
}

function senderOf(node: MessagesApiDeps, as: string | undefined): AgentAddress {
  return { agentId: as ?? OPERATOR, nodeId: node.deps.membership.nodeId }
}

/** The caller of a message call, with the hooks of its progress. */
interface ApiCaller extends MessageHooks {
  /** The caller's rights; work in the operator's name has no more. */
  readonly by: CallerAuthority
  /** The agent of this node that calls; undefined: the caller acts for the operator. */
  readonly as?: string | undefined
  /** Names the caller in questions to it; absent: it is asked nothing. */
  readonly owner?: string
}

/** The content of a message. */
interface Matter {
  readonly capability: string | null
  readonly input: unknown
  readonly isBroadcast?: boolean
  readonly justification?: string
  readonly timeoutMs?: number
  readonly wait?: boolean
  readonly allowRepeat?: boolean
  readonly record?: boolean
  readonly wantsContent?: boolean
  readonly takes?: readonly QuestionKind[]
  readonly logLevel?: Severity
  /** The turn of a context that it is. */
  readonly turn?: ContextTurn
}

/** The caller of a message. */
interface Client {
  readonly onBehalfOf: CallerAuthority
  readonly as: string | undefined
  readonly signal: AbortSignalLike | undefined
}

type MessageQuery = Matter & Client

async function ask(
  node: MessagesApiDeps,
  question: Matter,
  to: Client & Pick<ApiCaller, 'client' | 'onAsked' | 'owner'> & { readonly target: AgentAddress }
): Promise<Reply> {
  const { target, signal, onAsked } = to
  const from = node.deps.clock.monotonic()
  const { wait: isWaiting = true, turn } = question
  const asking = askingOf(node, question, to)
  const { owner, client: hooks } = to
  // Nobody follows a call that does not wait.
  const questions =
    owner === undefined || !isWaiting
      ? null
      : new CallQuestions(node, { ...question, ...(hooks === undefined ? {} : { hooks }) }, { ...asking, owner })
  const asked = await node.requests
    .ask(questions === null ? asking : { ...asking, questions })
    .catch((error: unknown) => refusedAsking(node, target, error))
  onAsked?.(asked)
  const recorded = turn === undefined ? null : asked.answer.then((answer) => turn.answered(answer))
  const { requestId, correlationId, taskId } = asked
  const agent = node.directory.shownAddress(target)
  const ended = isWaiting ? await untilAnswered(asked, signal).finally(() => questions?.close()) : null
  // The next turn has this one in its history.
  if (isWaiting) await recorded
  const given = ended === null ? QUEUED : answered(node, target, ended)
  const context = turn === undefined ? {} : { contextId: turn.conversation.contextId }
  return { requestId, correlationId, agent, taskId, ...given, latencyMs: elapsed(node, from), ...context }
}

function askingOf(
  node: MessagesApiDeps,
  question: Matter,
  { target, onBehalfOf, as }: Pick<Client, 'onBehalfOf' | 'as'> & { readonly target: AgentAddress }
) {
  const { settings } = node.deps
  const { wait: isWaiting = true, turn, justification } = question
  return {
    sender: senderOf(node, as),
    target,
    capability: question.capability,
    input: question.input,
    description: '',
    onBehalfOf,
    isBroadcast: question.isBroadcast ?? false,
    timeoutMs: question.timeoutMs ?? (isWaiting ? settings.requestTimeoutMs : settings.defaultTtlMs),
    mayQueue: !isWaiting,
    allowRepeat: question.allowRepeat ?? false,
    mayGoUnrecorded: question.record === false,
    wantsContent: question.wantsContent ?? false,
    ...(justification === undefined ? {} : { justification }),
    ...(turn === undefined ? {} : { conversation: turn.conversation, names: turn.names })
  }
}

/** @throws NodeError the refusal of a request, with the agent's name in its next steps. */
function refusedAsking(node: MessagesApiDeps, target: AgentAddress, error: unknown): never {
  const known = asNodeError(error)
  const steps = stepsFor(known.toBody(), node.directory.shownAddress(target))
  const { code, message, data, next } =
    known.code === 'POLICY_DENIED' ? refusal(steps, node.directory.ref(node.self).name) : steps
  throw new NodeError(code, message, { data, next, cause: error })
}

function untilAnswered(asked: Asked, signal: AbortSignalLike | undefined): Promise<Answer> {
  if (signal === undefined) return asked.answer
  const cancel = (): void => asked.cancel()
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel)
  return asked.answer.finally(() => signal.removeEventListener('abort', cancel))
}

/** The outcome part of a reply. */
type ReplyOutcome = Pick<Reply, 'outcome' | 'payload' | 'error'>

/** The reply when nobody waits for the answer. */
const QUEUED: ReplyOutcome = { outcome: 'QUEUED', payload: null, error: null }

function answered(node: MessagesApiDeps, target: AgentAddress, answer: Answer): ReplyOutcome {
  if (answer.outcome === 'COMPLETED') return { outcome: 'COMPLETED', payload: answer.result, error: null }
  const error = answer.error.code === 'INVALID_OUTPUT' ? atFault(node, target, answer.error) : answer.error
  return { outcome: answer.outcome, payload: null, error: stepsFor(error, node.directory.shownAddress(target)) }
}

/** The error of an agent that breaks its own schema: its file here needs repair, or its card elsewhere a look. */
function atFault(node: MessagesApiDeps, target: AgentAddress, error: ErrorBody): ErrorBody {
  const source =
    target.nodeId === node.deps.membership.nodeId ? node.agents.definition(target.agentId)?.source : undefined
  const isFile = source !== undefined && source !== 'built-in'
  return { ...error, next: [isFile ? `a2a-node agents check ${shellWord(source)}` : 'a2a-node agents show <agent>'] }
}

function elapsed(node: MessagesApiDeps, from: number): number {
  return Math.round((node.deps.clock.monotonic() - from) * 100) / 100
}

function post(node: MessagesApiDeps, recipient: AgentAddress, question: MessageQuery): Promise<A2AEnvelope> {
  const { input, justification, onBehalfOf, as, isBroadcast = false } = question
  const draft = {
    sender: senderOf(node, as),
    recipient,
    type: 'notification',
    payload: { input },
    onBehalfOf,
    isBroadcast
  } as const
  return node.outbound.send(justification === undefined ? draft : { ...draft, justification })
}

async function notify(node: MessagesApiDeps, question: MessageQuery, target: AgentAddress): Promise<Reply> {
  const from = node.deps.clock.monotonic()
  const envelope = await post(node, target, question)
  return {
    requestId: envelope.id,
    correlationId: envelope.id,
    agent: node.directory.shownAddress(target),
    taskId: null,
    outcome: 'COMPLETED',
    payload: null,
    error: null,
    latencyMs: elapsed(node, from)
  }
}

/**
 * Sends to every registered agent except the operator here. The reply lists each target with its outcome. A refusal by
 * a rule for an agent that the caller does not see is only recorded. Work with side effects is left out unless it is
 * for all.
 */
async function broadcast(
  node: MessagesApiDeps,
  type: 'request' | 'notification',
  { isForAll, ...question }: MessageQuery & { readonly isForAll: boolean }
): Promise<Reply> {
  const from = node.deps.clock.monotonic()
  const cards = receiversOf(node, type, question)
  const name = node.directory.namer()
  const toAll = { type, question: { ...question, isBroadcast: true, isForAll } }
  const outcomes: Promise<MessageOutcome>[] = []
  for (const card of cards) {
    const outcome = toOne(node, card, toAll)
    outcomes.push(outcome)
    // Local delivery is quick, and a thousand half-sent messages would take much memory.
    if (type === 'notification' && card.origin === 'local') await outcome
  }
  const targets = (await Promise.all(outcomes)).map((outcome, place) => ({
    agent: name(cards[place]?.address ?? ''),
    ...outcome
  }))
  const error = broadcastError(targets)?.toBody() ?? null
  const isQueued = targets.some((one) => one.outcome === 'QUEUED')
  const outcome = error !== null ? 'FAILED' : isQueued ? 'QUEUED' : 'COMPLETED'
  const id = node.deps.ids.next('req')
  const latencyMs = elapsed(node, from)
  return {
    requestId: id,
    correlationId: id,
    agent: '*',
    taskId: null,
    outcome,
    payload: null,
    error,
    latencyMs,
    targets
  }
}

/** The cards of all agents that a broadcast reaches, or whose refusal it records. */
function receiversOf(
  node: MessagesApiDeps,
  type: 'request' | 'notification',
  question: MessageQuery
): readonly RegisteredCard[] {
  const { membership } = node.deps
  const head = headOf(node, type, question)
  const isFor = (card: RegisteredCard): boolean =>
    (card.id !== OPERATOR || card.nodeId !== membership.nodeId) &&
    (node.visibility.toCaller(card, question.onBehalfOf) ||
      node.outbound.judge({ ...head, isBroadcast: true, recipient: { agentId: card.id, nodeId: card.nodeId } }).allowed)
  return node.registry.listAll().filter(isFor)
}

/** Characters of an answer's JSON in one row of a broadcast. */
const ANSWER_SHOWN = 16_384

async function toOne(
  node: MessagesApiDeps,
  card: RegisteredCard,
  {
    type,
    question
  }: { readonly type: 'request' | 'notification'; readonly question: MessageQuery & { readonly isForAll: boolean } }
): Promise<MessageOutcome> {
  const target = { agentId: card.id, nodeId: card.nodeId }
  try {
    if (type === 'request' && defaultCapability(card) === null)
      return { outcome: 'SKIPPED', rule: 'it has no capability' }
    const bar = question.isForAll ? null : broadcastBar(card, type, null)
    if (bar !== null) return { outcome: 'SIDE_EFFECT', rule: barText(bar) }
    if (card.origin === 'remote' && !node.presence.isOnline(card.nodeId)) return { outcome: 'PEER_OFFLINE', rule: null }
    if (type === 'notification') {
      await post(node, target, question)
      // Delivery to another node is not confirmed.
      return { outcome: card.origin === 'local' ? 'DELIVERED' : 'SENT', rule: null }
    }
    const reply = await ask(node, question, { ...question, target })
    const { taskId, payload, error } = reply
    const preview = previewOf(payload, ANSWER_SHOWN)
    const rule = error === null ? null : refusingRule(error)
    const answer =
      error === null
        ? { payload: preview.endsWith('…') ? preview : payload }
        : { reason: shown(error.message), payload: null }
    return { outcome: error?.code ?? reply.outcome, rule, taskId, ...answer }
  } catch (error) {
    const known = asNodeError(error)
    return { outcome: known.code, rule: refusingRule(known), reason: shown(known.message) }
  }
}
