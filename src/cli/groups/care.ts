import type { CommandRow, OptionSpec } from '../terminal/table.js'

const SERVICE_OPTIONS: readonly OptionSpec[] = [
  { flags: '--system', about: 'a service of the machine, not of this user; needs root and --home' }
]
const ASKED_OPTIONS: readonly OptionSpec[] = [
  { flags: '--dry-run', about: 'list the changes only' },
  { flags: '--yes', about: 'do not ask' }
]

/** Commands that keep a node's home well. */
export const CARE_COMMANDS: readonly CommandRow[] = [
  {
    name: 'doctor',
    args: '[peer]',
    offline: true,
    about: 'check the home of the node, or the ways to a peer; prints faults and next steps',
    group: 'Care',
    options: [
      { flags: '--repair', about: 'repair faults; damaged stores are moved aside, never deleted' },
      { flags: '--new-identity', about: 'make this copy of a home a node of its own' },
      { flags: '--name <name>', about: 'name of the new node' },
      { flags: '--yes', about: 'do not ask' },
      { flags: '--force', about: 'also where nothing shows that the home is a copy' }
    ],
    more: [
      'With a peer the running node looks for it, dials it, and says in one sentence how it is reached, or why not: exits 1 then.',
      '',
      'Exits 1 when something failed. A node that runs keeps its stores to itself: stop it to have them read.',
      '',
      'After --repair a copied home replaces the original, which then stops. With --new-identity both go on: the copy gets a key and a name',
      'of its own. It keeps settings, rules and agent files, and joins a mesh anew by an invite. Membership, requests, documents, tokens and the',
      'audit log of the former node are moved aside.'
    ],
    load: async () => (await import('../commands/doctor.js')).doctor
  },
  {
    name: 'leave',
    offline: true,
    about: 'take the node of this home out of its mesh',
    group: 'Care',
    options: ASKED_OPTIONS,
    more: [
      'Stop the node first. It gets a new key and keeps its name, settings, rules and agent files. The data of the former node is moved',
      'into the directory former-node-<time> of the home; nothing is deleted. The next start joins or founds a mesh.'
    ],
    load: async () => (await import('../commands/home/leave.js')).leave
  },
  {
    name: 'reset',
    offline: true,
    about: 'remove the data of the node from this home',
    group: 'Care',
    options: [
      { flags: '--dry-run', about: 'list the files and directories only' },
      { flags: '--yes', about: 'do not ask' }
    ],
    more: [
      'Stop the node first. Removes stores, keys, logs and the data of former nodes, and names each path. Settings, rules, agent files and',
      'unknown files stay. The next start makes a new node.'
    ],
    load: async () => (await import('../commands/home/reset.js')).reset
  },
  {
    name: 'uninstall',
    offline: true,
    about: 'remove the entries in clients and the service of this user',
    group: 'Care',
    options: [
      { flags: '--server-name <name>', about: 'name of the server in the clients (default: a2a-node)' },
      ...ASKED_OPTIONS
    ],
    more: ['Lists each file and command before. The home, and entries that start another program, stay.'],
    load: async () => (await import('../commands/home/uninstall.js')).uninstall
  },
  {
    name: 'logs',
    offline: true,
    about: 'the log of a node in the background or of a service',
    group: 'Observe',
    options: [
      { flags: '-f, --follow', about: 'follow new lines' },
      { flags: '--since <time>', about: 'only those since 10m ago, or since 2026-11-29T10:00:00Z' },
      { flags: '--lines <n>', about: 'at most this number, the last ones (default: 100, with --since all)' }
    ],
    more: ['The node keeps two files of 16 MiB: node.log and node.log.1 in its home.'],
    load: async () => (await import('../commands/home/logs.js')).logs
  },
  {
    name: 'service',
    about: 'start the node after boot, and again after a crash',
    group: 'Care',
    sub: [
      {
        name: 'install',
        offline: true,
        about: 'write the service file for systemd or launchd and start the node',
        options: [
          ...SERVICE_OPTIONS,
          { flags: '--run-as <account>', about: 'with --system: account of the node (default: the one before sudo)' },
          ...ASKED_OPTIONS
        ],
        more: [
          'Names the file that it writes and each command that it runs. A stopped node stays stopped until the next boot. The flags that',
          'start remembers hold. The log is that of the home: a2a-node logs.'
        ],
        load: async () => (await import('../commands/home/service.js')).installNode
      },
      {
        name: 'uninstall',
        offline: true,
        about: 'stop the service and remove its file; the home stays',
        options: [...SERVICE_OPTIONS, ...ASKED_OPTIONS],
        load: async () => (await import('../commands/home/service.js')).uninstallNode
      },
      {
        name: 'status',
        offline: true,
        about: 'is the service installed, and does it run?',
        options: SERVICE_OPTIONS,
        load: async () => (await import('../commands/home/service.js')).serviceStatus
      }
    ]
  },
  {
    name: 'backup',
    args: '<file>',
    about: 'back up identity, settings and stores into one file',
    group: 'Care',
    options: [{ flags: '--force', about: 'replace a file of that name' }],
    more: [
      "The file holds the node's key: every holder can act as this node. Keep it like a private key.",
      'It may be made while the node runs, or while it does not.'
    ],
    load: async () => (await import('../commands/restore.js')).backup
  },
  {
    name: 'restore',
    args: '<file>',
    offline: true,
    about: 'create a node home from a backup (the home must not exist)',
    group: 'Care',
    more: [
      'Everything is checked before anything is written. The node keeps its identity; a home of it that still runs stops when it',
      'hears of this one from another member of the mesh. What others had asked and was not begun when the backup was made ends as UNKNOWN, unless it may be repeated.',
      '',
      'Example: a2a-node restore laptop.backup --home ~/node2   (then)   a2a-node start --home ~/node2'
    ],
    load: async () => (await import('../commands/restore.js')).restore
  },
  {
    name: 'prune',
    offline: true,
    about: 'make the installed program smaller: remove binaries for other platforms and runtimes, and source maps',
    group: 'Care',
    options: [
      { flags: '--dry-run', about: 'show what would go, and remove nothing' },
      { flags: '--yes', about: 'do not ask' }
    ],
    more: [
      'It touches this program and the packages that it depends on, and nothing of a home. npm install brings all back.'
    ],
    load: async () => (await import('../commands/home/prune.js')).prune
  }
]
