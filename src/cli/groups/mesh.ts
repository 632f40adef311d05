import type { CommandRow, OptionSpec } from '../terminal/table.js'

/** The option of lists that follow their changes. */
export const WATCH: OptionSpec = { flags: '-w, --watch', about: 'keep watching; with --json one object a line' }

/** A command that lists by itself: with the verb `ls` it does the same. */
export function listing(spec: CommandRow): CommandRow {
  const { name, options = [], load, sub = [] } = spec
  const ls: CommandRow = {
    name: 'ls',
    about: `the same as ${name} alone`,
    options,
    ...(load === undefined ? {} : { load })
  }
  return { ...spec, sub: [ls, ...sub] }
}

/** The commands about the mesh and its members. */
export const MESH_COMMANDS: readonly CommandRow[] = [
  listing({
    name: 'peers',
    about: 'the other nodes of the mesh',
    group: 'Mesh',
    options: [WATCH, { flags: '--all', about: 'also revoked nodes' }],
    more: ['A peer is named by its name, its id, or at least the first 4 characters of its id.'],
    load: async () => (await import('../commands/peers.js')).peers,
    sub: [
      {
        name: 'show',
        args: '<peer>',
        about: 'everything about one node',
        load: async () => (await import('../commands/peers.js')).showPeer
      },
      {
        name: 'rename',
        args: '<peer> <name>',
        about: 'give a node another name',
        load: async () => (await import('../commands/peers.js')).renamePeer
      },
      {
        name: 'tier',
        args: '<peer> <tier>',
        about: 'change the tier of a node (L0..L3)',
        load: async () => (await import('../commands/peers.js')).tierPeer
      },
      {
        name: 'trust',
        args: '<peer> <trust>',
        about: 'regard a node as yours (mine) or as a guest (guest)',
        more: ['It changes what the rules of your machines allow that node. Its own machines decide about yours.'],
        load: async () => (await import('../commands/peers.js')).trustPeer
      },
      {
        name: 'add',
        args: '<peer>',
        about: 'dial a node also at an address, such as that of a VPN',
        options: [{ flags: '--address <host:port>', about: 'where it takes TCP: tcp in its status' }],
        load: async () => (await import('../commands/peers.js')).addAddress
      },
      {
        name: 'remove',
        args: '<peer>',
        about: 'forget an address of a node',
        options: [{ flags: '--address <host:port>', about: 'one of peers add' }],
        load: async () => (await import('../commands/peers.js')).removeAddress
      },
      {
        name: 'revoke',
        args: '<peer>',
        about: 'remove a node from the mesh permanently',
        options: [{ flags: '--reason <text>', about: 'goes on record' }],
        load: async () => (await import('../commands/peers.js')).revokePeer
      }
    ]
  }),
  {
    name: 'mesh',
    about: 'rules for every node; the owner sets them',
    group: 'Mesh',
    sub: [
      {
        name: 'show',
        about: 'the tier table and the allow list of sandboxes',
        load: async () => (await import('../commands/mesh.js')).showMesh
      },
      {
        name: 'set',
        args: '<file>',
        about: 'set them: the JSON of mesh show --json, changed (- reads stdin)',
        more: ['Example: a2a-node mesh show --json > mesh.json    (change it, then)    a2a-node mesh set mesh.json'],
        load: async () => (await import('../commands/mesh.js')).setMesh
      },
      {
        name: 'reset',
        about: 'restore the defaults',
        load: async () => (await import('../commands/mesh.js')).resetMesh
      }
    ]
  },
  {
    name: 'invite',
    about: 'make an invite code for another machine',
    group: 'Mesh',
    options: [
      { flags: '--mine', about: 'a machine of yours joins: both sides may use each other fully' },
      { flags: '--guest', about: "somebody else's machine joins: it may read and ask (the default)" },
      { flags: '--tier <tier>', about: 'tier of the newcomer, L0..L3 (default: L1); L0 implies --mine' },
      { flags: '--admin', about: 'the newcomer may invite others and write the log' },
      { flags: '--ttl <duration>', about: 'how long the code works (default: 10m)' },
      { flags: '--uses <n>', about: 'number of nodes that may join with it (default: 1)' },
      { flags: '--sandbox <id>', about: 'confine the newcomer to a sandbox' },
      { flags: '--long', about: 'print the long code, which earlier builds read' },
      { flags: '--qr', about: 'show the code as a QR code too' }
    ],
    load: async () => (await import('../commands/invite.js')).invite,
    sub: [
      { name: 'ls', about: 'every invite', load: async () => (await import('../commands/invite.js')).listInvites },
      {
        name: 'revoke',
        args: '<id>',
        about: 'revoke an invite',
        load: async () => (await import('../commands/invite.js')).revokeInvite
      }
    ]
  },
  {
    name: 'ping',
    args: '<peer>',
    about: 'round trips to a node',
    group: 'Mesh',
    options: [
      { flags: '-c, --count <n>', about: 'how many, up to 1,000 (default: 4)' },
      { flags: '--until-direct', about: 'repeat until the path is direct; exit code 6 when another one stays' },
      {
        flags: '--timeout <duration>',
        about: 'how long to wait for all answers (default: 5s for each; --until-direct: 30s, at most 10m)'
      }
    ],
    load: async () => (await import('../commands/ping.js')).ping
  }
]
