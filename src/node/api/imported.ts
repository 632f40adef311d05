import { NodeError } from '../../kit/errors.js'
import type { ImportedTools } from '../../ports/imported-tools.js'
import type { Calls } from '../../ports/node-api.js'

type Row<N extends 'tools.list' | 'tools.refresh', S extends string> = readonly [
  S,
  (params: Calls[N]['params']) => Calls[N]['result'] | Promise<Calls[N]['result']>
]

/** The calls of imported MCP servers. To accept a list of tools is to say what this node runs, as a change of its config is. */
export function toolCalls(tools: ImportedTools): {
  readonly 'tools.list': Row<'tools.list', 'read'>
  readonly 'tools.refresh': Row<'tools.refresh', 'admin'>
} {
  return {
    'tools.list': ['read', () => ({ servers: tools.list() })],
    'tools.refresh': [
      'admin',
      async ({ server = null, accept = null }) => {
        if (accept !== null && server === null)
          throw new NodeError('USAGE', 'tool lists are accepted one server at a time: name the server')
        return { servers: await tools.refresh(server, accept) }
      }
    ]
  }
}
