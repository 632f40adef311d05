import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import type { RawItem } from '../../../src/cli/items/source.js'
import type { NodeError } from '../../../src/kit/errors.js'
import { parseTemplate, plainInput } from '../../../src/cli/items/template.js'
import { codeOf } from '../../contracts/node-api.js'
import { arbJson } from '../../support/mcp.js'
import { holds } from '../../support/holds.js'

const LINE: RawItem = { name: 'one', value: 'one', file: null, contents: null }
const OBJECT: RawItem = { name: '{"a":1}', value: { a: 1 }, file: null, contents: null }
const FILE: RawItem = { name: 'a.txt', value: 'a.txt', file: 'a.txt', contents: 'hello' }
const SWARM = { goal: 'a letter', round: 2, check: 'too long' }
const BINARY: RawItem = { ...FILE, contents: new Uint8Array([1]) }

test('without a template an object is the input, a line is its item, a file its path and contents', (t: Assert) => {
  t.alike(plainInput(LINE), { item: 'one' })
  t.alike(plainInput(OBJECT), { a: 1 })
  t.alike(plainInput({ ...FILE, contents: null }), { file: 'a.txt' })
  t.alike(plainInput(FILE), { file: 'a.txt', text: 'hello' })
  t.alike(plainInput(BINARY), { file: 'a.txt', bytes: new Uint8Array([1]) })
})

test('a string that is only a placeholder takes the value, inside a longer one its text', (t: Assert) => {
  const template = parseTemplate('{"v":"{item}","s":"say {item}!","deep":[{"x":"{item}"}],"n":5,"{item}":1}')
  t.alike(template.inputOf(OBJECT, SWARM), {
    v: { a: 1 },
    s: 'say {"a":1}!',
    deep: [{ x: { a: 1 } }],
    n: 5,
    '{item}': 1
  })
  t.alike(template.inputOf(LINE, SWARM), { v: 'one', s: 'say one!', deep: [{ x: 'one' }], n: 5, '{item}': 1 })
})

test('files offer {file} and, attached, {text}', (t: Assert) => {
  t.alike(parseTemplate('{"path":"{file}","body":"{text}"}').inputOf(FILE, SWARM), { path: 'a.txt', body: 'hello' })
})

test('a placeholder without a value, and a template that is no JSON or nested too deep, are USAGE', async (t: Assert) => {
  const fails = async (text: string, item: RawItem): Promise<string | null> =>
    await codeOf((async () => void parseTemplate(text).inputOf(item, SWARM))())
  t.is(await fails('{"x":"{file}"}', LINE), 'USAGE')
  t.is(await fails('{"x":"{text}"}', LINE), 'USAGE')
  t.is(await fails('{"x":"{text}"}', { ...FILE, contents: null }), 'USAGE')
  t.is(await fails('{"x":"{text}"}', BINARY), 'USAGE')
  t.is(await fails('{item}', LINE), 'USAGE')
  t.is(await fails(`${'['.repeat(100_000)}${']'.repeat(100_000)}`, LINE), 'USAGE')
})

test('the topic of the swarm is known in every template, with items and without', (t: Assert) => {
  const template = parseTemplate('{"about":"{goal}","n":"{round}","last":"round {round}: {check}"}')
  const filled = { about: 'a letter', n: 2, last: 'round 2: too long' }
  t.alike(template.inputOf(null, SWARM), filled)
  t.alike(template.inputOf(LINE, SWARM), filled)
  t.alike([template.needsItems, parseTemplate('"{goal} {item}"').needsItems], [false, true])
})

test('doubled and other braces are literal, and inserted texts are not parsed again', (t: Assert) => {
  t.is(parseTemplate('"{{other}} {{item}} {} {1} {a = b}"').inputOf(LINE, SWARM), '{other} {item} {} {1} {a = b}')
  t.is(parseTemplate('"a {item} b"').inputOf({ ...LINE, value: '{file}' }, SWARM), 'a {file} b')
})

test('a member of an item is a placeholder with a slash', (t: Assert) => {
  const nested = { ...OBJECT, value: { a: { b: [7, 8] } } }
  t.alike(parseTemplate('{"n":"{item/a/b/1}","s":"b: {item/a/b}"}').inputOf(nested, SWARM), { n: 8, s: 'b: [7,8]' })
})

/** The refusal of a template, for an item. */
async function refusal(text: string, item: RawItem | null = LINE): Promise<NodeError | null> {
  try {
    await Promise.resolve(parseTemplate(text).inputOf(item, SWARM))
    return null
  } catch (error) {
    return error as NodeError
  }
}

test('an unknown or malformed placeholder is refused before any item, and the next step is a template that is taken', async (t: Assert) => {
  const cases = [
    ['{"x":"{itme}"}', '{itme}', '{"x":"{item}"}'],
    ['{"x":"a {other} b"}', '{other}', '{"x":"a {{other}} b"}'],
    ['{"x":["{item.a}"]}', '{item.a}', '{"x":["{item/a}"]}'],
    ['{"x":"{ item }"}', '{ item }', '{"x":"{item}"}'],
    ['{"x":"{item[a]}"}', '{item[a]}', '{"x":"{item/a}"}'],
    ['{"x":"{item:status}"}', '{item:status}', '{"x":"{{item:status}}"}'],
    ['{"x":"{input}"}', '{input}', '{"x":"{{input}}"}'],
    ['{"x":"{Item}"}', '{Item}', '{"x":"{item}"}']
  ] as const
  const object = { ...OBJECT, value: { a: 'one' } }
  for (const [text, unknown, mended] of cases) {
    const error = await refusal(text)
    t.is(error?.code, 'USAGE')
    t.ok(error?.message.includes(`there is no placeholder ${unknown}`), error?.message)
    t.alike(error?.next, [`--input '${mended}'`])
    t.is(await refusal(mended, object), null, mended)
  }
  const two = await refusal('{"a":"{itme}","b":"{nothing/x}"}')
  t.ok(two?.message.includes('(and 1 more)'), two?.message)
  t.alike(two?.next, [`--input '{"a":"{item}","b":"{{nothing/x}}"}'`])
})

test('a member that an item lacks is refused with the name of the item', async (t: Assert) => {
  for (const [text, item] of [
    ['{"x":"{item/b}"}', OBJECT],
    ['{"x":"{item/constructor}"}', OBJECT],
    ['{"x":"{item/0}"}', LINE],
    ['{"x":"{goal/a}"}', LINE]
  ] as const) {
    const error = await refusal(text, item)
    t.is(error?.code, 'USAGE')
    t.ok(error?.message.endsWith(`has no value in ${item.name}`), error?.message)
  }
})

test('a template without placeholders stays as it is for every item', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbJson({ maxDepth: 4 }), fc.string(), (value, line) => {
      const text = JSON.stringify(value)
      if (/[{][{\s]*[A-Za-z]/.test(text)) return true
      const template = parseTemplate(text)
      return JSON.stringify(template.inputOf({ ...LINE, value: line }, SWARM)) === text
    }),
    200
  )
})
