import { changesNothing } from '../../domain/policy/requested-work.js'
import type { Clock, AbortSignalLike } from '../../kit/clock.js'
import { asNodeError, NodeError, messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { type AgentAddress, OPERATOR, type CapabilityDescriptor } from '../../domain/card/card.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { RoutingQuestion } from '../../domain/routing/decide.js'
import { type CallerAuthority, confinement } from '../../domain/routing/effective.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { InProcessAgents } from '../agents/in-process-agents.js'
import { isIdempotent } from '../requests/callee/record.js'
import type { Directory } from '../cards/directory.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import type { AccessControl } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'
import type { HereRun } from '../requests/callee/in-flight.js'
import type { Executor } from '../requests/callee/executor.js'
import { answerIn, artifactOf, inputOf, statedBy } from '../../domain/gateway/content.js'
import type { Conversation } from '../../domain/gateway/conversation.js'
import type { OutputRules } from '../../ports/gateway.js'
import type { Asking } from '../requests/caller/request-codec.js'
import { endedBy } from '../../domain/task/outcome.js'
import { statedEnd } from '../../domain/task/stated.js'
import { asClientError, askingOf, type TurnHead } from './turn-runner.js'
import type { NodeDeps } from '../dependencies.js'
import type { Requests } from '../requests/caller/requests.js'
import type { TaskTable } from '../tasks/task-table.js'

/** Dependencies of {@link DirectAnswers}. */
export interface DirectAnswersDeps {
  readonly self: NodeId
  readonly clock: Clock
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly traffic: Traffic
  readonly subscriptions: Pick<Subscriptions, 'isListening'>
  readonly inProcess: Pick<InProcessAgents, 'isInPerson'>
  readonly agents: Pick<AgentHost, 'load'>
  readonly executor: Pick<Executor, 'here'>
}

/** The agent and capability of a question, and the caller's rights. */
export interface DirectQuestion {
  readonly target: AgentAddress
  readonly capability: string
  readonly by: CallerAuthority
  readonly justification?: string | undefined
}

/** The input of an agent, and the ids of its work. */
export interface DirectWork {
  readonly input: unknown
  readonly conversation?: Conversation
  readonly names: { readonly requestId: string; readonly taskId: string }
}

/** Permission to begin work directly; valid in the turn in which it was found. */
export interface DirectPath {
  readonly target: AgentAddress
  readonly capability: string
  readonly question: RoutingQuestion
  /** The rule that allows it. */
  readonly rule: string
  /** Monotonic milliseconds: when it was requested, and when the rules had decided. */
  readonly since: number
  readonly at: number
}

/**
 * Work of a local agent for a caller in this process. Rules, checks, queue places, counts and the audit record are as
 * for a request, but no message is written, stored and answered. Only for repeatable work, while its agent has a free
 * place and nobody must approve it. Everything else goes as a request.
 */
export class DirectAnswers {
  readonly #deps: DirectAnswersDeps

  constructor(deps: DirectAnswersDeps) {
    this.#deps = deps
  }

  /** The path by which work may begin directly now. null: it must go as a request, which reports the reason. */
  path(asking: DirectQuestion): DirectPath | null {
    const { clock, accessControl } = this.#deps
    const since = clock.monotonic()
    const question = this.#question(asking)
    const rule = question === null ? null : accessControl.allows(question)
    if (question === null || rule === null) return null
    const { target, capability } = asking
    return { target, capability, question, rule, since, at: clock.monotonic() }
  }

  /** Begins the work. null: it must go as a request after all, for example because of its input. */
  begin(
    { target, capability, question, rule, since, at }: DirectPath,
    { input, conversation, names }: DirectWork
  ): HereRun | null {
    const { accessControl, traffic, executor } = this.#deps
    const run = executor.here({
      recipient: target,
      capability,
      input,
      justification: question.justification ?? undefined,
      conversation,
      names
    })
    if (run instanceof NodeError) return null
    const { sender, target: party, type } = question
    const header = { id: names.requestId, sender: sender.address, recipient: party.address, type }
    const passage = { peer: null, header, from: sender.tier, to: party.tier, rule, since, at }
    accessControl.passed(at - since)
    traffic.received(header, since)
    traffic.delivered(passage)
    traffic.sent(passage, 'local')
    return run
  }

  /** The question to the rules; null for work that always goes as a request. */
  #question({ target, capability, by, justification }: DirectQuestion): RoutingQuestion | null {
    const { self, directory, subscriptions, inProcess, agents } = this.#deps
    if (target.nodeId !== self || inProcess.isInPerson(target.agentId) || subscriptions.isListening(target.agentId))
      return null
    const { running, waiting, slots } = agents.load(target.agentId)
    if (running + waiting >= slots || !isIdempotent(directory, target, capability)) return null
    const operator = { agentId: OPERATOR, nodeId: self }
    const [sender, certified, party] = [
      directory.party(operator, by),
      directory.party(operator),
      directory.party(target)
    ]
    if (sender === null || certified === null || party === null) return null
    const asked = askedWork(directory.card(target), capability)
    const question: RoutingQuestion = {
      sender,
      certified,
      target: party,
      type: 'request',
      capability: asked.capability,
      sideEffect: asked.sideEffect,
      justification: justification ?? null,
      isReply: false,
      isArriving: true
    }
    return by.capabilities === undefined ? question : { ...question, ...confinement(by) }
  }
}

