import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import { AGENT_FORMAT, TOP_LEVEL_KEYS } from '../src/adapters/agents/files/agent-file-schema.js'
import { runAgentFile } from '../src/compose/compose.js'
import { encodeMessage, FRAME } from '../src/domain/channel/frames.js'
import { encodeEnvelope } from '../src/domain/envelope/codec.js'
import { MESSAGE_TYPES, OPENING_TYPES } from '../src/domain/envelope/envelope.js'
import { CONTROL_SCHEMAS } from '../src/domain/channel/control.js'
import { DENY_STATUS } from '../src/domain/membership/pairing-status.js'
import { fencesOf, withoutFences } from './support/markdown.js'
import { tempDir } from './support/tmp.js'

const PAGES = fs.readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`)
const DOCS = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...PAGES].filter((name) =>
  name.endsWith('.md')
)
const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000
}

function read(name: string): string {
  return fs.readFileSync(name, 'utf8')
}

/** The text of a file; '' for one that is not there. */
function textOf(name: string): string {
  return fs.existsSync(name) ? read(name) : ''
}

function sources(): string[] {
  const names = fs.readdirSync('src', { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts')).map((name) => path.join('src', name))
}

/**
 * `64 KiB`, `1,000`, `10 s`, `5/s`, `burst 9` as a number of bytes, of milliseconds or of whatever is counted; null for
 * anything else.
 */
function numberOf(text: string): number | null {
  const match = /^(?:burst )?([\d,]+)(?: (\w+))?(?:\/s|\/min)?$/.exec(text.trim())
  const unit = match?.[2] === undefined ? 1 : UNITS[match[2]]
  return match?.[1] === undefined || unit === undefined ? null : Number(match[1].replaceAll(',', '')) * unit
}

/**
 * The value of a constant: of plain numbers, their products and members of one line by reading it, of anything else by
 * import.
 */
async function constantOf(file: string, name: string): Promise<unknown> {
  const [first = '', ...members] = name.split('.')
  const pattern =
    members.length === 0
      ? String.raw`([\d_]+(?: \* [\d_]+)*)$`
      : String.raw`\{[^}\n]*\b${members.join('.')}: ([\d_]+(?: \* [\d_]+)*)`
  const line = new RegExp(String.raw`^(?:export )?const ${first}\b[^=]*= ${pattern}`, 'm').exec(read(file))?.[1]
  if (line !== undefined) {
    return line.split('*').reduce((product, part) => product * Number(part.replaceAll('_', '')), 1)
  }
  const module = (await import(new URL(`../${file.replace(/\.ts$/, '.js')}`, import.meta.url).href)) as Record<
    string,
    unknown
  >
  return members.reduce<unknown>(
    (value, member) => (value as Record<string, unknown> | undefined)?.[member],
    module[first]
  )
}

/** The titles of tests that a document cites, each with its file. */
function citedIn(text: string): { readonly file: string; readonly title: string }[] {
  const behind = /`(test\/[\w./-]+)`((?:(?:\s|,|;|same file| and |\n- )*"[^"\n]+")+)/g
  const cited = [...text.matchAll(behind)].flatMap(([, file = '', titles = '']) =>
    titlesIn(titles).map((title) => ({ file, title }))
  )
  const [sentence = '', file = ''] = /Tests without a file are in `(test\/[\w./-]+)`/.exec(text) ?? []
  const rows =
    sentence === ''
      ? ''
      : text
          .slice(text.indexOf(sentence))
          .replaceAll(behind, '')
          .replace(/^(?!\|).*$/gm, '')
  return [...cited, ...titlesIn(rows).map((title) => ({ file, title }))]
}

function titlesIn(text: string): string[] {
  return [...text.matchAll(/"([^"\n]+)"/g)].map(([, title = '']) => title)
}

test('every number in LIMITS.md is that of its constant', async (t) => {
  const rows = [...read('docs/LIMITS.md').matchAll(/^\| (.+) \| (.+) \| (`src[^|]+`) \|$/gm)]
  t.ok(rows.length > 400, 'there are rows')
  for (const [, limit = '', values = '', cited = ''] of rows) {
    const [written, places] = [values.split(', '), cited.replaceAll('`', '').split(', ')]
    t.is(written.length, places.length, `${limit}: as many values as constants`)
    for (const [at, place] of places.entries()) {
      const [file = '', name] = place.split('#')
      const value = numberOf(written[at] ?? '')
      if (!fs.existsSync(file)) t.fail(`${limit}: there is no ${file}`)
      else if (name === undefined || value === null) t.fail(`${limit}: ${values} at ${place} cannot be compared`)
      else t.is(await constantOf(file, name), value, `${limit}: ${place}`)
    }
  }
})

