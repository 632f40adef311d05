import type { Action } from '../../context.js'
import { callerIn } from '../../mcp/quick.js'
import { serveClient } from '../../mcp/serve.js'
import { durationOption, isForgotten } from '../../options.js'

/**
 * `mcp serve`: standard input and output become an MCP connection to the node of this home, also over its restarts.
 * Ends when its client ends its input (exit 0).
 */
export const serveMcp: Action = async (context, _args, options) => {
  const limitMs = durationOption(options, 'timeout')
  const start = async (): Promise<void> =>
    await (await import('../../mcp/start-for-clients.js')).startForClients(context, options)
  return await serveClient({
    paths: context.paths(),
    home: context.home,
    terms: callerIn(options),
    note: (line) => context.output.note(line),
    ...(limitMs === undefined ? {} : { limitMs }),
    ...(isForgotten(options, 'start') ? {} : { start })
  })
}
