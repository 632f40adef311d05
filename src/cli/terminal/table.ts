import { NODE_EVENTS, TRAFFIC_EVENTS } from '../../kit/names/event-types.js'
import { AGENT_COMMANDS } from '../groups/agent.js'
import { CARE_COMMANDS } from '../groups/care.js'
import { CONNECT_COMMANDS } from '../groups/connect.js'
import type { Action } from '../context.js'
import { DOC_COMMANDS } from '../groups/doc.js'
import { MCP_COMMANDS } from '../groups/mcp.js'
import { NETWORK_OPTIONS } from '../network-options.js'
import { REMEMBERED } from '../../config/start-options.js'
import { FILES_COMMANDS } from '../groups/files.js'
import { GATEWAY_COMMANDS } from '../groups/gateway.js'
import { listing, MESH_COMMANDS, WATCH } from '../groups/mesh.js'
import { JUSTIFICATION, MESSAGE_COMMANDS } from '../groups/message.js'
import { SWARM_COMMANDS } from '../groups/swarm.js'
import { TASK_COMMANDS } from '../groups/task.js'
import { TOOL_COMMANDS } from '../groups/tool.js'

/** One option of a command. */
export interface OptionSpec {
  /** As commander reads it: `-w, --watch` or `--ttl <duration>`. */
  readonly flags: string
  readonly about: string
  readonly choices?: readonly string[]
  /** May be given several times. */
  readonly repeat?: true
  /** Values that a second word completes: `--results files DIR` is `--results files=DIR`. */
  readonly pairs?: readonly string[]
  /** Kind of its values in `completion values`. */
  readonly values?: string
  /** Not shown in help and completion. */
  readonly hidden?: true
}

/** One command. The table is what the parser, the help and the completion scripts are made of. */
export interface CommandRow {
  readonly name: string
  /** `<required>` and `[optional]` arguments. */
  readonly args?: string
  readonly about: string
  /** Heading in the list of commands. */
  readonly group?: string
  readonly options?: readonly OptionSpec[]
  /** Lines after the help. */
  readonly more?: readonly string[]
  /** It asks no running node, so it has no {@link ANSWER_TIMEOUT}. */
  readonly offline?: true
  /** Loads the code of the command, only when it runs. Without one the command is a heading for its `sub`. */
  readonly load?: () => Promise<Action>
  readonly sub?: readonly CommandRow[]
}

const REMEMBER: OptionSpec = {
  flags: '--remember',
  about: 'write it into the policy file for this sender, agent and capability'
}
const OPENING = ['request', 'notification', 'task-proposal', 'stream-start'] as const
const SIDE_EFFECTS = ['none', 'read', 'write', 'exec'] as const

