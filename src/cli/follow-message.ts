import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'
import type { Calls, Reply, WatchName } from '../ports/node-api.js'
import type { CommandContext } from './context.js'
import { MessageProgress, type ProgressLevel } from './terminal/message-progress.js'

/** A watch that follows one call. */
export type MessageCall = Extract<WatchName, 'message.send' | 'message.call'>

/** A call to follow, and how much of it is shown. */
export interface FollowedCall<N extends MessageCall> {
  readonly name: N
  readonly params: Calls[N]['params']
  readonly signal: AbortSignal
  readonly level: ProgressLevel
  /** Called with the task of the call, once it is known. */
  onTask?(taskId: string): void
}

/**
 * Sends or calls, and shows on stderr what happens until the reply.
 * @throws NodeError as the call does.
 */
export async function followCall<N extends MessageCall>(
  { output, api }: Pick<CommandContext, 'output' | 'api'>,
  { name, params, signal, level, onTask }: FollowedCall<N>
): Promise<Reply> {
  const progress = new MessageProgress(output, level)
  try {
    for await (const event of api().watch<MessageCall>(name, params, { signal })) {
      if (event.type === 'reply') return event.reply
      if (event.type === 'failed') throw NodeError.fromBody(event.error)
      if (event.type === 'asks-owner')
        output.note(`${shown(event.agent)} asks: ${output.hint(`a2a-node approvals show ${shown(event.id)}`)}`)
      // A newer node may report more.
      if (event.type !== 'waiting' && event.type !== 'progress') continue
      onTask?.(event.taskId)
      progress.take(event)
    }
  } finally {
    progress.close()
  }
  throw new NodeError('NODE_NOT_RUNNING', 'the node stopped before there was an answer')
}
