import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import * as Y from 'yjs'
import { NodeError } from '../../../src/kit/errors.js'
import { partText, wholeEdit } from '../../../src/cli/documents/part.js'
import { toWire } from '../../../src/adapters/control/wire.js'
import { documentDetail, readingOf } from '../samples.js'
import { fakeHome } from '../command-line.js'
import { nestLists } from '../../support/documents.js'
import { arbJson } from '../../support/mcp.js'

test('a printed part that is set again is the same, for any content', (t: Assert) => {
  const json = arbJson({ maxDepth: 3 })
  const part = fc.oneof(
    fc.string().map((value) => ({ type: 'text' as const, value })),
    fc
      .dictionary(fc.constantFrom('a', 'b', '$bytes', '$$bytes'), json)
      .map((value) => ({ type: 'map' as const, value })),
    fc.array(fc.oneof(json, fc.uint8Array())).map((value) => ({ type: 'list' as const, value }))
  )
  fc.assert(
    fc.property(part, ({ type, value }) => {
      const edit = wholeEdit({ type, root: 'x' }, partText({ type, value }))
      const back = 'text' in edit ? edit.text : 'map' in edit ? edit.map : edit.list
      t.is(JSON.stringify(toWire(back)), JSON.stringify(toWire(value)))
    }),
    { numRuns: 200 }
  )
})

test('JSON that is nested too deep is refused before anything goes through it, wherever it is typed', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, { calls: { 'documents.read': ({ type }) => readingOf(type, []) } })
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  for (const levels of [5000, 100_000]) {
    const ran = await cli(['doc', 'set', 'd', '-', '--type', 'list'], { stdin: deep(levels) })
    t.is(ran.code, 2, ran.stderr)
    t.ok(ran.stderr.includes('what a list is set to goes beyond a limit: nested deeper than 36  [USAGE]'), ran.stderr)
  }
  for (const args of [
    ['call', 'text', 'text.stats', '-'],
    ['swarm', 'run', 'g', '--capability', 'c', '--input', deep(20_000)]
  ]) {
    const ran = await cli(args, { stdin: deep(20_000) })
    t.is(ran.code, 2, ran.stderr)
    t.ok(ran.stderr.includes('goes beyond a limit: nested deeper than 32  [USAGE]'), ran.stderr)
  }
  t.absent(fake.seen.some(({ name }) => ['documents.edit', 'message.call', 'swarm.start'].includes(name)))
})

test('the part that is meant is the one that holds something; of several one has to be named, with the commands to type', async (t: Assert) => {
  const values: Record<string, unknown> = { text: '', map: {}, list: ['x'] }
  const { run: cli, fake } = await fakeHome(t, {
    calls: { 'documents.read': ({ type, root }) => readingOf(type, root === undefined ? values[type] : 'named') }
  })
  t.alike(JSON.parse((await cli(['doc', 'get', 'notes'])).stdout), ['x'])
  values['list'] = []
  t.is((await cli(['doc', 'get', 'notes'])).stdout, '', 'an empty one is an empty text')
  values['text'] = 'a'
  values['map'] = { b: 1 }
  const ran = await cli(['doc', 'get', 'notes'])
  t.is(ran.code, 4)
  t.ok(
    ran.stderr.includes('[AMBIGUOUS_NAME]') && ran.stderr.includes('try: a2a-node doc get notes --type map\n'),
    ran.stderr
  )
  t.alike(JSON.parse((await cli(['doc', 'get', 'notes', '--type', 'map'])).stdout), { b: 1 })
  t.is((await cli(['doc', 'get', 'notes', '--type', 'text', '--root', 'codemirror'])).stdout, 'named')
  t.alike(fake.seen.at(-1)?.params, { document: 'notes', type: 'text', root: 'codemirror' })
  t.is(
    (JSON.parse((await cli(['doc', 'get', 'notes', '--type', 'text', '--json'])).stdout) as { schema: string }).schema,
    'a2a-node/doc@1'
  )
})

