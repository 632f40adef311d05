import { LOG_LEVEL_META_KEY, type LoggingLevel, type Server, type ServerContext } from '@modelcontextprotocol/server'
import { isWanted, LOG_LEVELS } from '../../../domain/task/question.js'
import type { ClientLines } from '../server/tool.js'

/** Lines of one call on their way to its client at once; further ones go to the log of the node alone. */
const MAX_PENDING = 64

/** Characters of a line for a client. */
const MAX_LINE = 4096

/**
 * Sends clients the log lines of tools, if they asked for them: by `logging/setLevel`, or with the request itself since
 * MCP 2026-07-28. Fields of lines stay in the node's log, which knows what to hide of them.
 */
export class ClientLog {
  readonly #era: 'legacy' | 'modern'
  #level: LoggingLevel | undefined

  /**
   * The server must have the capability; its own handler of `logging/setLevel` would send lines to clients that never
   * asked.
   */
  constructor(server: Server, era: 'legacy' | 'modern') {
    this.#era = era
    if (era === 'modern') return
    server.setRequestHandler('logging/setLevel', ({ params }) => {
      this.#level = params.level
      return {}
    })
  }

  /** Takes the lines of one call for the client; null when it did not ask for them. */
  of({ mcpReq }: ServerContext): ClientLines | null {
    const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope
    const named = this.#era === 'modern' ? envelope?.[LOG_LEVEL_META_KEY] : this.#level
    const least = LOG_LEVELS.find((level) => level === named)
    if (least === undefined) return null
    let pending = 0
    return {
      least,
      send: ({ level, data, logger }) => {
        if (!isWanted(level, least) || pending >= MAX_PENDING || mcpReq.signal.aborted) return
        pending++
        const params = { level, data: cut(data), ...(logger === undefined ? {} : { logger }) }
        // A connection that ended takes no more of it.
        const sent = mcpReq.notify({ method: 'notifications/message', params }).catch(() => {})
        void sent.then(() => pending--)
      }
    }
  }
}

function cut(data: unknown): unknown {
  return typeof data === 'string' ? data.slice(0, MAX_LINE) : data
}
