import type { AbortSignalLike } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import type { Calls, NodeApi, Reply } from '../../../ports/node-api.js'
import type { MessageEvent } from '../../../ports/policy-api.js'
import type { ToolContext } from '../server/tool.js'

/** What a call of an agent needs. */
export interface MeshCallDeps {
  readonly api: NodeApi
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
}

/** Who is told how far a call is, and what ends it. */
export interface CallContext extends Pick<ToolContext, 'progress'> {
  readonly abortSignal: AbortSignalLike
}

/** What is told while somebody or something is waited for. */
const WAITING = {
  approval: 'waiting for approval: a person of its node decides',
  slot: 'waiting for a free slot at the agent',
  peer: 'waiting for its node to be reached',
  ack: 'waiting for its node to confirm it'
} as const

/** What is told without a number of the agent counts so much: it leaves room for the agent's own, whatever they count. */
const SMALL_STEP = 1 / 1024
/** Beyond it a small step would be lost in the number: such an agent's own numbers are not told. */
const LARGEST = 2 ** 40

/**
 * Asks an agent for a capability, as the caller whom the API is for. What holds the call up, and what the agent reports, is told as progress.
 * @returns the result of the agent, as JSON
 * @throws NodeError what the call was refused or failed with; TIMEOUT with the task's id when nobody knows its outcome yet
 */
export async function callAgent(deps: MeshCallDeps, params: Calls['message.call']['params'], context: CallContext): Promise<unknown> {
  // Its client waits for it: what changes nothing need not outlive it.
  const call = { ...params, record: false }
  return resultOf(await follow(deps.api.watch('message.call', call, { signal: context.abortSignal }), context), deps)
}

/** The same for a text to an agent's default capability, or to everybody (`*`), whose targets are in the result. */
export async function sendToAgent(deps: MeshCallDeps, params: Calls['message.send']['params'], context: CallContext): Promise<unknown> {
  return resultOf(await follow(deps.api.watch('message.send', params, { signal: context.abortSignal }), context), deps)
}

async function follow(events: AsyncIterable<MessageEvent<Reply>>, { abortSignal, progress }: CallContext): Promise<Reply> {
  const rising = new Rising()
  for await (const event of events) {
    if (event.type === 'reply') return event.reply
    if (event.type === 'failed') throw NodeError.fromBody(event.error)
    if (event.type === 'waiting') {
      const { waitingFor, agent, taskId } = event
      const message = `${waitingFor === null ? 'under way' : WAITING[waitingFor]} (${agent}, task ${taskId})`
      progress({ progress: rising.next(null), message })
    } else if (event.type === 'progress') {
      const { total, message } = event
      progress({
        progress: rising.next(event.progress),
        ...(total === null ? {} : { total }),
        ...(message === null ? {} : { message })
      })
    }
  }
  throw new NodeError(abortSignal.aborted ? 'CANCELED' : 'INTERNAL', 'the call ended without an answer')
}

/** Numbers of progress: those of the agent where they rise, as the protocol wants it, and else a little more than the last one. */
class Rising {
  #last = 0

  next(wanted: number | null): number {
    this.#last = wanted !== null && wanted > this.#last && wanted < LARGEST ? wanted : this.#last + SMALL_STEP
    return this.#last
  }
}

function resultOf(reply: Reply, { toJson }: MeshCallDeps): unknown {
  const { agent, outcome, taskId, error, payload } = reply
  if (reply.targets !== undefined) return toJson({ outcome, targets: reply.targets })
  if (outcome === 'COMPLETED') return toJson(payload)
  if (outcome === 'QUEUED')
    return { outcome, agent, taskId, next: taskId === null ? null : `a2a_task with this id tells what becomes of it` }
  if (error !== null && outcome === 'FAILED') throw NodeError.fromBody(error)
  const why = error === null ? '' : `: ${error.message}`
  throw new NodeError('TIMEOUT', `nobody knows yet whether ${agent} did it${why}; a2a_task tells it later`, {
    data: { taskId, agent },
    // Of what may not be repeated its task says so.
    retryable: error?.retryable ?? false
  })
}