/** True for a capability that may be repeated, since it changes nothing. */
export function onlyReads({ idempotent, sideEffect }: CapabilityDescriptor): boolean {
  return idempotent === true && changesNothing(sideEffect)
}

/** Dependencies of {@link readNow}. */
export interface DirectReadDeps {
  readonly deps: Pick<NodeDeps, 'clock' | 'settings' | 'toAgentJson'>
  readonly direct: Pick<DirectAnswers, 'path' | 'begin'>
  readonly requests: Pick<Requests, 'ask'>
  readonly tasks: Pick<TaskTable, 'get' | 'events'>
}

/** The conversation with an agent that only reads, and the signal that ends the wait for its result. */
interface DirectReading {
  readonly conversation: Conversation
  /** The ids of its request, and of the node's task for it. */
  readonly names: { readonly requestId: string; readonly taskId: string }
  readonly signal: AbortSignalLike | undefined
  /** The rules for the output of agents; null for none. */
  readonly rules: OutputRules | null
}

/** The outcome of a read. */
interface DirectRead {
  readonly result: unknown
  /** True for an outcome that no message can hold: a question, a stated end, or artifacts beside the result. */
  readonly needsTask: boolean
}

/**
 * The result of a read-only capability.
 * @throws NodeError its failure; TIMEOUT after `tasks.requestTimeoutMs`; INVALID_OUTPUT for forbidden output
 */
export async function readNow(node: DirectReadDeps, head: TurnHead, reading: DirectReading): Promise<DirectRead> {
  const { names, signal } = reading
  let result: unknown
  try {
    result = node.deps.toAgentJson(await resultOf(node, head, reading))
  } catch (error) {
    // Artifacts sent before the failure are reported with it. A task that its agent rejected is rejected, not a failed
    // call.
    if (signal?.aborted !== true && (statedEnd(asNodeError(error)) !== null || hasArtifacts(node, names.taskId)))
      return { result: null, needsTask: true }
    obey(reading, messageOf(error))
    throw asClientError(error)
  }
  obey(reading, result)
  const isMore = statedBy(result) !== null || (answerIn(result)?.artifacts.length ?? 0) > 0
  return { result, needsTask: isMore || hasArtifacts(node, names.taskId) }
}

function obey({ rules }: DirectReading, stated: unknown): void {
  const broken = rules?.violation(stated) ?? null
  if (broken !== null) throw new NodeError('INVALID_OUTPUT', broken.words, { data: broken.details })
}

function hasArtifacts({ tasks }: Pick<DirectReadDeps, 'tasks'>, taskId: string): boolean {
  // A run that only began and ended has sent no artifact.
  if ((tasks.get(taskId)?.generation ?? 0) <= 2) return false
  return tasks.events(taskId).some((event) => event.type === 'progress' && artifactOf(event.data) !== null)
}

function resultOf(
  node: DirectReadDeps,
  head: TurnHead,
  { conversation, names, signal }: DirectReading
): Promise<unknown> {
  const { target, capability, by, justification } = head
  const path = node.direct.path({ target, capability, by, justification })
  const run =
    path === null ? null : node.direct.begin(path, { input: inputOf(conversation.message.parts), conversation, names })
  return run === null
    ? requestResult(node, { ...askingOf(head, conversation), names }, signal)
    : directResult(node, run, signal)
}

async function requestResult(
  node: DirectReadDeps,
  asking: ReturnType<typeof askingOf> & Pick<Asking, 'names'>,
  signal: AbortSignalLike | undefined
): Promise<unknown> {
  const asked = await node.requests.ask({
    ...asking,
    timeoutMs: node.deps.settings.requestTimeoutMs,
    mayQueue: false,
    mayGoUnrecorded: true
  })
  const answer = await untilAborted(asked.answer, signal, () => asked.cancel())
  if (answer.outcome !== 'COMPLETED') throw NodeError.fromBody(answer.error)
  return answer.result
}

async function directResult(
  { deps: { clock, settings } }: DirectReadDeps,
  run: HereRun,
  signal: AbortSignalLike | undefined
): Promise<unknown> {
  let isLate = false
  const timer = clock.after(settings.requestTimeoutMs, () => {
    isLate = true
    run.cancel()
  })
  signal?.addEventListener('abort', run.cancel)
  if (signal?.aborted === true) run.cancel()
  const outcome = await run.outcome
  signal?.removeEventListener('abort', run.cancel)
  clock.clear(timer)
  if (outcome.ok) return outcome.result
  if (isLate) throw new NodeError('TIMEOUT', 'no answer in time; the work was stopped')
  throw NodeError.fromBody(endedBy(outcome, true).error)
}

async function untilAborted<T>(
  result: Promise<T>,
  signal: AbortSignalLike | undefined,
  cancel: () => void
): Promise<T> {
  if (signal === undefined) return await result
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  try {
    return await result
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
