import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { type ServerEntry, stateOf } from '../../../src/cli/clients/entry.js'
import { jsonFormat } from '../../../src/cli/clients/json-format.js'
import { asNodeError } from '../../../src/kit/errors.js'
import { failsWith } from '../../support/fails.js'
import { jsoncTexts } from './jsonc-texts.js'

const ENTRY: ServerEntry = { type: 'stdio', command: '/opt/node', args: ['/opt/a2a-node.js', 'mcp', 'serve'] }
const OTHER: ServerEntry = { ...ENTRY, args: [...ENTRY.args, '--home', 'C:\\näme "x"'] }
const FORMAT = jsonFormat('mcpServers')
const NAME = 'a2a-node'

function lines(...all: string[]): string {
  return `${all.join('\n')}\n`
}

test('property: adding to a JSON file and taking out again gives the same bytes, and adding twice is adding once', (t: Assert) => {
  const runs = 2000
  fc.assert(
    fc.property(jsoncTexts('mcpServers'), (text) => {
      const once = FORMAT.put(text, NAME, ENTRY)
      if (stateOf(FORMAT.find(once, NAME), ENTRY) !== 'same') throw new Error(`not found in ${once}`)
      if (FORMAT.put(once, NAME, ENTRY) !== once) throw new Error(`a second time is another text: ${once}`)
      if (FORMAT.remove(once, NAME) !== text)
        throw new Error(`${JSON.stringify(text)} became ${JSON.stringify(FORMAT.remove(once, NAME))}`)
      if (FORMAT.remove(text, NAME) !== text) throw new Error('taking out what is not there changed something')
    }),
    { numRuns: runs }
  )
  t.pass(`${runs} texts`)
})

test('property: an entry that starts another home is brought up to date, and the rest stays', (t: Assert) => {
  fc.assert(
    fc.property(jsoncTexts('servers'), (text) => {
      const format = jsonFormat('servers')
      const now = format.put(format.put(text, NAME, OTHER), NAME, ENTRY)
      if (stateOf(format.find(now, NAME), ENTRY) !== 'same') throw new Error(now)
      if (format.remove(now, NAME) !== text)
        throw new Error(`${JSON.stringify(text)} became ${JSON.stringify(format.remove(now, NAME))}`)
    }),
    { numRuns: 500 }
  )
  t.pass('500 texts')
})

test('a new server stands behind the others, in the style of the file', (t: Assert) => {
  const text = lines('{', '\t"mcpServers": {', '\t\t"x": { "command": "x" } // mine', '\t},', '\t"last": 1', '}')
  const want = lines(
    '{',
    '\t"mcpServers": {',
    '\t\t"x": { "command": "x" }, // mine',
    '\t\t"a2a-node": {',
    '\t\t\t"type": "stdio",',
    '\t\t\t"command": "/opt/node",',
    '\t\t\t"args": [',
    '\t\t\t\t"/opt/a2a-node.js",',
    '\t\t\t\t"mcp",',
    '\t\t\t\t"serve"',
    '\t\t\t]',
    '\t\t}',
    '\t},',
    '\t"last": 1',
    '}'
  )
  t.is(FORMAT.put(text, NAME, ENTRY), want)
})

test('a file that is not there, or has no value, gets one', (t: Assert) => {
  const fresh = FORMAT.put('', NAME, { command: 'a2a-node', args: [] })
  t.is(
    fresh,
    lines(
      '{',
      '  "mcpServers": {',
      '    "a2a-node": {',
      '      "command": "a2a-node",',
      '      "args": []',
      '    }',
      '  }',
      '}'
    )
  )
  t.is(FORMAT.put('// servers', NAME, ENTRY).split('\n')[0], '// servers')
  t.alike(JSON.parse(FORMAT.remove(FORMAT.put('', NAME, ENTRY), NAME)), {})
  t.is(FORMAT.find(' \n', NAME), undefined)
})

