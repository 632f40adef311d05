import type { CommandRow, OptionSpec } from '../terminal/table.js'

const LIMIT: OptionSpec = { flags: '--timeout <duration>', about: 'how long to wait (default: without a limit)' }
const ENDS = [
  'Exit codes: 0 completed, else that of its error, as of a2a-node call; 6 unknown, or not ended in time.',
  'Ctrl-C ends the command; the task runs on.'
]

/** The commands under `tasks`, beside its list. */
export const TASK_COMMANDS: readonly CommandRow[] = [
  {
    name: 'show',
    args: '<id>',
    about: 'one task and its events',
    load: async () => (await import('../commands/tasks.js')).showTask
  },
  {
    name: 'watch',
    args: '<id>',
    about: 'print the events of a task until it ends, then its result',
    options: [LIMIT],
    more: ENDS,
    load: async () => (await import('../commands/tasks.js')).watchTask
  },
  {
    name: 'wait',
    args: '<id>',
    about: 'wait for the end of a task, and print its result',
    options: [LIMIT],
    more: ENDS,
    load: async () => (await import('../commands/tasks.js')).waitTask
  },
  {
    name: 'cancel',
    args: '<id>',
    about: 'cancel a task',
    load: async () => (await import('../commands/tasks.js')).cancelTask
  }
]
