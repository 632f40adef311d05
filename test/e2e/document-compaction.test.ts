import test from 'brittle'
import { untilText, write } from '../support/document-nodes.js'
import { testMesh, type TestNode, until, untilTrue } from '../support/nodes.js'

/** The streams of the document on a node: of whom, and how many blocks. */
async function streamsOn(node: TestNode): Promise<(readonly [string, number])[]> {
  const { streams } = await node.api.call('documents.show', { document: 'notes' })
  return streams.map(({ node: { name }, blocks }) => [name, blocks] as const)
}

test('a long stream goes on as a short one, for who is there, who was away with a part of it, and who is new', {
  timeout: 240_000
}, async (t) => {
  const mesh = await testMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [TestNode, TestNode, TestNode]
  await a.api.call('documents.create', { name: 'notes' })
  await untilText(b, '')
  await write(b, 'begun')
  await untilText(c, 'begun')
  await write(c, 'begun by b and c')
  await Promise.all([a, b].map((node) => untilText(node, 'begun by b and c')))
  await c.stop()
  for (let edit = 0; edit < 1100; edit++) await write(b, `${edit % 10} edits`)
  await write(b, 'of b')
  await untilText(a, 'of b')
  const isShort = async (): Promise<boolean> => {
    const ofB = (await streamsOn(a)).filter(([name]) => name === 'b')
    return ofB.length === 1 && ofB.every(([, blocks]) => blocks > 0 && blocks < 10)
  }
  await untilTrue(isShort, 'a has the new stream of b in the place of the long one')
  t.pass()
  await write(b, 'of b, on and on')
  await untilText(a, 'of b, on and on')
  await b.stop()
  const again = await mesh.start('c', { home: c.home })
  await untilText(again, 'of b, on and on')
  const { code } = await a.api.call('invite.create', {})
  const d = await mesh.start('d', { join: code })
  await untilText(d, 'of b, on and on')
  await write(again, 'of b, on and on, and of c')
  await until(d.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'of b, on and on, and of c')
  t.alike((await streamsOn(d)).map(([name]) => name).sort(), ['b', 'c'])
  t.absent([a, again, d].some((node) => node.errors().includes('"error"')))
})
