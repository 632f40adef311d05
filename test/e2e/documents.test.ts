import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { untilText, write } from '../support/document-nodes.js'
import { type LocalNode, localMesh, until } from '../support/nodes.js'

async function isThere(file: string): Promise<boolean> {
  return await fs.stat(file).then(
    () => true,
    () => false
  )
}

/** What a call fails with. */
async function codeOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => null,
    (error: { code?: unknown }) => error.code
  )
}

test('a text edited on one node is there on the two others, for each editor, and after a restart', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  for (const node of [a, b, c])
    t.absent(await isThere(path.join(node.home, 'documents')), 'no document, no store for them')
  t.ok((await a.api.call('documents.create', { name: 'notes' })).created)
  await write(a, 'hello')
  await Promise.all([b, c].map((node) => untilText(node, 'hello')))
  await write(b, 'hello world')
  await Promise.all([a, c].map((node) => untilText(node, 'hello world')))
  const { documents } = await c.api.call('documents.list', {})
  t.alike(
    documents.map(({ name, writers, may }) => [name, writers, may]),
    [['notes', 2, { write: true, restrict: false }]]
  )
  await b.stop()
  const again = await mesh.start('b', { home: b.home })
  t.is((await again.api.call('documents.read', { document: 'notes', type: 'text' })).value, 'hello world')
  await write(again, 'hello again')
  await Promise.all([a, c].map((node) => untilText(node, 'hello again')))
})

test('a text of a million characters is set in one go and read on another node, and a larger one too', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  const line = 'a line of a long text\n'
  const million = line.repeat(50_000).slice(0, 1_000_000)
  // More than a call of the control API carries.
  const more = `🌍 ${million}${line.repeat(30_000)}`
  for (const text of [million, more, 'short']) {
    const set = await a.cli(['doc', 'set', 'notes', '-'], text)
    t.is(set.code, 0, set.stderr)
    await untilText(b, text)
    t.ok((await b.cli(['doc', 'get', 'notes'])).stdout === text)
  }
  const tooLarge = await a.cli(
    ['doc', 'set', 'values', '-', '--type', 'map'],
    JSON.stringify({ key: 'x'.repeat(300_000) })
  )
  t.ok(tooLarge.stderr.includes('[PAYLOAD_TOO_LARGE]'), tooLarge.stderr)
  t.ok(tooLarge.stderr.includes('a single value'), tooLarge.stderr)
})

test('a member that may not see a document has nothing of it, and one that may not write it is refused', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  const members = [a.info.node.id, b.info.node.id]
  const none = { tier: null } as const
  await b.api.call('documents.create', { name: 'hidden', see: { members, ...none }, write: { ...none } })
  await b.api.call('documents.create', { name: 'notes' })
  await write(b, 'a secret', 'hidden')
  await untilText(a, 'a secret', 'hidden')
  await c.api.call('documents.create', { name: 'own' })
  // What comes behind it over the same links is there.
  await write(b, 'known')
  await untilText(c, 'known')
  t.alike(
    (await c.api.call('documents.list', {})).documents.map(({ name }) => name),
    ['notes', 'own']
  )
  t.is(await codeOf(c.api.call('documents.read', { document: 'hidden', type: 'text' })), 'DOCUMENT_NOT_FOUND')
  t.is(await codeOf(write(c, 'mine', 'hidden')), 'DOCUMENT_NOT_FOUND')
  await c.stop()
  const files = await fs.readdir(c.home, { recursive: true, withFileTypes: true })
  for (const file of files.filter((one) => one.isFile())) {
    const bytes = await fs.readFile(path.join(file.parentPath, file.name))
    t.absent(bytes.includes('a secret'), file.name)
  }
  // The owner of the mesh always may; a list without it is written for others.
  t.is((await write(a, 'a secret of two', 'hidden')).value, 'a secret of two')
  await untilText(b, 'a secret of two', 'hidden')
})

test('a member that loses the right to write is refused, and its earlier edits stay everywhere', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  await a.api.call('documents.create', { name: 'notes' })
  await write(a, 'one')
  await untilText(b, 'one')
  await write(b, 'one two')
  await Promise.all([a, c].map((node) => untilText(node, 'one two')))
  t.is(await codeOf(b.api.call('documents.restrict', { document: 'notes', see: {}, write: {} })), 'FORBIDDEN')
  await a.api.call('documents.restrict', { document: 'notes', see: {}, write: { members: ['c'], tier: null } })
  await until(b.api, 'documents.list', {}, ({ documents }) => documents.some(({ may }) => !may.write))
  t.is(await codeOf(write(b, 'one two three')), 'FORBIDDEN')
  await until(c.api, 'documents.list', {}, ({ documents }) => documents[0]?.writers === 2)
  await write(c, 'one two four')
  await Promise.all([a, b].map((node) => untilText(node, 'one two four')))
  await until(c.api, 'documents.list', {}, ({ documents }) => documents[0]?.writers === 3)
  const { streams } = await c.api.call('documents.show', { document: 'notes' })
  t.alike(Object.fromEntries(streams.map(({ node, mayWrite }) => [node.name, mayWrite])), {
    a: true,
    b: false,
    c: true
  })
})
