import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { type ServerEntry, stateOf } from '../../../src/cli/clients/entry.js'
import { tomlFormat } from '../../../src/cli/clients/toml-format.js'
import { failsWith } from '../../support/fails.js'

const ENTRY: ServerEntry = { command: '/opt/node', args: ['/opt/a2a-node.js', 'mcp', 'serve'] }
const OTHER: ServerEntry = { ...ENTRY, args: [...ENTRY.args, '--home', 'C:\\näme "x"\u007f'] }
const FORMAT = tomlFormat('mcp_servers')
const NAME = 'a2a-node'
const TABLE = '[mcp_servers.a2a-node]\ncommand = "/opt/node"\nargs = ["/opt/a2a-node.js", "mcp", "serve"]\n'

const PAIRS = [
  'a@ = 1 # [mcp_servers.a2a-node]',
  'b@ = "# no comment ]"',
  "c@ = 'C:\\'",
  'd@ = """\n[mcp_servers.a2a-node]\ncommand = "x" \\""" # ""\n"""""',
  "e@ = '''\n[x]\n''''",
  'f@ = [ # [\n  "]", [1, 2],\n\n]',
  'g@ = { h = "}", i = [1] }',
  'j@ = 1979-05-27T07:32:00Z',
  'k@ = 9007199254740993',
  '"l.@".m = nan',
  '# a comment',
  '',
  '   ',
  '\t# [mcp_servers.a2a-node]'
]
const HEADERS = [
  '[t@]',
  '[ mcp_servers . s@ ]',
  '[mcp_servers.s@.env] # env',
  '[["x@"]]',
  '[mcp_servers."a2a-node.@"]',
  "[ 'q]@'.r ]"
]

/** Valid TOML texts without the entry: pairs, then tables with pairs; every name is used once. */
const TEXTS = fc
  .record({
    head: fc.array(fc.constantFrom(...PAIRS), { maxLength: 5 }),
    tables: fc.array(fc.tuple(fc.constantFrom(...HEADERS), fc.array(fc.constantFrom(...PAIRS), { maxLength: 4 })), {
      maxLength: 4
    }),
    eol: fc.constantFrom('\n', '\r\n'),
    end: fc.constantFrom('', '\n', '\n\n', '\n\n\n')
  })
  .map(({ head, tables, eol, end }) => {
    let count = 0
    const all = [...head, ...tables.flatMap(([header, pairs]) => [header, ...pairs])].map((one) =>
      one.replaceAll('@', () => String(count++))
    )
    return (all.join('\n') + end).replaceAll('\n', eol)
  })

test('property: adding to a TOML file and taking out again gives the same bytes, and adding twice is adding once', (t: Assert) => {
  fc.assert(
    fc.property(TEXTS, (text) => {
      const once = FORMAT.put(text, NAME, ENTRY)
      if (stateOf(FORMAT.find(once, NAME), ENTRY) !== 'same') throw new Error(`not found in ${once}`)
      if (!once.startsWith(text)) throw new Error('something before the entry changed')
      if (FORMAT.put(once, NAME, ENTRY) !== once) throw new Error(`a second time is another text: ${once}`)
      if (FORMAT.remove(once, NAME) !== text)
        throw new Error(`${JSON.stringify(text)} became ${JSON.stringify(FORMAT.remove(once, NAME))}`)
      if (FORMAT.remove(text, NAME) !== text) throw new Error('taking out what is not there changed something')
    }),
    { numRuns: 1000 }
  )
  t.pass('1,000 texts')
})

test('property: an entry of a TOML file that starts another home is brought up to date, and the rest stays', (t: Assert) => {
  fc.assert(
    fc.property(TEXTS, (text) => {
      const now = FORMAT.put(FORMAT.put(text, NAME, OTHER), NAME, ENTRY)
      if (now !== FORMAT.put(text, NAME, ENTRY)) throw new Error(now)
    }),
    { numRuns: 300 }
  )
  t.pass('300 texts')
})

test('a table is added behind an empty line, and is all of a new file', (t: Assert) => {
  t.is(FORMAT.put('', NAME, ENTRY), TABLE)
  t.is(FORMAT.put('a = 1\n', NAME, ENTRY), `a = 1\n\n${TABLE}`)
  t.is(FORMAT.put('a = 1', NAME, ENTRY), `a = 1\n\n${TABLE.trimEnd()}`)
})

test('keys and comments that a person added to the table stay when it is brought up to date', (t: Assert) => {
  const text = [
    '[mcp_servers."a2a-node"] # mine',
    'args = [',
    '  "/old/a2a-node.js", # old',
    '  "mcp", "serve"',
    '] # args',
    'startup_timeout_sec = 20',
    'command = "/opt/node"',
    '[mcp_servers.a2a-node.env]',
    'A = "1"',
    ''
  ].join('\n')
  const want = [
    '[mcp_servers."a2a-node"] # mine',
    'args = ["/opt/a2a-node.js", "mcp", "serve"] # args',
    ...text.split('\n').slice(5)
  ].join('\n')
  t.is(FORMAT.put(text, NAME, ENTRY), want)
})

test('a table of another program is replaced with all that is below it, wherever that stands', (t: Assert) => {
  const text =
    'a = 1\n\n[mcp_servers.a2a-node]\nurl = "http://x"\n\n[b]\nc = 2\n\n[mcp_servers.a2a-node.env]\nA = "1"\n\n[d]\n'
  t.is(FORMAT.put(text, NAME, ENTRY), `a = 1\n\n${TABLE}\n[b]\nc = 2\n\n[d]\n`)
  t.is(FORMAT.remove(text, NAME), 'a = 1\n\n[b]\nc = 2\n\n[d]\n')
})

test('an entry that is written another way is read, not edited', async (t: Assert) => {
  const value = '{ command = "a2a-node", args = ["mcp", "serve"] }'
  for (const text of [
    `[mcp_servers]\na2a-node = ${value}\n`,
    `mcp_servers.a2a-node = ${value}\n`,
    `mcp_servers = { a2a-node = ${value} }\n`
  ]) {
    t.is(stateOf(FORMAT.find(text, NAME), ENTRY), 'outdated')
    await failsWith(t, 'CONFIG_INVALID', () => FORMAT.put(text, NAME, ENTRY))
    await failsWith(t, 'CONFIG_INVALID', () => FORMAT.remove(text, NAME))
  }
  await failsWith(t, 'CONFIG_INVALID', () => FORMAT.put('mcp_servers = { b = {} }\n', NAME, ENTRY))
})

test('a text that is no TOML, or whose servers are no table, is refused', async (t: Assert) => {
  for (const text of [
    'a =',
    '[a',
    'a = 1\na = 2',
    'mcp_servers = 1',
    '[[mcp_servers]]',
    '{"mcpServers": {}}',
    `a = ${'['.repeat(100_000)}`
  ]) {
    await failsWith(t, 'CONFIG_INVALID', () => FORMAT.find(text, NAME))
    await failsWith(t, 'CONFIG_INVALID', () => FORMAT.put(text, NAME, ENTRY))
  }
})