const NODE: readonly CommandRow[] = [
  {
    name: 'start',
    about: 'start the node of this machine (or print the running one)',
    group: 'Node',
    options: [
      { flags: '--name <name>', about: 'name of this node in its mesh' },
      { flags: '--join <code>', about: 'join a mesh by an invite; - asks for the code, or reads it from stdin' },
      { flags: '--leave', about: 'with --join: leave the mesh of this home first, if that harms nobody' },
      ...NETWORK_OPTIONS,
      { flags: '--agents <dir>', about: 'a further directory with agent files', repeat: true },
      { flags: '--http <[host:]port>', about: 'serve HTTP there (0: a free port); without a host this machine only' },
      {
        flags: '--timeout <duration>',
        about: 'how long to wait: with --join for an admin (default: 20s), else for a running node'
      },
      { flags: '--detach', about: 'run in the background; returns when the node answers' },
      { flags: '--report-ready', about: 'tell the parent process over its channel', hidden: true },
      {
        flags: '--until-unused <by>',
        about: 'end some seconds after the last MCP client',
        choices: ['config', 'always'],
        hidden: true
      },
      { flags: '--join-once', about: 'the code counts only where the home is in no mesh', hidden: true },
      ...REMEMBERED.map(
        ({ flag }): OptionSpec => ({ flags: `--no-${flag.slice(2)}`, about: `forget ${flag}`, hidden: true })
      )
    ],
    more: [
      `The next start uses ${REMEMBERED.map(({ flag }) => flag).join(', ')} again;`,
      '--no-<flag>, such as --no-http, forgets one. a2a-node config show names them.',
      'Without --join the code is the variable A2A_NODE_JOIN, while the home is in no mesh.',
      'SIGHUP makes a detached node reload its log file and config; see a2a-node status.',
      'Ctrl-C stops the node. Exit codes: 130 after Ctrl-C, 143 after SIGTERM, 0 after a2a-node stop.'
    ],
    load: async () => (await import('../commands/start.js')).start
  },
  {
    name: 'stop',
    about: 'stop the running node and wait for its end',
    group: 'Node',
    options: [{ flags: '--timeout <duration>', about: 'how long to wait for its end (default: 13s)' }],
    load: async () => (await import('../commands/stop.js')).stop
  },
  {
    name: 'status',
    about: 'state and problems of the node',
    group: 'Node',
    options: [WATCH],
    load: async () => (await import('../commands/status.js')).status
  },
  {
    name: 'id',
    about: 'keys, mesh and certificate of this node',
    group: 'Node',
    load: async () => (await import('../commands/id.js')).id
  },
  {
    name: 'config',
    about: 'the settings of this node',
    group: 'Node',
    sub: [
      {
        name: 'path',
        about: 'path of the config file',
        offline: true,
        load: async () => (await import('../commands/config.js')).configPath
      },
      {
        name: 'show',
        about: 'every setting, its value and where it comes from',
        offline: true,
        load: async () => (await import('../commands/config.js')).configShow
      },
      {
        name: 'check',
        about: 'check the config file and the environment',
        offline: true,
        load: async () => (await import('../commands/config.js')).configCheck
      }
    ]
  },
  {
    name: 'completion',
    args: '<shell> [kind]',
    about: 'print a completion script for bash, zsh or fish',
    offline: true,
    group: 'Node',
    more: [
      'bash:  a2a-node completion bash > ~/.local/share/bash-completion/completions/a2a-node',
      'zsh:   a2a-node completion zsh > "${fpath[1]}/_a2a-node"',
      'fish:  a2a-node completion fish > ~/.config/fish/completions/a2a-node.fish',
      'The scripts ask the running node: a2a-node completion values tasks',
      '(peers, agents, documents, swarms, tasks, contexts or approvals)'
    ],
    load: async () => (await import('../commands/completion.js')).completion
  }
]

const AGENTS: readonly CommandRow[] = [
  listing({
    name: 'agents',
    about: 'the agents of all nodes',
    group: 'Agents',
    options: [
      { flags: '--remote', about: 'only agents of other nodes' },
      { flags: '--local', about: 'only agents of this node' }
    ],
    load: async () => (await import('../commands/agents.js')).agents,
    sub: AGENT_COMMANDS
  }),
  ...MESSAGE_COMMANDS,
  {
    name: 'tools',
    about: 'tools of the MCP servers and A2A agents that this node imports',
    group: 'Agents',
    sub: TOOL_COMMANDS
  }
]

const WORK: readonly CommandRow[] = [
  {
    name: 'swarm',
    about: 'one goal, worked on by many agents',
    group: 'Work',
    sub: SWARM_COMMANDS
  },
  { name: 'files', about: 'copy files between nodes', group: 'Work', sub: FILES_COMMANDS },
  { name: 'doc', about: 'documents that members of the mesh share', group: 'Work', sub: DOC_COMMANDS },
  listing({
    name: 'tasks',
    about: 'work asked of this node or by it, newest first',
    group: 'Work',
    options: [
      WATCH,
      { flags: '--limit <n>', about: 'at most this number (default: 50)' },
      { flags: '--all', about: 'every stored task' },
      { flags: '--context <id>', about: 'the conversation of a context, oldest turn first', values: 'contexts' }
    ],
    load: async () => (await import('../commands/tasks.js')).tasks,
    sub: TASK_COMMANDS
  }),
  {
    name: 'events',
    about: 'recent events',
    group: 'Observe',
    options: [
      { flags: '-f, --follow', about: 'follow new events' },
      { flags: '--all', about: 'also events of single messages and tool calls' },
      { flags: '--type <types>', about: 'only these types, comma-separated, e.g. refusal or tool-invocation' },
      { flags: '--about <text>', about: 'only events with this text, e.g. a name of an agent, a node or a tool' },
      { flags: '--failed', about: 'only refusals, errors and failures' },
      { flags: '--since <time>', about: 'only those since 10m ago, or since 2026-11-29T10:00:00Z' },
      { flags: '--limit <n>', about: 'at most this number of recent events, the newest' }
    ],
    more: [
      `Types: ${NODE_EVENTS.join(', ')}.`,
      `Types of single messages and tool calls: ${TRAFFIC_EVENTS.join(', ')}.`,
      'The node keeps 1,000 of these events and 1,000 others in memory.',
      '',
      'Example: a2a-node events --all --failed --since 10m'
    ],
    load: async () => (await import('../commands/events.js')).events
  },
  {
    name: 'metrics',
    about: 'counts and times of this node',
    group: 'Observe',
    options: [{ flags: '--prometheus', about: 'in the text format of Prometheus' }],
    load: async () => (await import('../commands/metrics.js')).metrics
  },
  {
    name: 'audit',
    about: 'the audit log: refusals, approvals, exchanges across tiers, changes of membership',
    group: 'Observe',
    options: [
      { flags: '--since <time>', about: 'only those since 1h ago, or since 2026-11-29T10:00:00Z' },
      { flags: '--peer <peer>', about: 'only events with this node' },
      {
        flags: '--verify',
        about: 'check every line against the chain of hashes instead; exit code 1 when it is broken'
      }
    ],
    more: ['Works without a running node too; names of nodes need one, ids do not.'],
    load: async () => (await import('../commands/audit.js')).audit
  }
]

