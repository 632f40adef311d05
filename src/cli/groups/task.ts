import type { CommandRow } from '../terminal/table.js'

/** The commands under `tasks`, beside its list. */
export const TASK_COMMANDS: readonly CommandRow[] = [
  {
    name: 'show',
    args: '<id>',
    about: 'one task and its events',
    load: async () => (await import('../commands/tasks.js')).showTask
  },
  {
    name: 'cancel',
    args: '<id>',
    about: 'cancel a task',
    load: async () => (await import('../commands/tasks.js')).cancelTask
  }
]