test('rejected edits of a member are reported beside the document, which is printed alone', async (t: Assert) => {
  const skipped = [{ node: { id: 'b', name: 'bob' }, reason: 'its member signed two different blocks at one place' }]
  const reading = { ...readingOf('text', 'of ann'), skipped }
  const detail = {
    ...{
      id: reading.id,
      name: 'notes',
      creator: { id: 'a', name: 'ann' },
      createdAt: '',
      bytes: 1,
      blocks: 1,
      writers: 1,
      following: true
    },
    ...{ may: { write: true, restrict: false }, access: null, streams: [], skipped }
  }
  const { run: cli } = await fakeHome(t, { calls: { 'documents.read': () => reading, 'documents.show': () => detail } })
  for (const args of [
    ['doc', 'get', 'notes', '--type', 'text'],
    ['doc', 'export', 'notes', '--type', 'text']
  ]) {
    const ran = await cli(args)
    t.is(ran.stdout, 'of ann')
    t.ok(
      ran.stderr.includes('not all that bob wrote is in it: its member signed two different blocks at one place'),
      ran.stderr
    )
    t.ok(ran.stderr.includes('try: a2a-node doc show notes\n'), ran.stderr)
  }
  const exported = await cli(['doc', 'export', 'notes', '--type', 'text', '--format', 'json'])
  t.alike(JSON.parse(exported.stdout), { text: 'of ann' })
  t.ok(exported.stderr.includes('not all that bob wrote is in it'), exported.stderr)
  for (const format of ['text', 'json']) {
    const { stdout } = await cli(['doc', 'export', 'notes', '--type', 'text', '--format', format, '--json'])
    t.alike((JSON.parse(stdout) as { skipped: unknown }).skipped, skipped, format)
  }
})

test('a usual name with another type hides no readable part; alone, the error names the export command', async (t: Assert) => {
  const values: Record<string, unknown> = { map: { b: 1 }, list: [] }
  const { run: cli } = await fakeHome(t, {
    calls: {
      'documents.read': ({ type }) => {
        if (type === 'text')
          throw new NodeError('CONFLICT', 'the document has something else than a text under this name')
        return readingOf(type, values[type])
      }
    }
  })
  t.alike(JSON.parse((await cli(['doc', 'get', 'notes'])).stdout), { b: 1 })
  values['map'] = {}
  const ran = await cli(['doc', 'get', 'notes'])
  t.ok(
    ran.stderr.includes('[CONFLICT]') && ran.stderr.includes('try: a2a-node doc export notes --format json\n'),
    ran.stderr
  )
})

test('an export as JSON has all parts, and names one that cannot be read', async (t: Assert) => {
  const doc = new Y.Doc()
  const paragraph = new Y.XmlElement('p')
  doc.getText('rich').insert(0, 'hello')
  doc.getText('rich').insertEmbed(5, paragraph as never)
  nestLists(doc.getArray('deep'), 300)
  const update = Y.encodeStateAsUpdate(doc)
  const open = { type: 'open', session: 'doc_1', clientId: null, update } as const
  const { run: cli } = await fakeHome(t, { calls: { 'documents.show': () => documentDetail('notes') }, live: [open] })
  const ran = await cli(['doc', 'export', 'notes', '--format', 'json'])
  t.is(ran.code, 0)
  t.alike(JSON.parse(ran.stdout), { rich: ['hello', '<p></p>'] })
  t.ok(ran.stderr.includes('the part deep cannot be read: it is nested deeper than 256 levels'), ran.stderr)
  const { parts, unreadable } = JSON.parse(
    (await cli(['doc', 'export', 'notes', '--format', 'json', '--json'])).stdout
  ) as Record<string, unknown>
  t.alike(
    [parts, unreadable],
    [{ rich: ['hello', '<p></p>'] }, [{ root: 'deep', reason: 'it is nested deeper than 256 levels' }]]
  )
})