test('every limit that the sources export is in LIMITS.md', (t) => {
  const text = read('docs/LIMITS.md')
  for (const file of sources()) {
    for (const [, name = ''] of read(file).matchAll(
      /^export const (\w*(?:MAX|LIMITS)\w*)\b[^=]*= (?:[\d_ *]+$|[A-Z{])/gm
    )) {
      // The bounds of a card's JSON are tighter ones of what is listed.
      if (name !== 'CARD_JSON_LIMITS') t.ok(text.includes(`${file}#${name}`), `${file}#${name}`)
    }
  }
})

test('every file that the documents name exists, and so does every test and identifier they cite', (t) => {
  const all = new Set(sources().map((file) => path.basename(file)))
  for (const name of DOCS) {
    const text = read(name)
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:)([^)#\s]+)[^)]*\)/g)) {
      t.ok(fs.existsSync(path.join(path.dirname(name), link)), `${name} links to ${link}`)
    }
    for (const [, file = '', identifier] of text.matchAll(
      /`((?:src|test|scripts|bin|docs|\.ci)\/[\w./-]+)(?:#(\w+)[\w.]*)?`/g
    )) {
      t.ok(fs.existsSync(file), `${name} names ${file}`)
      if (identifier !== undefined) t.ok(textOf(file).includes(identifier), `${name} names ${file}#${identifier}`)
    }
    for (const [, file = ''] of text.matchAll(/`([\w-]+\.ts)`/g)) t.ok(all.has(file), `${name} names ${file}`)
    for (const { file, title } of citedIn(text)) t.ok(textOf(file).includes(title), `${name} cites ${file} "${title}"`)
  }
})

test('titles are found wherever documents cite them: behind a file, in a list below one, in a table of one file', (t) => {
  const text =
    '| `test/a.test.ts` "1", "2"; same file, "3" and `test/b.test.ts` "4" |\n`test/c.test.ts`\n\n- "5"\n- "6"\n'
  t.is(
    citedIn(text)
      .map(({ file, title }) => `${file[5]}${title}`)
      .join(' '),
    'a1 a2 a3 b4 c5 c6'
  )
  t.alike(citedIn('Tests without a file are in `test/d.test.ts`.\n\n| x | "7" |'), [
    { file: 'test/d.test.ts', title: '7' }
  ])
})

