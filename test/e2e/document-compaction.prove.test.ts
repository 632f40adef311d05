import test from 'brittle'
import { untilText, write } from '../support/document-nodes.js'
import { localMesh, type LocalNode, until, untilTrue } from '../support/nodes.js'

/** Of each stream of the document on a node, where it begins there. */
async function beginnings(node: LocalNode): Promise<Map<string, number>> {
  const { streams } = await node.api.call('documents.show', { document: 'notes' })
  return new Map(streams.map(({ node: { name }, from }) => [name, from]))
}

test('a snapshot replaces the first blocks of a long document, for a present node, one that was away with a part of it, and a new one', {
  timeout: 300_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
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
  const before = (await a.api.call('documents.show', { document: 'notes' })).bytes
  for (const node of [a, b])
    await untilTrue(
      async () => ((await beginnings(node)).get('b') ?? 0) > 1000,
      'the first blocks of b are gone',
      120_000
    )
  const { bytes } = await a.api.call('documents.show', { document: 'notes' })
  t.ok(bytes < before / 10, `${before} bytes are ${bytes}`)
  await write(b, 'of b, on and on')
  await untilText(a, 'of b, on and on')
  await b.stop()
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const d = await mesh.start('d', { join: code })
  await untilText(d, 'of b, on and on')
  const again = await mesh.start('c', { home: c.home })
  await untilText(again, 'of b, on and on')
  for (const node of [again, d]) t.ok(((await beginnings(node)).get('b') ?? 0) > 1000)
  await write(again, 'of b, on and on, and of c')
  await until(
    d.api,
    'documents.read',
    { document: 'notes', type: 'text' },
    ({ value }) => value === 'of b, on and on, and of c'
  )
  await a.stop()
  const once = await mesh.start('a', { home: a.home })
  await untilText(once, 'of b, on and on, and of c')
  const last = await mesh.start('b', { home: b.home })
  await untilText(last, 'of b, on and on, and of c')
  await write(last, 'of b, on and on, and of c, and b')
  await untilText(d, 'of b, on and on, and of c, and b')
  t.absent([once, last, again, d].some((node) => node.errors().includes('"error"')))
})
