import { setTimeout as pause } from 'node:timers/promises'
import type { ProgressNotificationParams, ServerContext } from '@modelcontextprotocol/server'
import type { ToolContext } from './tool.js'

/** Milliseconds between the last report and the answer: SDK clients drop a report that they read together with it. */
const BEFORE_ANSWER_MS = 20

/** Reports that wait for the client to read. */
const MAX_WAITING = 4

/** The progress of one call on its way to its client. */
export interface ClientProgress {
  readonly report: ToolContext['progress']
  /** Resolves when the answer may follow the newest report. null: now. */
  beforeAnswer(): Promise<void> | null
}

const NONE: ClientProgress = { report: () => {}, beforeAnswer: () => null }

/**
 * Sends the progress of one call to its client. At most one report is under way and {@link MAX_WAITING} wait; a newer
 * one replaces the last of them, so a handler that reports faster than the client reads costs nothing. Does nothing
 * when the client did not ask for progress.
 */
export function progressTo({ mcpReq }: ServerContext): ClientProgress {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return NONE
  let last = Number.NEGATIVE_INFINITY
  const waiting: ProgressNotificationParams[] = []
  let sending: Promise<void> | null = null
  let sentAt = Number.NEGATIVE_INFINITY
  const send = async (): Promise<void> => {
    for (let params = waiting.shift(); params !== undefined; params = waiting.shift()) {
      // A connection that ended takes no more of it.
      await mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
      sentAt = performance.now()
    }
    sending = null
  }
  return {
    report: ({ progress, total, message }) => {
      // The protocol wants it to rise.
      if (mcpReq.signal.aborted || !Number.isFinite(progress) || progress <= last) return
      last = progress
      if (waiting.length >= MAX_WAITING) waiting.pop()
      waiting.push({
        progressToken,
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message })
      })
      sending ??= send()
    },
    beforeAnswer: () => {
      if (mcpReq.signal.aborted || (sending === null && performance.now() - sentAt >= BEFORE_ANSWER_MS)) return null
      return Promise.resolve(sending).then(() => pause(BEFORE_ANSWER_MS))
    }
  }
}
