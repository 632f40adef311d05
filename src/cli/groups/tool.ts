import type { CommandRow } from '../terminal/table.js'

/** The commands below `tools`. */
export const TOOL_COMMANDS: readonly CommandRow[] = [
  {
    name: 'ls',
    about: 'every tool with its server and agent, and the lists that wait for acceptance',
    load: async () => (await import('../commands/mcp/tools.js')).listTools
  },
  {
    name: 'call',
    args: '<server> <tool> <json>',
    about: 'run one tool of a server of this node (- reads the input from stdin)',
    options: [{ flags: '--timeout <duration>', about: 'how long to wait (default: 30s)' }],
    more: ['It goes to the agent of the server like any call, so policy applies.', '', "Example: a2a-node tools call time now '{}'"],
    load: async () => (await import('../commands/mcp/tools.js')).callTool
  },
  {
    name: 'refresh',
    args: '[server]',
    about: 'ask a server, or all, for its tools now',
    options: [{ flags: '--accept <sha256>', about: 'take the list that was shown with this sum, unless the server gives another by now' }],
    more: ['A server that failed is started again.'],
    load: async () => (await import('../commands/mcp/tools.js')).refreshTools
  }
]
