import type { CommandRow } from '../terminal/table.js'

/** Commands that keep a node's home well. */
export const CARE_COMMANDS: readonly CommandRow[] = [
  {
    name: 'doctor',
    offline: true,
    about: 'check the home of the node; prints faults and next steps',
    group: 'Care',
    options: [
      { flags: '--repair', about: 'repair faults; damaged stores are moved aside, never deleted' },
      { flags: '--new-identity', about: 'make this copy of a home a node of its own' },
      { flags: '--name <name>', about: 'name of the new node' },
      { flags: '--yes', about: 'do not ask' },
      { flags: '--force', about: 'also where nothing shows that the home is a copy' }
    ],
    more: [
      'Exits 1 when something failed. A node that runs keeps its stores to itself: stop it to have them read.',
      '',
      'After --repair a copied home replaces the original, which then stops. With --new-identity both go on: the copy gets a key and a name',
      'of its own. It keeps settings, rules and agent files, and joins a mesh anew by an invite. Membership, requests, documents, tokens and the',
      'audit log of the former node are moved aside.'
    ],
    load: async () => (await import('../commands/doctor.js')).doctor
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
  }
]
