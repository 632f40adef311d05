import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { failsWith } from '../support/fails.js'
import { Random } from '../simulation/random.js'
import { untilText, write } from '../support/document-nodes.js'
import { freePort, localMesh, type LocalNode, until, untilOnline, untilTrue } from '../support/nodes.js'

/** The whole document of a node, as bytes of one update. */
async function stateOf(node: LocalNode): Promise<string> {
  const { value } = await node.api.call('documents.read', { document: 'notes', type: 'text' })
  const event = await until(node.api, 'documents.live', { document: 'notes' }, ({ type }) => type === 'open')
  return event.type === 'open' ? `${String(value)} ${Buffer.from(event.update).toString('base64')}` : ''
}

test('five writers of one text, online and offline for random times, have the same bytes in the end', {
  timeout: 240_000
}, async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  t.comment(`seed ${seed}`)
  const random = new Random(seed)
  const mesh = await localMesh(t)
  const nodes = await mesh.meshOf('a', 'b', 'c', 'd', 'e')
  await nodes[0]?.api.call('documents.create', { name: 'notes' })
  for (const node of nodes) await until(node.api, 'documents.list', {}, ({ documents }) => documents.length === 1)
  const marks: string[] = []
  const insert = async (node: LocalNode): Promise<void> => {
    const text = `${node.name}${marks.length}.`
    marks.push(text)
    // Others may have begun it while nothing of it is here yet: to read it then is refused, to watch it is to wait.
    const { value } = await until(node.api, 'documents.read', { document: 'notes', type: 'text' }, () => true)
    const splice = { at: random.int(0, String(value).length), remove: 0, insert: text }
    await node.api.call('documents.edit', { document: 'notes', edit: { type: 'text', splice } })
  }
  /** Starts a node again: where nobody hears it, or back among the others. */
  const restart = async (place: number, env: Record<string, string>): Promise<void> => {
    const node = nodes[place]
    await node.stop()
    nodes[place] = await mesh.start(node.name, { home: node.home, env })
  }
  const away = new Set<number>()
  await Promise.all(nodes.map(insert))
  for (let step = 0; step < 8; step++) {
    const place = random.int(0, nodes.length - 1)
    if (away.delete(place)) await restart(place, {})
    else if (away.size < 3) {
      await restart(place, { A2A_NODE_LOCAL_PORT: String(await freePort()) })
      away.add(place)
    }
    await Promise.all(nodes.flatMap((node) => Array.from({ length: random.int(0, 2) }, () => insert(node))))
  }
  for (const place of away) await restart(place, {})
  // One may be in the middle of another.
  const written = marks.join('').length
  for (const node of nodes)
    await until(
      node.api,
      'documents.read',
      { document: 'notes', type: 'text' },
      ({ value }) => String(value).length === written
    )
  // To hold the document is to announce a session, so bytes are compared once all of them are there.
  const isOne = async (): Promise<boolean> => new Set(await Promise.all(nodes.map(stateOf))).size === 1
  await untilTrue(isOne, 'all have the same bytes')
  const sorted = (text: string): string => [...text].toSorted().join('')
  for (const { api } of nodes) {
    const { value } = await api.call('documents.read', { document: 'notes', type: 'text' })
    t.is(sorted(String(value)), sorted(marks.join('')), 'each character of each writer is there once')
  }
})

/** A copy of a stopped node's home, as no backup is: its streams then have two tales. */
async function twinOf(node: LocalNode, dir: string): Promise<string> {
  const home = path.join(dir, 'twin')
  await fs.cp(node.home, home, { recursive: true })
  // The stores notice that they were copied by these files alone.
  for (const store of ['store', 'documents']) await fs.rm(path.join(home, store, 'CORESTORE'))
  return home
}

test('a member that writes two versions of its stream is stopped in the document, and the others continue', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [first, b, third] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  await first.api.call('documents.create', { name: 'notes' })
  await write(first, 'kept. ')
  await untilText(b, 'kept. ')
  await write(b, 'kept. first. ')
  await Promise.all([first, third].map((node) => untilText(node, 'kept. first. ')))
  for (const node of [first, b, third]) await node.stop()
  const twin = await twinOf(b, await mesh.dir())
  // Nobody is there who could tell one twin of the other.
  const alone = await mesh.start('b', { home: b.home })
  await write(alone, 'kept. first. left')
  await alone.stop()
  const a = await mesh.start('a', { home: first.home })
  const c = await mesh.start('c', { home: third.home })
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
    (await a.api.call('documents.show', { document: 'notes' })).streams.some(({ stopped: why }) =>
      /two different blocks/.test(why ?? '')
    )
  await untilTrue(stopped, 'it is reported')
  t.ok(a.errors().includes('CRDT_DESERIALIZATION_FAILED'), 'and logged with its source')
  t.ok(a.errors().includes(b.info.node.id))
  const { problems } = await a.api.call('node.status', {})
  t.ok(
    problems.some(
      ({ message }) =>
        message.startsWith('b (') && message.includes('signed two different blocks of the document notes')
    ),
    'and in status'
  )
})

test('a node whose store of documents was put back serves and takes nothing until it is whole, forks nothing, and everybody converges', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
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
  // Nobody is there who could tell it of what it wrote.
  for (const node of [a, c]) await node.stop()
  const alone = await mesh.start('b', { home: b.home })
  for (const call of [
    () => alone.api.call('documents.read', { document: 'notes', type: 'text' }),
    () => write(alone, 'three. one. ')
  ])
    await failsWith(t, 'STORE_DAMAGED', call)
  await alone.stop()
  const back = [
    await mesh.start('a', { home: a.home }),
    await mesh.start('b', { home: b.home }),
    await mesh.start('c', { home: c.home })
  ] as const
  await Promise.all(back.map((node) => untilText(node, 'one. two. ')))
  await write(back[1], 'three. one. two. ')
  await Promise.all(back.map((node) => untilText(node, 'three. one. two. ')))
  const { streams } = await back[0].api.call('documents.show', { document: 'notes' })
  t.alike(
    streams.map(({ node, stopped }) => [node.name, stopped]),
    [
      ['b', null],
      ['b', null]
    ]
  )
})
