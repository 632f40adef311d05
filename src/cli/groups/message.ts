import type { CommandRow, OptionSpec } from '../terminal/table.js'

const TIMEOUT: OptionSpec = {
  flags: '--timeout <duration>',
  about: 'how long to wait, without waits for approval; the work may run on (default: 30s; with --no-wait 24h)'
}
const ALLOW_REPEAT: OptionSpec = {
  flags: '--allow-repeat',
  about: 'run it again after an unknown outcome, though its capability may not be repeated'
}
const NO_WAIT: OptionSpec = { flags: '--no-wait', about: 'do not wait for the answer; prints the task id' }
/** The justification of a message to a more powerful tier. */
export const JUSTIFICATION: OptionSpec = {
  flags: '--justification <text>',
  about: 'reason for asking a more powerful tier'
}
/** Options about the progress of a message. */
export const PROGRESS: readonly OptionSpec[] = [
  { flags: '--follow', about: 'report progress and text on stderr, also where it is no terminal (default on one)' },
  { flags: '--quiet', about: 'no progress on stderr; errors stay' }
]
const CONTEXT: OptionSpec = {
  flags: '--context <id>',
  about: 'the next turn of a context: its agent gets the earlier ones; new begins one',
  values: 'contexts'
}
const CTRL_C = ['Ctrl-C gives up: the node cancels the work. With --no-wait it runs on.']

/** Commands that send a message to agents. */
export const MESSAGE_COMMANDS: readonly CommandRow[] = [
  {
    name: 'send',
    args: '<agent> <text>',
    about: 'send a text (or a JSON object) to an agent, or to all with *',
    group: 'Agents',
    options: [
      { flags: '--type <type>', about: 'request waits for an answer', choices: ['request', 'notification'] },
      JUSTIFICATION,
      TIMEOUT,
      NO_WAIT,
      ALLOW_REPEAT,
      ...PROGRESS,
      { flags: '--all', about: 'with *: also agents whose capability has side effects (write, exec)' }
    ],
    more: [
      '- as text reads it from stdin. * reaches agents whose default capability has no side effects (none, read).',
      ...CTRL_C
    ],
    load: async () => (await import('../commands/send.js')).send
  },
  {
    name: 'call',
    args: '<agent> <capability> [json]',
    about: 'run one capability of an agent; - as agent: any that can',
    group: 'Agents',
    options: [JUSTIFICATION, TIMEOUT, NO_WAIT, ALLOW_REPEAT, CONTEXT, ...PROGRESS],
    more: [
      '- as json reads it from stdin.',
      'call <card URL> [skill] <json or text> asks an A2A agent that is not in the mesh.',
      ...CTRL_C,
      '',
      'Example: a2a-node call - text.stats \'{"text":"hello"}\''
    ],
    load: async () => (await import('../commands/call.js')).call
  }
]
