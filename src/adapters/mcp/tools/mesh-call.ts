import type { CallToolResult } from '@modelcontextprotocol/server'
import { failedContent, isToolContent } from '../../../domain/task/tool-content.js'
import { NodeError } from '../../../kit/errors.js'
import type { CallAbilities, Calls, NodeApi, Reply } from '../../../ports/node-api.js'
import type { MessageEvent } from '../../../ports/policy-api.js'
import type { ToolContext } from '../server/tool.js'
import type { CallContext, RunAsking } from './asking-calls.js'
import { mcpContent } from './mcp-content.js'

/** Dependencies of {@link callAgent}. */
export interface MeshCallDeps {
  readonly api: NodeApi
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
  /** Called with the content of each result in the form of MCP, and the agent as it was named. */
  readonly onContent?: (agent: string, content: readonly unknown[]) => void
}

/** The same for tools whose client may be asked. */
export interface ToolCallDeps extends MeshCallDeps {
  /** Absent: the owner of the node answers questions. */
  readonly asking?: RunAsking
}

/** Beginning of the progress message of a call that a person must allow. */
export const APPROVAL_WAIT = 'waiting for approval: a person of its node decides'

/** Progress messages while a call waits. */
const WAITING = {
  approval: APPROVAL_WAIT,
  slot: 'waiting for a free slot at the agent',
  peer: 'waiting for its node to be reached',
  ack: 'waiting for its node to confirm it'
} as const

/** Progress of a report without a number of the agent: small, to leave room for the agent's own numbers. */
const SMALL_STEP = 1 / 1024
/** Above it a small step would be lost in the number: larger numbers of an agent are not passed on. */
const LARGEST = 2 ** 40

/**
 * Asks an agent for a capability, as the caller of the API. Delays of the call and reports of the agent become
 * progress.
 * @returns the result of the agent, as JSON
 * @throws NodeError of the refused or failed call; TIMEOUT with the task's id when its outcome is not known yet
 */
export async function callAgent(
  deps: MeshCallDeps,
  params: Calls['message.call']['params'],
  context: CallContext
): Promise<unknown> {
  // Its client waits for it: a call that changes nothing need not outlive the client.
  const call = { ...params, ...abilitiesOf(context), record: false }
  return resultOf(await follow(deps.api.watch('message.call', call, { signal: context.abortSignal }), context), deps)
}

/**
 * The same for an MCP client: content of MCP stays so, with the error of the tool where its result is one.
 * @throws NodeError of the refused or failed call whose agent gave no content; TIMEOUT
 */
export async function callForContent(
  deps: MeshCallDeps,
  params: Calls['message.call']['params'],
  context: CallContext
): Promise<unknown> {
  try {
    const result = await callAgent(deps, { ...params, wantsContent: true }, context)
    if (!isToolContent(result)) return result
    if (params.agent !== null) deps.onContent?.(params.agent, result.content)
    return mcpContent(result as CallToolResult)
  } catch (error) {
    const content = error instanceof NodeError ? failedContent(error.data) : null
    if (content === null) throw error
    return mcpContent(content as CallToolResult, error as NodeError)
  }
}

/** The same for a tool of an MCP client, which may be asked. @throws NodeError as {@link callForContent} */
export async function callAgentAsTool(
  deps: ToolCallDeps,
  params: Calls['message.call']['params'],
  context: ToolContext
): Promise<unknown> {
  return await withClient(deps, context, (followed) => callForContent(deps, params, followed))
}

/** The same for a text to an agent's default capability, or to everybody (`*`), whose targets are in the result. */
export async function sendAsTool(
  deps: ToolCallDeps,
  params: Calls['message.send']['params'],
  context: ToolContext
): Promise<unknown> {
  return await withClient(deps, context, (followed) => sendToAgent(deps, params, followed))
}

/** Sends a text to an agent, and resolves with its result as JSON. @throws NodeError as {@link callAgent} */
export async function sendToAgent(
  deps: MeshCallDeps,
  params: Calls['message.send']['params'],
  context: CallContext
): Promise<unknown> {
  const call = { ...params, ...abilitiesOf(context) }
  return resultOf(await follow(deps.api.watch('message.send', call, { signal: context.abortSignal }), context), deps)
}

async function withClient(
  { api, asking }: ToolCallDeps,
  context: ToolContext,
  start: (followed: CallContext) => Promise<unknown>
): Promise<unknown> {
  return await (asking === undefined ? start(context) : asking(api, context, start))
}

function abilitiesOf({ takes, logLevel }: CallContext): CallAbilities {
  return { ...(takes === undefined ? {} : { takes }), ...(logLevel === undefined ? {} : { logLevel }) }
}

async function follow(events: AsyncIterable<MessageEvent<Reply>>, context: CallContext): Promise<Reply> {
  const { abortSignal, progress } = context
  const rising = new Rising()
  for await (const event of events) {
    if (event.type === 'reply') return event.reply
    if (event.type === 'failed') throw NodeError.fromBody(event.error)
    if (event.type === 'waiting') {
      const { waitingFor, agent, taskId } = event
      const message = `${waitingFor === null ? 'under way' : WAITING[waitingFor]} (${agent}, task ${taskId})`
      progress({ progress: rising.next(null), message })
    } else if (event.type === 'question') context.onQuestion?.(event.question)
    else if (event.type === 'log') context.onLog?.(event.line)
    else if (event.type === 'asks-owner') {
      const message = `${event.agent} asks: the owner of this node answers by a2a-node approvals allow ${event.id}`
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

/** Numbers of progress: the agent's while they rise, as the protocol requires, else a little more than the last one. */
class Rising {
  #last: number | null = null

  next(wanted: number | null): number {
    const isRising = wanted !== null && wanted >= 0 && (this.#last === null || wanted > this.#last)
    this.#last = isRising && wanted < LARGEST ? wanted : (this.#last ?? 0) + SMALL_STEP
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
    // The error of the task says whether it may be repeated.
    retryable: error?.retryable ?? false
  })
}
