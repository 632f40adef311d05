import { bodyMax } from '../../../src/adapters/control/wire.js'
import { encodeEnvelope } from '../../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../../src/domain/envelope/envelope.js'
import { failsWith } from '../../support/fails.js'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { ATTACHED_MAX, ATTACHMENT_MAX, listItems, readItems } from '../../../src/cli/items/source.js'
import { NodeError } from '../../../src/kit/errors.js'
import { codeOf } from '../../contracts/node-api.js'
import { tempDir } from '../../support/tmp.js'

function thrownBy(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}

test('lines are items, JSON objects are taken apart, blank lines are none', (t: Assert) => {
  const items = listItems('one\r\n\n  \n{"file":"x"}\n{broken\n[1]\n')
  t.alike(
    items.map(({ name, value }) => ({ name, value })),
    [
      { name: 'one', value: 'one' },
      { name: '{"file":"x"}', value: { file: 'x' } },
      { name: '{broken', value: '{broken' },
      { name: '[1]', value: '[1]' }
    ]
  )
})

test('a JSON array gives its elements, named by their JSON', (t: Assert) => {
  const items = listItems('[ "a", {"b":1}, 7, null ]')
  t.alike(
    items.map((one) => one.name),
    ['a', '{"b":1}', '7', 'null']
  )
  t.alike(
    items.map((one) => one.value),
    ['a', { b: 1 }, 7, null]
  )
})

test('JSON of items that is nested deeper than inputs may be is USAGE and names the limit', (t: Assert) => {
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  for (const text of [deep(100_000), `[${deep(33)}]`, `{"a":${deep(100_000)}}`]) {
    const error = thrownBy(() => listItems(text))
    t.ok(
      error instanceof NodeError && error.code === 'USAGE' && error.message.includes('nested deeper than 33'),
      String(error)
    )
  }
  t.is(listItems(`[${deep(32)}]`).length, 1)
})

test('any text gives items with a name and never throws', (t: Assert) => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '\n', '[', ']', '{', '}', '"', ' ', '\r', ':'), maxLength: 40 }),
      (text) => {
        return listItems(text).every((one) => one.name.length > 0 && one.name.length <= 4096)
      }
    ),
    { numRuns: 500 }
  )
  t.is(listItems('x'.repeat(10_000))[0]?.value, 'x'.repeat(10_000))
})

test('a glob gives files, with --attach their contents as text or bytes', async (t: Assert) => {
  const cwd = await tempDir(t)
  await writeFile(path.join(cwd, 'a.txt'), 'hällo')
  await writeFile(path.join(cwd, 'b.bin'), new Uint8Array([0xff, 0xfe, 0]))
  const named = await readItems('*', { cwd, attach: false })
  t.alike(
    named.map(({ name, file, contents }) => ({ name, file, contents })),
    [
      { name: 'a.txt', file: 'a.txt', contents: null },
      { name: 'b.bin', file: 'b.bin', contents: null }
    ]
  )
  const attached = await readItems('*', { cwd, attach: true })
  t.is(attached[0]?.contents, 'hällo')
  t.alike(attached[1]?.contents, new Uint8Array([0xff, 0xfe, 0]))
})

test('a file too large to attach is named', async (t: Assert) => {
  const cwd = await tempDir(t)
  await writeFile(path.join(cwd, 'fits.txt'), 'x'.repeat(ATTACHMENT_MAX))
  t.is((await readItems('*.txt', { cwd, attach: true })).length, 1)
  await writeFile(path.join(cwd, 'large.txt'), 'x'.repeat(ATTACHMENT_MAX + 1))
  try {
    await readItems('*.txt', { cwd, attach: true })
    t.fail('accepted')
  } catch (error) {
    t.ok(error instanceof NodeError && error.code === 'USAGE' && error.message.includes('large.txt'))
  }
})

test('an attached file fits in a message, and more files than a request takes are refused', async (t: Assert) => {
  const payload = { requestId: 'r', attempt: 1, capability: 'c', input: { bytes: new Uint8Array(ATTACHMENT_MAX) } }
  const header = { id: 'm', schemaVersion: SCHEMA_VERSION, sender: 'a@b', recipient: 'c@d', timestamp: 1 }
  t.ok(encodeEnvelope({ ...header, type: 'request', payload }).byteLength > ATTACHMENT_MAX)
  t.ok((ATTACHED_MAX * 4) / 3 < bodyMax('swarm.start'))
  const cwd = await tempDir(t)
  const whole = Math.floor(ATTACHED_MAX / ATTACHMENT_MAX)
  for (let at = 0; at <= whole; at++) await writeFile(path.join(cwd, `${at}.bin`), new Uint8Array(ATTACHMENT_MAX))
  t.is((await readItems(`[0-${whole - 1}].bin`, { cwd, attach: true })).length, whole)
  await failsWith(t, 'USAGE', () => readItems('*.bin', { cwd, attach: true }))
  t.is((await readItems('*.bin', { cwd, attach: false })).length, whole + 1)
})

test('a path that exists is a list of lines, although it looks like a glob', async (t: Assert) => {
  const cwd = await tempDir(t)
  await writeFile(path.join(cwd, '[list]'), 'one\ntwo\n')
  t.alike(
    (await readItems('[list]', { cwd, attach: false })).map((one) => one.name),
    ['one', 'two']
  )
})

test('a source that gives nothing is USAGE: no match, no file, a directory, an empty list', async (t: Assert) => {
  const cwd = await tempDir(t)
  await mkdir(path.join(cwd, 'dir'))
  await writeFile(path.join(cwd, 'empty'), '\n\n')
  await writeFile(path.join(cwd, 'list'), 'a\n')
  for (const source of ['*.nothing', 'missing.txt', 'dir', 'empty'])
    t.is(await codeOf(readItems(source, { cwd, attach: false })), 'USAGE', source)
  t.is(await codeOf(readItems('list', { cwd, attach: true })), 'USAGE', '--attach with lines')
})

test('more items than a swarm takes are refused before anything is sent', async (t: Assert) => {
  const cwd = await tempDir(t)
  await writeFile(path.join(cwd, 'list'), 'x\n'.repeat(10_001))
  t.is(await codeOf(readItems('list', { cwd, attach: false })), 'USAGE')
})
