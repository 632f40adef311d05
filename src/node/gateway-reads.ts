import type { AbortSignalLike } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { Part } from '../domain/gateway/message.js'
import type { OutputRules } from '../ports/gateway.js'
import { failedBy } from './endings.js'
import { asClientError, askingOf, type TurnHead } from './gateway-runs.js'
import type { NodeCore } from './node.js'
import type { HereRun } from './in-flight.js'

/** What is said to an agent that only reads, and while whose signal lasts its result is waited for. */
export interface Reading {
  readonly parts: readonly Part[]
  readonly signal?: AbortSignalLike
  /** What agents may not say to clients; null: they may say anything. */
  readonly rules: OutputRules | null
}

/** The result of what only reads. @throws NodeError what it failed with; TIMEOUT after `tasks.requestTimeoutMs`; INVALID_OUTPUT for what may not be said */
export async function readNow(node: NodeCore, head: TurnHead, reading: Reading): Promise<unknown> {
  const result = await resultOf(node, head, reading).catch((error: unknown) => {
    obey(reading, messageOf(error))
    throw asClientError(error)
  })
  obey(reading, result)
  return result
}

function obey({ rules }: Reading, said: unknown): void {
  const broken = rules?.violation(said) ?? null
  if (broken !== null) throw new NodeError('INVALID_OUTPUT', broken.words, { data: broken.details })
}

async function resultOf(node: NodeCore, head: TurnHead, { parts, signal }: Reading): Promise<unknown> {
  const asking = askingOf(head, parts)
  const { ids } = node.parts
  const names = { requestId: ids.next('req'), taskId: ids.next('task') }
  const run = node.direct.begin({ ...head, input: asking.input, names })
  if (run !== null) return await directResult(node, run, signal)
  const asked = await node.requests.ask({
    ...asking,
    names,
    timeoutMs: node.parts.settings.requestTimeoutMs,
    mayQueue: false,
    mayGoUnrecorded: true
  })
  const answer = await untilAborted(asked.answer, signal, () => asked.cancel())
  if (answer.outcome !== 'COMPLETED') throw NodeError.fromBody(answer.error)
  return answer.result
}

async function directResult({ parts: { clock, settings } }: NodeCore, run: HereRun, signal: AbortSignalLike | undefined): Promise<unknown> {
  let isLate = false
  const timer = clock.after(settings.requestTimeoutMs, () => {
    isLate = true
    run.cancel()
  })
  const outcome = await untilAborted(run.outcome, signal, () => run.cancel())
  clock.clear(timer)
  if (outcome.ok) return outcome.result
  if (isLate) throw new NodeError('TIMEOUT', 'no answer in time; the work was stopped')
  throw NodeError.fromBody(failedBy(outcome).error)
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
