import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'
import type { Calls, Reply, WatchName } from '../ports/node-api.js'
import type { CommandContext } from './context.js'

/** A watch that follows one call. */
export type MessageCall = Extract<WatchName, 'message.send' | 'message.call'>

/**
 * Sends or calls, and says on stderr when a person at the other side has to allow it first.
 * @throws NodeError as the call does.
 */
export async function followCall<N extends MessageCall>(
  { output, api }: Pick<CommandContext, 'output' | 'api'>,
  { name, params, signal }: { readonly name: N; readonly params: Calls[N]['params']; readonly signal: AbortSignal }
): Promise<Reply> {
  for await (const event of api().watch<MessageCall>(name, params, { signal })) {
    if (event.type === 'reply') return event.reply
    if (event.type === 'failed') throw NodeError.fromBody(event.error)
    if (event.type === 'waiting' && event.waitingFor === 'approval') output.note(waitingText(event.agent))
  }
  throw new NodeError('NODE_NOT_RUNNING', 'the node stopped before there was an answer')
}

/** `waiting for approval of text on laptop`. */
function waitingText(agent: string): string {
  const at = agent.lastIndexOf('@')
  return `waiting for approval of ${shown(at < 0 ? agent : `${agent.slice(0, at)} on ${agent.slice(at + 1)}`)}`
}