const TRUST: readonly CommandRow[] = [
  {
    name: 'policy',
    about: 'rules for messages to this node',
    group: 'Trust',
    sub: [
      {
        name: 'show',
        about: 'the rules in force, in their order',
        load: async () => (await import('../commands/policy.js')).showPolicy
      },
      {
        name: 'test',
        about: 'the decision of this node about a message, and its rule',
        options: [
          { flags: '--from <tier|node|agent>', about: 'sender: L0..L3, a node (its operator) or an agent, by name' },
          { flags: '--to <tier|agent>', about: 'target: L0..L3 (an agent of this node) or an agent' },
          { flags: '--type <type>', about: 'type of the message (default: request)', choices: OPENING },
          { flags: '--capability <id>', about: 'its capability (default: the default one, as for send)' },
          {
            flags: '--side-effect <kind>',
            about: 'side effect of the capability (default: that on the card)',
            choices: SIDE_EFFECTS
          },
          JUSTIFICATION
        ],
        more: [
          'Exits 0 for every decision. The nodes of both ends decide, each by its own rules; this one answers for itself.',
          '',
          'Example: a2a-node policy test --from L2 --to text --capability text.stats'
        ],
        load: async () => (await import('../commands/policy.js')).testPolicy
      }
    ]
  },
  {
    name: 'approvals',
    about: 'messages that wait for your approval',
    group: 'Trust',
    sub: [
      {
        name: 'ls',
        about: 'pending approvals',
        options: [WATCH],
        load: async () => (await import('../commands/approvals.js')).listApprovals
      },
      {
        name: 'show',
        args: '<id>',
        about: 'one approval with its full input and the texts of its sender',
        load: async () => (await import('../commands/approvals.js')).showApproval
      },
      {
        name: 'allow',
        args: '<id>',
        about: 'allow a message, or answer a question of an agent',
        options: [REMEMBER, { flags: '--content <json>', about: 'answer of a question: the object of its form' }],
        load: async () => (await import('../commands/approvals.js')).allowApproval
      },
      {
        name: 'deny',
        args: '<id>',
        about: 'refuse a message',
        options: [REMEMBER],
        load: async () => (await import('../commands/approvals.js')).denyApproval
      }
    ]
  }
]

/** Options that stand with every command. */
export const GLOBAL_OPTIONS: readonly OptionSpec[] = [
  { flags: '--home <dir>', about: 'directory of all files of the node (env A2A_NODE_HOME)' },
  { flags: '--json', about: 'one JSON object instead of text' },
  { flags: '--color <when>', about: 'colours', choices: ['auto', 'always', 'never'] }
]

/** The time that each command without a `--timeout` of its own gives the node. */
const ANSWER_TIMEOUT: OptionSpec = {
  flags: '--timeout <duration>',
  about: 'how long to wait for each answer of the node, and for others that it waits for (default: 5s to 15s)'
}

/** A row, and those below it: each that asks a node has an option `--timeout`. */
function timed(row: CommandRow): CommandRow {
  const { options = [], sub } = row
  const isTimed =
    row.load === undefined || row.offline === true || options.some(({ flags }) => flags.startsWith('--timeout '))
  const below = sub === undefined ? {} : { sub: sub.map(timed) }
  return { ...row, options: isTimed ? options : [...options, ANSWER_TIMEOUT], ...below }
}

const ROWS: readonly CommandRow[] = [
  ...NODE,
  ...CARE_COMMANDS,
  ...MESH_COMMANDS,
  ...AGENTS,
  ...MCP_COMMANDS,
  ...CONNECT_COMMANDS,
  ...WORK,
  ...TRUST,
  ...GATEWAY_COMMANDS
]

/** Every command of a2a-node. */
export const COMMANDS: readonly CommandRow[] = ROWS.map(timed)
