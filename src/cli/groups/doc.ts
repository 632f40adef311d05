import type { CommandRow, OptionSpec } from '../terminal/table.js'

const TYPE: OptionSpec = {
  flags: '--type <type>',
  about: 'which part of the document (default: the one that holds something, else text)',
  choices: ['text', 'map', 'list']
}
const ROOT: OptionSpec = {
  flags: '--root <name>',
  about: 'name of the part in the document (default: the value of --type)'
}
const PART: readonly OptionSpec[] = [TYPE, ROOT]
const ALLOW_EMPTY: OptionSpec = { flags: '--allow-empty', about: 'an empty text empties a document with content' }
const AT = 'an entry of doc history, a time (2026-11-29T10:00:00Z) or a time ago (2h)'
const ONE_PART: readonly OptionSpec[] = [
  { ...TYPE, about: 'only the part of this type (default: all parts)' },
  { ...ROOT, about: 'only the part with this name; needs --type' }
]

/** The commands below `doc`. */
export const DOC_COMMANDS: readonly CommandRow[] = [
  {
    name: 'ls',
    about: 'the documents that this node may see',
    load: async () => (await import('../commands/doc/doc.js')).listDocuments
  },
  {
    name: 'show',
    args: '<doc>',
    about: 'show writers, size and access of a document; with --at its former content',
    options: [{ flags: '--at <when>', about: AT }, ...ONE_PART],
    load: async () => (await import('../commands/doc/doc.js')).showDocument
  },
  {
    name: 'history',
    args: '<doc>',
    about: 'the changes of a document, newest first',
    options: [{ flags: '--limit <n>', about: 'changes, 1 to 1000 (default: 20)' }],
    more: [
      "Times are those of the authors' clocks. Blocks merged in a snapshot have no history.",
      '',
      'Example: a2a-node doc restore notes --at 2h'
    ],
    load: async () => (await import('../commands/doc/history.js')).documentHistory
  },
  {
    name: 'restore',
    args: '<doc>',
    about: 'write a change that makes a document equal to a former state',
    options: [{ flags: '--at <when>', about: AT }, ...ONE_PART],
    more: [
      'All parts are restored, or none. XML, formatted text and nested types are refused when they changed.',
      '',
      'Example: a2a-node doc restore notes --at k7f29d3a/12'
    ],
    load: async () => (await import('../commands/doc/history.js')).restoreDocument
  },
  {
    name: 'get',
    args: '<doc>',
    about: 'print a document alone: text as it is, maps and lists as JSON',
    options: PART,
    load: async () => (await import('../commands/doc/text.js')).getDocument
  },
  {
    name: 'set',
    args: '<doc> <text>',
    about: 'set a document to a text or JSON; creates a missing one',
    options: [...PART, ALLOW_EMPTY],
    more: [
      '- as text reads it from stdin. Only the difference is written: concurrent changes of others stay.',
      '',
      'Example: a2a-node doc set settings \'{"color":"blue"}\' --type map'
    ],
    load: async () => (await import('../commands/doc/text.js')).setDocument
  },
  {
    name: 'edit',
    args: '<doc>',
    about: 'edit a document in $VISUAL or $EDITOR and write your changes',
    options: [...PART, ALLOW_EMPTY],
    more: [
      'Concurrent changes of others stay. When the editor fails nothing is written, and your text stays in its file.'
    ],
    load: async () => (await import('../commands/doc/edit.js')).editDocument
  },
  {
    name: 'watch',
    args: '<doc>',
    about: 'a line for each change; with --json the whole value each time',
    options: PART,
    load: async () => (await import('../commands/doc/watch.js')).watchDocument
  },
  {
    name: 'export',
    args: '<doc>',
    about: 'write a document to stdout',
    options: [
      {
        flags: '--format <format>',
        about: 'text: as doc get; json: its parts by name; yjs: one binary update (default: text)',
        choices: ['text', 'json', 'yjs']
      },
      ...PART
    ],
    load: async () => (await import('../commands/doc/text.js')).exportDocument
  },
  {
    name: 'access',
    args: '<doc>',
    about: 'show or set the readers and writers of a document',
    options: [
      { flags: '--see <who>', about: 'its readers', repeat: true },
      { flags: '--write <who>', about: 'its writers, among the readers', repeat: true },
      { flags: '--create', about: 'create a missing document with this access from the start' }
    ],
    more: [
      'WHO: everybody (in no sandbox), nobody, mine (your machines as they are now), a tier (that or more powerful, in no sandbox),',
      'sandbox:<id>, or members by name or id; several with commas. With a tier, sandbox:<id> lets those of that tier pass, else all that are in it. The creator and the',
      'owner of the mesh always may, and only they may set it. What is left out stays as it is.',
      '',
      "Example: a2a-node doc access notes --see everybody --write 'L1,phone'"
    ],
    load: async () => (await import('../commands/doc/access.js')).documentAccess
  },
  {
    name: 'rm',
    args: '<doc>',
    about: 'remove a document from this node; other nodes keep theirs',
    options: [
      { flags: '--everywhere', about: 'remove it from the mesh, for good (its creator, and the owner of the mesh)' },
      { flags: '--yes', about: 'do not ask' }
    ],
    more: [
      'Changes that no other node has are lost. Reading or writing it again fetches it again.',
      'With --everywhere its creator has room for another document, and its name stays taken.'
    ],
    load: async () => (await import('../commands/doc/doc.js')).removeDocument
  }
]
