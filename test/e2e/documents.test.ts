import test from 'brittle'
import type { DocumentReading } from '../../src/ports/document-api.js'
import { testMesh, type TestNode } from '../support/nodes.js'

/** Resolves when a text of a document is so on a node. */
async function untilText(node: TestNode, document: string, text: string): Promise<void> {
  for await (const { documents } of node.api.watch('documents.list', {}, { signal: AbortSignal.timeout(60_000) }))
    if (documents.some(({ name }) => name === document)) break
  for await (const { value } of node.api.watch('documents.read', { document, type: 'text' }, { signal: AbortSignal.timeout(60_000) }))
    if (value === text) return
  throw new Error(`${node.name} never had "${text}"`)
}

function edit(node: TestNode, document: string, text: string): Promise<DocumentReading> {
  return node.api.call('documents.edit', { document, edit: { type: 'text', text } })
}

test('a text that is edited on one node is there on the two others', async (t) => {
  const [a, b, c] = (await (await testMesh(t)).meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  const { created } = await a.api.call('documents.create', { name: 'notes' })
  t.ok(created)
  await edit(a, 'notes', 'hello')
  await Promise.all([b, c].map((node) => untilText(node, 'notes', 'hello')))
  await edit(b, 'notes', 'hello world')
  await Promise.all([a, c].map((node) => untilText(node, 'notes', 'hello world')))
  t.pass()
})
