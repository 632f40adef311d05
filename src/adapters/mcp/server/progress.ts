import type { ProgressNotificationParams, ServerContext } from '@modelcontextprotocol/server'
import type { ToolContext } from './tool.js'

/**
 * Sends the progress of one call to its client. At most one report is under way and one waits; a newer one replaces it,
 * so a handler that reports faster than the client reads costs nothing. Does nothing when the client did not ask for
 * progress.
 */
export function progressTo({ mcpReq }: ServerContext): ToolContext['progress'] {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return () => {}
  let last = Number.NEGATIVE_INFINITY
  let waiting: ProgressNotificationParams | null = null
  let isSending = false
  const send = async (): Promise<void> => {
    isSending = true
    while (waiting !== null) {
      const params = waiting
      waiting = null
      // A connection that ended takes no more of it.
      await mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
    }
    isSending = false
  }
  return ({ progress, total, message }) => {
    // The protocol wants it to rise.
    if (mcpReq.signal.aborted || !Number.isFinite(progress) || progress <= last) return
    last = progress
    waiting = {
      progressToken,
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message })
    }
    if (!isSending) void send()
  }
}