test('AGENTS.md names every key of an agent file, and its example is an agent that works', async (t) => {
  const text = read('docs/AGENTS.md')
  const [, ...sections] = text.split(/^#+ /m)
  const sectionOf = (title: string): string => sections.find((one) => one.startsWith(title)) ?? ''
  const keys: readonly (readonly [string, readonly string[]])[] = [
    ['At the top level', TOP_LEVEL_KEYS],
    ['Inside `a2a`', AGENT_FORMAT.knownKeys(['a2a'])],
    ['`capabilities`', AGENT_FORMAT.knownKeys(['a2a', 'capabilities', 0])],
    ['`prompts`', AGENT_FORMAT.knownKeys(['a2a', 'prompts', 0])],
    ['`prompts`', AGENT_FORMAT.knownKeys(['a2a', 'prompts', 0, 'arguments', 0])],
    ['`limits`', AGENT_FORMAT.knownKeys(['a2a', 'limits'])],
    ['`runtime` of type `command`', AGENT_FORMAT.knownKeys(['a2a', 'runtime'], 'command')],
    ['`runtime` of type `module`', AGENT_FORMAT.knownKeys(['a2a', 'runtime'], 'module')],
    ['`runtime` of type `llm`', AGENT_FORMAT.knownKeys(['a2a', 'runtime'], 'llm')],
    ['`runtime` of type `llm`', AGENT_FORMAT.knownKeys(['a2a', 'runtime', 'budget'], 'llm')]
  ]
  for (const [title, names] of keys)
    for (const name of names)
      t.ok(new RegExp(`^\\|[^|]*\`${name}\`[^|]*\\|`, 'm').test(sectionOf(title)), `${title}: ${name}`)
  const dir = await tempDir(t)
  const fences = fencesOf(text)
  fs.writeFileSync(path.join(dir, 'greeter.md'), fences.find((one) => one.language === 'markdown')?.text ?? '')
  fs.writeFileSync(path.join(dir, 'greeter.mjs'), fences.find((one) => one.language === 'js')?.text ?? '')
  const outcome = await runAgentFile(path.join(dir, 'greeter.md'), null, { input: { name: 'Ada' } })
  t.alike(outcome, { ok: true, result: { text: 'Hello, Ada' } })
})

/** One row of the import rules in scripts/check-layers.mjs. */
interface LayerRule {
  readonly layers: readonly string[] | '*'
  readonly types?: readonly string[]
  readonly npm: readonly string[] | '*'
  readonly node: boolean
  readonly pure?: boolean
  readonly typesOnly?: boolean
}

/** An import rule as the table of ARCHITECTURE.md has it: layer, imports, packages, built-ins. */
function ruleRow([name, { layers, types = [], npm, node, pure = false, typesOnly = false }]: readonly [
  string,
  LayerRule
]): string[] {
  const listed = (items: readonly string[] | '*'): string =>
    items === '*' ? 'all' : items.length === 0 ? 'none' : items.join(', ')
  const imports = types.length === 0 ? listed(layers) : `${listed(layers)}; types: ${types.join(', ')}`
  const access = node ? 'yes' : `${pure ? 'pure' : 'no'}${typesOnly ? ', types only' : ''}`
  return [`\`src/${name === '' ? '*.ts' : name}\``, imports, listed(npm), access]
}

test('ARCHITECTURE.md quotes the import rules as they are checked, and explains every dependency', async (t) => {
  const text = read('docs/ARCHITECTURE.md')
  const { LAYERS } = (await import(pathToFileURL(path.resolve('scripts/check-layers.mjs')).href)) as {
    LAYERS: Record<string, LayerRule>
  }
  const rows = [...text.matchAll(/^\| (`src\/\S+`) \| .+? \| (.+?) \| (.+?) \| (.+?) \|$/gm)].map((row) => row.slice(1))
  t.alike(rows, Object.entries(LAYERS).map(ruleRow), 'the table is that of scripts/check-layers.mjs')
  const reasons = [...text.slice(text.indexOf('## Dependencies')).matchAll(/^\| (`.+`) \| \S.* \|$/gm)].map(
    ([, names = '']) => names
  )
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
  const explained = reasons.flatMap((names) => names.split(', '))
  t.alike(
    explained.toSorted(),
    Object.keys(dependencies)
      .map((name) => `\`${name}\``)
      .toSorted()
  )
  for (const layer of fs.readdirSync('src', { withFileTypes: true })) {
    if (layer.isDirectory() && layer.name !== 'adapters') t.ok(text.includes(`\`src/${layer.name}\``), layer.name)
  }
})

test('A2A-COMPLIANCE.md lists the sections of the specification that have a test', (t) => {
  const rows = [...read('docs/A2A-COMPLIANCE.md').matchAll(/^\| .+ \| `(test\/compliance\/\S+)` \| ([\d., ]+) \|$/gm)]
  t.is(rows.length, 3)
  for (const [, file = '', listed = ''] of rows) {
    const tested = new Set(
      [...read(file).matchAll(/\.test\(\s*['"`](\d+(?:\.\d+)+) /g)].map(([, section = '']) => section)
    )
    t.alike(listed.split(', ').toSorted(), [...tested].toSorted(), file)
  }
})

test('PROTOCOL.md has the numbers and bytes of the wire', (t) => {
  const text = read('docs/PROTOCOL.md')
  for (const [number, type] of MESSAGE_TYPES.entries())
    t.ok(text.includes(`| ${number} | \`${type}\` | ${OPENING_TYPES.has(type) ? 'yes ' : ''}|`), type)
  for (const [kind, number] of Object.entries(FRAME)) t.ok(text.includes(`| ${number} | \`${kind}\` |`), kind)
  for (const [code, number] of Object.entries(DENY_STATUS)) t.ok(text.includes(`| ${number} | \`${code}\` |`), code)
  for (const name of Object.keys(CONTROL_SCHEMAS)) t.ok(text.includes(`| \`${name}\` |`), name)
  const noStream = (): number => 0
  const envelope = encodeEnvelope({
    id: 'm1',
    schemaVersion: 1,
    sender: 'a@n',
    recipient: 'b@m',
    type: 'request',
    timestamp: 1,
    payload: { x: 1 },
    metadata: { tier: 1 }
  })
  const frames = [
    ...encodeMessage({ kind: 'ping', nonce: 7 }, noStream),
    ...encodeMessage({ kind: 'control', name: 'cancel', body: { requestId: 'r#1' } }, noStream)
  ]
  const shown = fencesOf(text).filter((one) => one.language === 'hex')
  t.alike(
    shown.map((one) => one.text.trim()),
    [frames.map(hex).join('\n'), hex(envelope)]
  )
})

/** Words of our own, which the field does not know; and how many words a sentence may have. */
const PRIVATE = /\b(?:tales?|seats?|seated|shelf|shelves|couriers?|roads?|desks?|wish(?:es|ed)?|news)\b/i
const MAX_SENTENCE = 25

/** The prose of a document: without code, the titles that it cites, and the targets of its links. */
function proseOf(text: string): string {
  return withoutFences(text)
    .replaceAll(/`[^`]*`/g, 'X')
    .replaceAll(/"[^"\n]*"/g, 'X')
    .replaceAll(/\]\([^)]*\)/g, ']')
}

/** Sentences of more words than they may have. A cell of a table is one; a colon and a semicolon end one. */
function longSentences(text: string): string[] {
  const parts = proseOf(text)
    .split('\n')
    .flatMap((line) => (line.startsWith('|') ? line.split('|') : [line]))
    .flatMap((line) => line.split(/(?<=[.!?:;])\s+/))
  return parts.filter((part) => part.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length > MAX_SENTENCE)
}

test('documents have short sentences and words of the field', (t) => {
  for (const name of DOCS.filter((one) => one !== 'CHANGELOG.md')) {
    t.alike(longSentences(read(name)), [], `${name}: sentences of more than ${MAX_SENTENCE} words`)
    t.is(PRIVATE.exec(proseOf(read(name)))?.[0], undefined, `${name}: a private word`)
  }
  t.is(longSentences(`${'word '.repeat(26)}.\n`).length, 1)
  t.ok(PRIVATE.test(proseOf('the seat of a node')) && !PRIVATE.test(proseOf('`seat` and "a seat"')))
})

/**
 * What is wrong with a sequence drawing: a line of no known form, a participant that is not declared, a block that is
 * not closed.
 */
function drawingFaults(drawing: string): string[] {
  const [first = '', ...lines] = drawing.trim().split('\n')
  const declared = new Set<string>()
  const faults = first === 'sequenceDiagram' ? [] : [first]
  let open = 0
  for (const line of lines.map((one) => one.trim())) {
    const participant = /^participant (\w+) as \S/.exec(line)?.[1]
    const [, names = '', text = ''] = /^(?:Note over )?(\w+(?:(?:-?->>|,)\w+)?): ?(\S.*)$/.exec(line) ?? []
    if (participant !== undefined) declared.add(participant)
    else if (/^(?:alt|opt|loop) \S/.test(line)) open++
    else if (line === 'end') open--
    else if (
      !/^else \S/.test(line) &&
      (text.replaceAll('#35;', '').includes(';') || !names.split(/-?->>|,/).every((one) => declared.has(one)))
    )
      faults.push(line)
  }
  return open === 0 ? faults : [...faults, `${open} blocks are open`]
}

test('the sequence drawings of PROTOCOL.md can be drawn', (t) => {
  const drawings = fencesOf(read('docs/PROTOCOL.md')).filter((one) => one.language === 'mermaid')
  t.ok(drawings.length >= 12, 'each exchange has one')
  for (const { text } of drawings) t.alike(drawingFaults(text), [])
  const bad = 'sequenceDiagram\n  participant A as a\n  opt x\n  A->>B: y\n  A->>A: y; z\n'
  t.alike(drawingFaults(bad), ['A->>B: y', 'A->>A: y; z', '1 blocks are open'])
})

test('every name of our own that PROTOCOL.md gives stands in the sources', (t) => {
  const text = read('docs/PROTOCOL.md')
  const code = sources().map(read).join('\n')
  const names = new Set([...text.matchAll(/[`"](a2a-node\/[a-z0-9/]+)[`"]/g)].map(([, name = '']) => name))
  t.ok(names.size >= 7)
  for (const name of names) t.ok(code.includes(`'${name}'`), name)
})

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
}
