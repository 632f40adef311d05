import type { CommandRow, OptionSpec } from '../terminal/table.js'
import { JUSTIFICATION, PROGRESS } from './message.js'

const TIMEOUT: OptionSpec = {
  flags: '--timeout <duration>',
  about: 'how long each step may take (default: 2m; 6m to begin a put, which may need an approval)'
}
const FORCE: OptionSpec = { flags: '--force', about: 'replace an existing file' }
const TRANSFER = [FORCE, JUSTIFICATION, TIMEOUT, ...PROGRESS]
const ADDRESS =
  '<node>:<path> is a path of the agent files of that node; <agent>@<node>:<path> names an agent with the same capabilities.'
const RESUMES = 'The same command continues after an interruption. Both ends compare the SHA-256 of the whole file.'

/** The commands below `files`. */
export const FILES_COMMANDS: readonly CommandRow[] = [
  {
    name: 'ls',
    args: '<address>',
    about: 'list a directory of a node; <node>: lists the granted ones',
    options: [JUSTIFICATION, TIMEOUT],
    more: [ADDRESS, 'The owner of the node grants directories in agents.grants of its config.'],
    load: async () => (await import('../commands/files/files.js')).listFiles
  },
  {
    name: 'get',
    args: '<address> [target]',
    about: 'copy a file of a node here, to a file or into a directory (default: the current one)',
    options: TRANSFER,
    more: [ADDRESS, RESUMES, 'The owner of the node grants directories in agents.grants of its config.'],
    load: async () => (await import('../commands/files/files.js')).getFile
  },
  {
    name: 'put',
    args: '<file> <address>',
    about: 'copy a file to a node; a path that ends with / keeps the name',
    options: TRANSFER,
    more: [
      ADDRESS,
      RESUMES,
      'The owner of the node grants directories in agents.writeGrants of its config. A put of a guest needs its approval.'
    ],
    load: async () => (await import('../commands/files/files.js')).putFile
  }
]
