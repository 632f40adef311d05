import type { CommandRow, OptionSpec } from '../terminal/table.js'

const TYPE: OptionSpec = {
  flags: '--type <type>',
  about: 'which part of the document (default: the one that holds something, else text)',
  choices: ['text', 'map', 'list']
}
const ROOT: OptionSpec = { flags: '--root <name>', about: 'name of the part in the document (default: the word given for --type)' }
const PART: readonly OptionSpec[] = [TYPE, ROOT]

/** The commands below `doc`. */
export const DOC_COMMANDS: readonly CommandRow[] = [
  { name: 'ls', about: 'the documents that this node may see', load: async () => (await import('../commands/doc/doc.js')).listDocuments },
  {
    name: 'show',
    args: '<doc>',
    about: 'who wrote a document, how much, and who may see and write it',
    load: async () => (await import('../commands/doc/doc.js')).showDocument
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
    about: 'make a document equal to a text or JSON; creates it where there is none',
    options: PART,
    more: [
      '- as text reads it from stdin. Only the difference is written: what others change elsewhere at the same time stays.',
      '',
      'Example: a2a-node doc set settings \'{"color":"blue"}\' --type map'
    ],
    load: async () => (await import('../commands/doc/text.js')).setDocument
  },
  {
    name: 'edit',
    args: '<doc>',
    about: 'open a document in $VISUAL or $EDITOR and write what you changed',
    options: PART,
    more: ['What others write meanwhile stays. Nothing is written when the editor fails: what was typed then stays in its file.'],
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
    about: 'show or set who may see and who may write a document',
    options: [
      { flags: '--see <who>', about: 'who may see it', repeat: true },
      { flags: '--write <who>', about: 'who of them may write it', repeat: true },
      { flags: '--create', about: 'create it, with this access from its first moment, where there is none' }
    ],
    more: [
      'WHO: everybody (in no sandbox), nobody, a tier (that or more powerful, in no sandbox), sandbox:<id>, or members by name or',
      'id; several with commas. With a tier, sandbox:<id> lets those of that tier pass, else all that are in it. The creator and the',
      'owner of the mesh always may, and only they may set it. What is left out stays as it is.',
      '',
      "Example: a2a-node doc access notes --see everybody --write 'L1,phone'"
    ],
    load: async () => (await import('../commands/doc/access.js')).documentAccess
  },
  {
    name: 'rm',
    args: '<doc>',
    about: 'keep a document here no longer; others keep theirs',
    options: [{ flags: '--yes', about: 'do not ask' }],
    more: ['What nobody else has of it by now is lost. Reading or writing it again fetches it again.'],
    load: async () => (await import('../commands/doc/doc.js')).removeDocument
  }
]
