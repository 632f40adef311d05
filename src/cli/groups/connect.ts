import { CALLER_OPTIONS } from './caller-options.js'
import { CLIENTS } from '../clients/places.js'
import type { CommandRow, OptionSpec } from '../terminal/table.js'

const SERVER_NAME: OptionSpec = {
  flags: '--server-name <name>',
  about: 'name of the server in the client (default: a2a-node)'
}
const OPTIONS: readonly OptionSpec[] = [
  SERVER_NAME,
  ...CALLER_OPTIONS,
  { flags: '--no-start', about: 'the client starts no node when none runs' },
  { flags: '--remove', about: 'take the entry out again, and a file that was made for it' },
  { flags: '--dry-run', about: 'show the change only' },
  { flags: '--yes', about: 'write without asking' },
  { flags: '--portable', about: 'write the command a2a-node without its path; the client must find it in its PATH' }
]
const MORE: readonly string[] = [
  'Only the entry is touched; what else is in the file stays byte for byte, and what was there is kept beside it as',
  '<file>.<time>.bak. Doing it again changes nothing. An entry of that name that starts another program is shown in the',
  'change and replaced when you agree. The client reads and sends as a caller of its own, at L1 unless --tier says more; it',
  'has no right of an operator, such as to invite or approve. With --home (or A2A_NODE_HOME) the entry names that home.'
]

/** Commands that bring the node to the programs of others. */
export const CONNECT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'connect',
    offline: true,
    about: 'connect a coding agent to this node as an MCP server',
    group: 'Agents',
    options: [SERVER_NAME],
    more: [
      'Without a client: which ones are on this machine, and whether they are connected; changes nothing.',
      ...MORE,
      '',
      'Example: a2a-node connect claude --dry-run   (then)   a2a-node connect claude'
    ],
    load: async () => (await import('../commands/connect.js')).listClients,
    sub: CLIENTS.map((client) => ({
      name: client.id,
      offline: true,
      about: client.title,
      options: OPTIONS,
      more: client.id === 'vscode' ? ['The file is that of the default profile.', ...MORE] : MORE,
      load: async () => (await import('../commands/connect.js')).connectClient(client)
    }))
  }
]
