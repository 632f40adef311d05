import { NO_CLIENT } from '../../src/adapters/mcp/tools/client-ask.js'
import type { ToolContext } from '../../src/adapters/mcp/server/tool.js'

/** The context of a call of a tool, and what was told on the way. */
export interface RecordedContext extends ToolContext {
  readonly told: string[]
  readonly abort: AbortController
}

/** A context that keeps what is told of the progress. */
export function toolContext(): RecordedContext {
  const told: string[] = []
  const abort = new AbortController()
  return {
    runId: 'run',
    correlationId: 'correlation',
    log: () => {},
    client: NO_CLIENT,
    lines: null,
    abortSignal: abort.signal,
    progress: ({ message = '' }) => told.push(message),
    told,
    abort
  }
}
