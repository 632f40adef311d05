import { LOG_LEVEL_META_KEY, type LoggingLevel, type Server, type ServerContext } from '@modelcontextprotocol/server'
import { LOG_LEVELS } from '../server/json-rpc.js'
import type { ToolLog } from '../server/tool.js'
import type { ClientTell } from '../server/tool-pipeline.js'

/** Lines of one call on their way to its client at once; further ones go to the log of the node alone. */
const MAX_PENDING = 64

/** Characters of a line for a client. */
const MAX_LINE = 4096

const LEVEL_OF: Readonly<Record<Parameters<ToolLog>[0], LoggingLevel>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warning',
  error: 'error'
}

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

  /** Sends the lines of one call; undefined when the client did not ask for them. */
  of({ mcpReq }: ServerContext): ClientTell | undefined {
    const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope
    const named = this.#era === 'modern' ? envelope?.[LOG_LEVEL_META_KEY] : this.#level
    if (named === undefined) return undefined
    const least = LOG_LEVELS.indexOf(named as LoggingLevel)
    if (least === -1) return undefined
    let pending = 0
    return (given, message) => {
      const level = LEVEL_OF[given]
      if (LOG_LEVELS.indexOf(level) < least || pending >= MAX_PENDING || mcpReq.signal.aborted) return
      pending++
      const data = message.slice(0, MAX_LINE)
      // A connection that ended takes no more of it.
      const sent = mcpReq.notify({ method: 'notifications/message', params: { level, data } }).catch(() => {})
      void sent.then(() => pending--)
    }
  }
}
