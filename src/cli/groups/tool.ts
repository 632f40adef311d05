import type { CommandRow } from '../terminal/table.js'
import { PROGRESS } from './message.js'

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
    options: [{ flags: '--timeout <duration>', about: 'how long to wait (default: 30s)' }, ...PROGRESS],
    more: [
      'It goes to the agent of the server like any call, so policy applies.',
      '',
      "Example: a2a-node tools call time now '{}'"
    ],
    load: async () => (await import('../commands/mcp/tools.js')).callTool
  },
  {
    name: 'calls',
    about: 'recent calls that MCP clients made to tools of this node: arguments, result, time',
    options: [
      { flags: '--tool <name>', about: 'only calls of this tool' },
      { flags: '--failed', about: 'only calls that gave no result' },
      { flags: '--since <time>', about: 'only those since 10m ago, or since 2026-11-29T10:00:00Z' },
      { flags: '--limit <n>', about: 'at most this number of calls, the newest' }
    ],
    more: [
      'The node keeps the newest 500 calls in memory, at most 4 MiB. With --json each call is one line with its arguments and its result.',
      '',
      'Example: a2a-node tools calls --failed --json > calls.jsonl'
    ],
    load: async () => (await import('../commands/mcp/calls.js')).listCalls
  },
  {
    name: 'refresh',
    args: '[server]',
    about: 'ask a server, or all, for its tools now',
    options: [
      {
        flags: '--accept <sha256>',
        about: 'take the list that was shown with this sum, unless the server gives another by now'
      }
    ],
    more: ['A server that failed is started again.'],
    load: async () => (await import('../commands/mcp/tools.js')).refreshTools
  }
]
