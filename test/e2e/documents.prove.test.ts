import test from 'brittle'
import * as Y from 'yjs'
import { untilText, write } from '../support/document-nodes.js'
import { type LocalNode, localMesh, testMesh, type TestNode, until } from '../support/nodes.js'

test('the last edits of a node killed for good reach a member that was away, from a third', async (t) => {
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
  const texts = [a, back].map(async ({ api }) => await api.call('documents.read', { document: 'notes', type: 'text' }))
  t.alike(
    (await Promise.all(texts)).map(({ value }) => value),
    ['first, and the last words, and more', 'first, and the last words, and more']
  )
})

test('a new member reads a document of several writers whole at once, and so does its program', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.api.call('documents.create', { name: 'notes' })
  await untilText(b, '')
  for (let line = 0; line < 100; line++)
    for (const { api, name } of [a, b])
      await api.call('documents.edit', {
        document: 'notes',
        edit: { type: 'text', splice: { at: 0, remove: 0, insert: `${name} ${line}\n` } }
      })
  const isWhole = (text: unknown): boolean => String(text).split('\n').length === 201
  await until(a.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => isWhole(value))
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 4 })
  for (const name of ['c', 'd', 'e', 'f']) {
    const { api } = await mesh.start(name, { join: code })
    const [first] = await Promise.all([
      until(api, 'documents.live', { document: 'notes' }, () => true),
      api
        .call('documents.read', { document: 'notes', type: 'text' })
        .then(({ value }) => t.ok(isWhole(value), `${name} reads it whole`))
    ])
    const doc = new Y.Doc()
    if (first.type === 'open') Y.applyUpdate(doc, first.update)
    t.ok(isWhole(doc.getText('text').toJSON()), `a program of ${name} begins with the whole`)
  }
})
