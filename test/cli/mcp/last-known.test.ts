import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { LastKnown, MAX_KNOWN_BYTES } from '../../../src/cli/mcp/last-known.js'
import { CLAIM, request } from '../../support/mcp.js'
import { tempDir } from '../../support/tmp.js'

const LIST = request(1, 'tools/list')
const page = (cursor: string): Record<string, unknown> => request(1, 'tools/list', { cursor })

async function place(t: Assert): Promise<string> {
  return path.join(await tempDir(t), 'mcp-clients', '0123456789abcdef.json')
}

test('answers are kept by method, era, version and page, and a new first page drops the later ones', async (t: Assert) => {
  const file = await place(t)
  const known = new LastKnown(file)
  const rows: [Record<string, unknown>, Record<string, unknown>][] = [
    [LIST, { tools: [1], nextCursor: 'a' }],
    [page('a'), { tools: [2] }],
    [request(1, 'tools/list', { _meta: CLAIM }), { tools: [3] }],
    [request(1, 'prompts/list'), { prompts: [] }],
    [request(1, 'initialize', { protocolVersion: '2025-06-18' }), { v: 1 }],
    [request(1, 'initialize', { protocolVersion: '2024-11-05' }), { v: 2 }]
  ]
  for (const [asked, result] of rows) known.learn(asked, result)
  known.write()
  const later = new LastKnown(file)
  for (const [asked, result] of rows) t.alike(later.answerTo(asked), result)
  later.learn(LIST, { tools: [4] })
  t.is(later.answerTo(page('a')), null)
  t.alike(later.answerTo(request(1, 'tools/list', { _meta: CLAIM })), { tools: [3] })
  later.learn(request(1, 'tools/call', { name: 'x' }), { content: [] })
  t.is(later.answerTo(request(1, 'tools/call', { name: 'x' })), null, 'the answer of a call is never repeated')
  t.is((await fs.stat(file)).mode & 0o777, 0o600)
  t.alike(await fs.readdir(path.dirname(file)), [path.basename(file)], 'nothing half-written stays')
})

test('a damaged, foreign or newer file counts as none, and is replaced', async (t: Assert) => {
  const file = await place(t)
  await fs.mkdir(path.dirname(file))
  const texts = [
    '',
    '{',
    'null',
    '[]',
    '7',
    '{"format":2,"answers":{}}',
    '{"format":1,"answers":[1]}',
    '{"format":1,"answers":{"tools/list handshake ":7}}'
  ]
  for (const text of texts) {
    await fs.writeFile(file, text)
    const known = new LastKnown(file)
    t.is(known.answerTo(LIST), null, text)
    known.learn(LIST, { tools: [] })
    known.write()
    t.alike(new LastKnown(file).answerTo(LIST), { tools: [] }, text)
  }
})

test('state is bounded: answers of a file, its bytes, files of a home', async (t: Assert) => {
  const file = await place(t)
  const known = new LastKnown(file)
  for (let i = 0; i < 200; i++) known.learn(page(`${i}`), { tools: [i] })
  known.write()
  const { answers } = JSON.parse(await fs.readFile(file, 'utf8')) as { answers: object }
  t.is(Object.keys(answers).length, 64)
  t.alike(known.answerTo(page('199')), { tools: [199] }, 'the newest ones')
  const large = new LastKnown(file)
  large.learn(LIST, { tools: ['x'.repeat(MAX_KNOWN_BYTES)] })
  large.write()
  t.is(new LastKnown(file).answerTo(LIST), null, 'one that is too large is not kept')
  for (let i = 0; i < 40; i++) {
    const one = new LastKnown(path.join(path.dirname(file), `${String(i).padStart(16, '0')}.json`))
    one.learn(LIST, { tools: [i] })
    one.write()
  }
  t.is((await fs.readdir(path.dirname(file))).length, 32)
})

test('a place that cannot be written harms no client', async (t: Assert) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'file'), '')
  const known = new LastKnown(path.join(dir, 'file', 'x.json'))
  known.learn(LIST, { tools: [] })
  known.write()
  t.alike(known.answerTo(LIST), { tools: [] })
})