test('the additions of a person to the entry stay when it is updated', (t: Assert) => {
  const text = lines(
    '{ "mcpServers": {',
    '  "a2a-node": {',
    '    "command": "/old/node", // was 18',
    '    "args": ["/old/a2a-node.js", "mcp", "serve"],',
    '    "env": { "A": "1" },',
    '  },',
    '} }'
  )
  const want = lines(
    '{ "mcpServers": {',
    '  "a2a-node": {',
    '    "command": "/opt/node", // was 18',
    '    "args": ["/opt/a2a-node.js","mcp","serve"],',
    '    "env": { "A": "1" },',
    '    "type": "stdio",',
    '  },',
    '} }'
  )
  t.is(FORMAT.put(text, NAME, ENTRY), want)
})

test('an entry of another program is replaced as a whole', (t: Assert) => {
  const text = '{"mcpServers":{"a2a-node":{"url":"http://x","headers":{"K":"v"}},"b":{}}}'
  t.is(
    FORMAT.put(text, NAME, { command: 'c', args: ['d'] }),
    '{"mcpServers":{"a2a-node":{"command":"c","args":["d"]},"b":{}}}'
  )
})

test('an entry goes from any place, comments around it stay', (t: Assert) => {
  const entry = JSON.stringify(ENTRY)
  const removed = (text: string): string => FORMAT.remove(text.replace('@', `"a2a-node": ${entry}`), NAME)
  t.is(removed('{"mcpServers": {@, "b": 1}}'), '{"mcpServers": { "b": 1}}')
  t.is(removed('{"mcpServers": {"a": 1, @, "b": 1}}'), '{"mcpServers": {"a": 1, "b": 1}}')
  t.is(
    removed('{"mcpServers": {"a": 1 /* x */, /* y */ @ /* z */}}'),
    '{"mcpServers": {"a": 1 /* x */ /* y */ /* z */}}'
  )
  t.is(removed('{"mcpServers": { // mine\n@ }}'), '{"mcpServers": { // mine\n }}')
  t.is(removed('{"mcpServers": { // mine\n@, "b": 1 }}'), '{"mcpServers": { // mine\n "b": 1 }}')
})

test('a text that is no object, no JSON, or has a name twice is refused', async (t: Assert) => {
  const wrong = [
    '[]',
    '"x"',
    '{',
    '{"a": }',
    '{} {}',
    "{'a': 1}",
    '{"a": 1 "b": 2}',
    '{"mcpServers": []}',
    '{"mcpServers": null}',
    '{"mcpServers": "x"}',
    '{"mcpServers": {}, "mcpServers": {}}',
    '{"mcpServers": {"a2a-node": {}, "a2a-node": {}}}',
    '['.repeat(100_000)
  ]
  for (const text of wrong) {
    for (const act of [
      () => FORMAT.find(text, NAME),
      () => FORMAT.put(text, NAME, ENTRY),
      () => FORMAT.remove(text, NAME)
    ]) {
      await failsWith(t, 'CONFIG_INVALID', act)
    }
  }
})

test('members named __proto__ are text like any other', (t: Assert) => {
  const text =
    '{"__proto__": {"mcpServers": {"a2a-node": {}}}, "mcpServers": {"__proto__": {"command": "a2a-node", "args": ["mcp", "serve"]}}}'
  t.is(FORMAT.find(text, NAME), undefined)
  t.is(FORMAT.remove(FORMAT.put(text, NAME, ENTRY), NAME), text)
})

test('a file that is nested as deep as one likes is edited, or refused in words', (t: Assert) => {
  const outcomeOf = (depth: number): string => {
    try {
      return FORMAT.put(`{ "other": ${'['.repeat(depth)}${']'.repeat(depth)} }`, NAME, ENTRY).includes(NAME)
        ? 'edited'
        : 'not edited'
    } catch (error) {
      return asNodeError(error).code
    }
  }
  t.is(outcomeOf(20), 'edited')
  for (const depth of [500, 1000, 2000, 3000, 4000, 5000, 6000]) {
    const outcome = outcomeOf(depth)
    t.ok(outcome === 'edited' || outcome === 'CONFIG_INVALID', `${depth}: ${outcome}`)
  }
  t.is(outcomeOf(50_000), 'CONFIG_INVALID')
})
