import type { CommandRow } from '../terminal/table.js'

/** The commands below `agents`. */
export const AGENT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'show',
    args: '<agent>',
    about: 'the card of an agent: capabilities and their schemas',
    load: async () => (await import('../commands/agents.js')).showAgent
  },
  {
    name: 'check',
    args: '<file>',
    offline: true,
    about: 'check an agent file, all of a directory, or an A2A card: its URL, or a .json file',
    more: [
      'The module of a file is loaded in a process of its own, so its code runs.',
      'A card is fetched as an import fetches it, without a node: hosts that are not public need a2a.allowPrivate.'
    ],
    load: async () => (await import('../commands/agents.js')).checkAgent
  },
  {
    name: 'new',
    args: '[name]',
    offline: true,
    about: 'write the file of a new, working agent to edit',
    options: [
      {
        flags: '--preset <preset>',
        about: 'the agents of a set with their tiers: all, or the one named',
        choices: ['planetary']
      }
    ],
    more: ['It goes into the directory of agent files of this node; an existing file is never overwritten.'],
    load: async () => (await import('../commands/agents.js')).newAgent
  },
  {
    name: 'import',
    args: '<file> [command...]',
    offline: true,
    about: 'make agents of sub-agent files of Claude Code, Copilot, Gemini CLI or OpenCode',
    options: [
      {
        flags: '--runtime <runtime>',
        about: 'what runs them: a language model of the config, or a program',
        choices: ['llm', 'command']
      },
      { flags: '--model <model>', about: 'with llm: the provider, or provider/model (default: the only provider)' },
      { flags: '--tier <tier>', about: 'L0 to L3 (default: that of the node)' },
      { flags: '--dry-run', about: 'say what would be written, and write nothing' }
    ],
    more: [
      'A directory is read with its subdirectories. The files go into the directory of agent files; none is overwritten.',
      'With command the program is the client of the file (claude, copilot, gemini, opencode), or the words after --:',
      '  a2a-node agents import ~/.claude/agents --runtime command -- ./my-runner --fast',
      'To follow changes of a directory, name it in agents.imports of the config.'
    ],
    load: async () => (await import('../commands/import-agents.js')).importAgents
  },
  {
    name: 'run',
    args: '<file> <json>',
    offline: true,
    about: 'run an agent file once, without a node (- reads the input from stdin)',
    options: [{ flags: '--capability <id>', about: 'which of its capabilities (default: the one send uses)' }],
    more: ['Example: a2a-node agents run tester.md \'{"file":"some.test.js"}\''],
    load: async () => (await import('../commands/agents.js')).runAgent
  }
]
