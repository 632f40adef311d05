import type { AbortSignalLike } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { CapabilityDescriptor } from '../../domain/card/card.js'
import { artifactOf, inputOf, questionOf } from '../../domain/gateway/content.js'
import type { Part } from '../../domain/gateway/message.js'
import type { OutputRules } from '../../ports/gateway.js'
import type { Asking } from '../requests/caller/request-codec.js'
import { endedBy } from '../../domain/task/outcome.js'
import { asClientError, askingOf, type TurnHead } from './turn-runner.js'
import type { NodeCore } from '../node.js'
import type { HereRun } from '../requests/callee/in-flight.js'

/** May a capability be asked again, since it changes nothing? */
export function onlyReads({ idempotent, sideEffect }: CapabilityDescriptor): boolean {
  return idempotent === true && (sideEffect === 'none' || sideEffect === 'read')
}

/** What is said to an agent that only reads, and while whose signal lasts its result is waited for. */
export interface Reading {
  readonly parts: readonly Part[]
  /** Of its request, and of the node's task of it. */
  readonly names: { readonly requestId: string; readonly taskId: string }
  readonly signal: AbortSignalLike | undefined
  /** What agents may not say to clients; null: they may say anything. */
  readonly rules: OutputRules | null
}

/** What a read came to. */
export interface Read {
  readonly result: unknown
  /** It came to what a message cannot say: a question, or artifacts beside its result. */
  readonly needsTask: boolean
}

/** The result of what only reads. @throws NodeError what it failed with; TIMEOUT after `tasks.requestTimeoutMs`; INVALID_OUTPUT for what may not be said */
export async function readNow(node: NodeCore, head: TurnHead, reading: Reading): Promise<Read> {
  const { names, signal } = reading
  let result: unknown
  try {
    result = node.deps.toAgentJson(await resultOf(node, head, reading))
  } catch (error) {
    // What it told before it failed is told with that.
    if (signal?.aborted !== true && hasArtifacts(node, names.taskId)) return { result: null, needsTask: true }
    obey(reading, messageOf(error))
    throw asClientError(error)
  }
  obey(reading, result)
  return { result, needsTask: questionOf(result) !== null || hasArtifacts(node, names.taskId) }
}

function obey({ rules }: Reading, stated: unknown): void {
  const broken = rules?.violation(stated) ?? null
  if (broken !== null) throw new NodeError('INVALID_OUTPUT', broken.words, { data: broken.details })
}

function hasArtifacts({ tasks }: Pick<NodeCore, 'tasks'>, taskId: string): boolean {
  // One that only began and came to its result has told nothing.
  if ((tasks.get(taskId)?.generation ?? 0) <= 2) return false
  return tasks.events(taskId).some((event) => event.type === 'progress' && artifactOf(event.data) !== null)
}

function resultOf(node: NodeCore, head: TurnHead, { parts, names, signal }: Reading): Promise<unknown> {
  const { target, capability, by, justification } = head
  const path = node.direct.path({ target, capability, by, justification })
  const run = path === null ? null : node.direct.begin(path, { input: inputOf(parts), names })
  return run === null ? requestResult(node, { ...askingOf(head, parts), names }, signal) : directResult(node, run, signal)
}

async function requestResult(
  node: NodeCore,
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

async function directResult({ deps: { clock, settings } }: NodeCore, run: HereRun, signal: AbortSignalLike | undefined): Promise<unknown> {
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

async function untilAborted<T>(result: Promise<T>, signal: AbortSignalLike | undefined, cancel: () => void): Promise<T> {
  if (signal === undefined) return await result
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  try {
    return await result
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
