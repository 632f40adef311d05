import { CALLER_OPTIONS } from './caller-options.js'
import { NETWORK_OPTIONS } from '../network-options.js'
import type { CommandRow } from '../terminal/table.js'

/** Commands of MCP, the Model Context Protocol. */
export const MCP_COMMANDS: readonly CommandRow[] = [
  {
    name: 'mcp',
    about: 'the mesh as an MCP server, for coding agents',
    group: 'Agents',
    sub: [
      {
        name: 'serve',
        about: 'speak MCP on standard input and output, for the running node of this home',
        options: [
          {
            flags: '--no-start',
            about: 'start no node when none runs; otherwise one runs for as long as clients stay'
          },
          { flags: '--embed', about: 'start a node also where mcp.startNode of the config is off' },
          {
            flags: '--as <name>',
            about: 'a caller of this name that reads and sends (default without the next four: the operator)'
          },
          ...CALLER_OPTIONS,
          ...NETWORK_OPTIONS
        ],
        more: [
          'A coding agent runs this command itself. Nothing but the protocol goes to standard output; errors go to stderr.',
          'It lives as long as its client: while the node is away, lists are those of the last time, and calls wait or fail with a',
          'retryable error. Network options are for a node that it starts.'
        ],
        load: async () => (await import('../commands/mcp/mcp.js')).serveMcp
      },
      {
        name: 'import',
        offline: true,
        args: '<mcp.json>',
        about: 'add the MCP servers of Claude, Cursor, VS Code, Gemini CLI or Codex to the config of this node',
        options: [{ flags: '--dry-run', about: 'say what would be added, and write nothing' }],
        more: [
          'JSON with mcpServers, servers or mcp.servers; TOML (.toml) with mcp_servers. An entry of the config is never changed.',
          'The old config is kept beside the new one. ${input:id} becomes a variable of the node: ${ID}.',
          '',
          'Example: a2a-node mcp import ~/.cursor/mcp.json --dry-run'
        ],
        load: async () => (await import('../commands/mcp/import.js')).importServers
      }
    ]
  }
]
