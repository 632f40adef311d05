import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { DocumentReading } from '../../src/ports/document-api.js'
import { freePort, testMesh, type TestNode, until, untilOnline, untilTrue } from '../support/nodes.js'

/** Resolves when a text of a document is so on a node. */
async function untilText(node: TestNode, text: string, document = 'notes'): Promise<void> {
  await until(node.api, 'documents.list', {}, ({ documents }) => documents.some(({ name }) => name === document))
  await until(node.api, 'documents.read', { document, type: 'text' }, ({ value }) => value === text)
}

function write(node: TestNode, text: string, document = 'notes'): Promise<DocumentReading> {
  return node.api.call('documents.edit', { document, edit: { type: 'text', text } })
}

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

test('a text that is edited on one node is there on the two others, whoever edits it, and after a restart', async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  for (const node of [a, b, c]) t.absent(await isThere(path.join(node.home, 'documents')), 'no document, no store for them')
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

test('what a node wrote before it was killed for good comes to a member that was away, from a third', async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  await b.api.call('documents.create', { name: 'notes' })
  await write(b, 'first')
  await Promise.all([a, c].map((node) => untilText(node, 'first')))
  await c.stop()
  await write(b, 'first, and the last words')
  await untilText(a, 'first, and the last words')
  b.kill('SIGKILL')
  await b.exited
  const back = await mesh.start('c', { home: c.home })
  await untilText(back, 'first, and the last words')
  await write(back, 'first, and the last words, and more')
  await untilText(a, 'first, and the last words, and more')
  t.pass()
})

test('a member that may not see a document has nothing of it, and one that may not write it is refused', async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
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

test('who loses the right to write is refused, and what it wrote until then stays everywhere', async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
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
  t.alike(Object.fromEntries(streams.map(({ node, mayWrite }) => [node.name, mayWrite])), { a: true, b: false, c: true })
})

/** The whole document of a node, as bytes of one update. */
async function stateOf(node: TestNode): Promise<string> {
  const { value } = await node.api.call('documents.read', { document: 'notes', type: 'text' })
  const event = await until(node.api, 'documents.live', { document: 'notes' }, ({ type }) => type === 'open')
  return event.type === 'open' ? `${String(value)} ${Buffer.from(event.update).toString('base64')}` : ''
}

test('five writers of one text, online and offline in turn, have the same bytes in the end', { timeout: 180_000 }, async (t) => {
  const mesh = await testMesh(t)
  const nodes = await mesh.meshOf('a', 'b', 'c', 'd', 'e')
  await nodes[0]?.api.call('documents.create', { name: 'notes' })
  for (const node of nodes) await until(node.api, 'documents.list', {}, ({ documents }) => documents.length === 1)
  const insert = (node: TestNode, text: string): Promise<unknown> =>
    node.api.call('documents.edit', { document: 'notes', edit: { type: 'text', splice: { at: 0, remove: 0, insert: text } } })
  await Promise.all(nodes.map((node) => insert(node, `${node.name}0.`)))
  for (const [round, away] of [1, 4, 2].entries()) {
    const one = nodes[away]
    if (one === undefined) throw new Error('no such node')
    // It edits where nobody hears it, while the others go on.
    await one.stop()
    const alone = await mesh.start(one.name, { home: one.home, env: { A2A_NODE_LOCAL_PORT: String(await freePort()) } })
    const others = nodes.filter((node) => node !== one)
    await Promise.all([alone, ...others].map((node) => insert(node, `${node.name}${round + 1}.`)))
    await alone.stop()
    nodes[away] = await mesh.start(one.name, { home: one.home })
  }
  const marks = nodes.flatMap(({ name }) => [0, 1, 2, 3].map((round) => `${name}${round}.`))
  for (const node of nodes)
    await until(node.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) =>
      marks.every((mark) => String(value).includes(mark))
    )
  // To hold the document is to announce a session, so bytes are compared once all of them are there.
  const isOne = async (): Promise<boolean> => new Set(await Promise.all(nodes.map(stateOf))).size === 1
  await untilTrue(isOne, 'all have the same bytes')
  t.pass()
})

