import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { parse } from 'yaml'
import { type ServerEntry, stateOf } from '../../../src/cli/clients/entry.js'
import { GOOSE_SHAPE } from '../../../src/cli/clients/shapes.js'
import { yamlFormat } from '../../../src/cli/clients/yaml-format.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

const ENTRY: ServerEntry = { command: '/opt/node', args: ['/opt/a2a-node.js', 'mcp', 'serve'] }
const OTHER: ServerEntry = { ...ENTRY, args: [...ENTRY.args, '--home', 'C:\\näme "x"\u007f: #'] }
const FORMAT = yamlFormat('extensions', GOOSE_SHAPE)
const NAME = 'a2a-node'

const LINES = [
  'a@: 1 # extensions:',
  'b@: "# no comment: \\" "',
  "c@: 'it''s'",
  'd@: |\n  a2a-node:\n    cmd: x',
  'e@:\n  - [1, 2]\n  - { x: y }',
  'f@: { g: [h] }',
  '"i@": null',
  '# a comment',
  ''
]
const SERVERS = [
  's@: { type: builtin, enabled: true }',
  't@:\n  type: stdio\n  cmd: x\n  args:\n    - a2a-node\n    - mcp # x',
  '# a comment',
  'u@:\n  description: >-\n    long\n    text'
]

/** YAML texts without the entry; every name is used once. */
const TEXTS = fc
  .record({
    head: fc.array(fc.constantFrom(...LINES), { maxLength: 4 }),
    servers: fc.array(fc.constantFrom(...SERVERS), { maxLength: 3 }),
    tail: fc.array(fc.constantFrom(...LINES), { maxLength: 3 }),
    indent: fc.constantFrom('  ', '    '),
    eol: fc.constantFrom('\n', '\r\n'),
    end: fc.constantFrom('', '\n', '\n\n')
  })
  .map(({ head, servers, tail, indent, eol, end }) => {
    let count = 0
    const inside = servers.map((one) => indent + one.replaceAll('\n', `\n${indent}`))
    const block = servers.some((one) => !one.startsWith('#')) ? ['extensions:', ...inside] : []
    const all = [...head, ...block, ...tail].map((one) => one.replaceAll('@', () => String(count++)))
    return (all.join('\n') + end).replaceAll('\n', eol)
  })

test('property: adding to a YAML file and taking out again gives the same servers, and adding twice is adding once', async (t: Assert) => {
  await holds(
    t,
    fc.property(TEXTS, (text) => {
      const once = FORMAT.put(text, NAME, ENTRY)
      if (stateOf(FORMAT.find(once, NAME), ENTRY) !== 'same') throw new Error(`not found in ${once}`)
      const changed = FORMAT.put(once, NAME, OTHER)
      if (stateOf(FORMAT.find(changed, NAME), OTHER) !== 'same') throw new Error(`not changed in ${changed}`)
      if (FORMAT.put(changed, NAME, ENTRY) !== once) throw new Error(`not changed back in ${changed}`)
      const lines = (one: string): string => one.replace(/[\r\n]*$/, '')
      if (lines(FORMAT.remove(once, NAME)) !== lines(text)) throw new Error(`other bytes: ${FORMAT.remove(once, NAME)}`)
    }),
    300
  )
})

test('a file of Goose gets an extension, and one that this program made goes with it', (t: Assert) => {
  const made = FORMAT.put('', NAME, ENTRY)
  t.alike(parse(made), {
    extensions: {
      'a2a-node': {
        enabled: true,
        type: 'stdio',
        name: 'a2a-node',
        cmd: '/opt/node',
        args: ['/opt/a2a-node.js', 'mcp', 'serve']
      }
    }
  })
  t.is(FORMAT.remove(made, NAME), '')
})

test('an entry of ours keeps the keys of the user, and whether it is on', (t: Assert) => {
  const text = FORMAT.put('', NAME, ENTRY)
    .replace('enabled: true', 'enabled: false # not now')
    .replace('type:', 'timeout: 300\n    type:')
  const changed = FORMAT.put(text, NAME, OTHER)
  t.ok(changed.includes('enabled: false # not now') && changed.includes('timeout: 300'), changed)
  t.is(stateOf(FORMAT.find(changed, NAME), OTHER), 'same')
})

test('an extension of another program under that name is replaced whole', (t: Assert) => {
  const text = 'extensions:\n  a2a-node:\n    type: sse\n    uri: https://example.test\n  b:\n    type: builtin\n'
  t.is(stateOf(FORMAT.find(text, NAME), ENTRY), 'foreign')
  const changed = FORMAT.put(text, NAME, ENTRY)
  t.absent(changed.includes('sse') || changed.includes('uri'), changed)
  t.alike((parse(changed) as { extensions: { b: unknown } }).extensions.b, { type: 'builtin' })
})

test('a file that is not understood or written in braces is left alone', async (t: Assert) => {
  for (const text of [
    'extensions: [1]',
    'extensions: {}',
    'extensions: { a: { type: builtin } }',
    'extensions: x',
    '- a',
    'a: 1\na: 2',
    'a: [',
    '{ extensions: { } }',
    'a: &x [*x]',
    'a: 1\n---\nb: 2'
  ])
    await failsWith(t, 'CONFIG_INVALID', () => FORMAT.put(text, NAME, ENTRY))
})