/** A copy of a stopped node's home, as no backup is: its streams then have two tales. */
async function twinOf(node: TestNode, dir: string): Promise<string> {
  const home = path.join(dir, 'twin')
  await fs.cp(node.home, home, { recursive: true })
  // The stores notice that they were copied by these files alone.
  for (const store of ['store', 'documents']) await fs.rm(path.join(home, store, 'CORESTORE'))
  return home
}

test('a member that writes two tales of its stream is stopped in the document, and the others go on', { timeout: 120_000 }, async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  await a.api.call('documents.create', { name: 'notes' })
  await write(a, 'kept. ')
  await untilText(b, 'kept. ')
  await write(b, 'kept. first. ')
  await Promise.all([a, c].map((node) => untilText(node, 'kept. first. ')))
  await b.stop()
  const twin = await twinOf(b, await mesh.dir())
  const alone = await mesh.start('b', { home: b.home, env: { A2A_NODE_LOCAL_PORT: String(await freePort()) } })
  await write(alone, 'kept. first. left')
  await alone.stop()
  const right = await mesh.start('b', { home: twin })
  await write(right, 'kept. first. right')
  await Promise.all([a, c].map((node) => untilText(node, 'kept. first. right')))
  await right.stop()
  const left = await mesh.start('b', { home: b.home })
  await untilOnline(left, 2)
  await Promise.all([a, c].map((node) => untilText(node, 'kept. ')))
  await write(c, 'kept. And more.')
  await untilText(a, 'kept. And more.')
  const stopped = async (): Promise<boolean> =>
    (await a.api.call('documents.show', { document: 'notes' })).streams.some(({ stopped: why }) => /two different blocks/.test(why ?? ''))
  await untilTrue(stopped, 'it is told')
  t.ok(a.errors().includes('CRDT_DESERIALIZATION_FAILED'), 'and logged with its source')
  t.ok(a.errors().includes(b.info.node.id))
  const { problems } = await a.api.call('node.status', {})
  t.ok(
    problems.some(({ message }) => message.startsWith('b signed two different blocks of the document notes')),
    'and in status'
  )
})

test('a node whose store of documents was put back writes without a fork, and everybody converges', { timeout: 120_000 }, async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  await a.api.call('documents.create', { name: 'notes' })
  await untilText(b, '')
  await write(b, 'one. ')
  await Promise.all([a, c].map((node) => untilText(node, 'one. ')))
  await b.stop()
  const [store, copy] = [path.join(b.home, 'documents'), path.join(await mesh.dir(), 'older')]
  await fs.cp(store, copy, { recursive: true })
  const second = await mesh.start('b', { home: b.home })
  await write(second, 'one. two. ')
  await Promise.all([a, c].map((node) => untilText(node, 'one. two. ')))
  await second.stop()
  await fs.rm(store, { recursive: true })
  await fs.cp(copy, store, { recursive: true })
  await fs.rm(path.join(store, 'CORESTORE'))
  // Nobody can tell it of what it wrote.
  const alone = await mesh.start('b', { home: b.home, env: { A2A_NODE_LOCAL_PORT: String(await freePort()) } })
  t.is((await alone.api.call('documents.read', { document: 'notes', type: 'text' })).value, 'one. ')
  await write(alone, 'three. one. ')
  await alone.stop()
  const back = await mesh.start('b', { home: b.home })
  await Promise.all([a, back, c].map((node) => untilText(node, 'three. one. two. ')))
  const { streams } = await a.api.call('documents.show', { document: 'notes' })
  t.alike(
    streams.map(({ node, stopped }) => [node.name, stopped]),
    [
      ['b', null],
      ['b', null]
    ]
  )
})
