import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import { keyToText, utf8 } from '../../../src/kit/ids.js'
import { Replica } from '../../../src/domain/document/replica.js'
import { openBlock, sealBlock } from '../../../src/node/documents/local-streams.js'
import { keptDocument } from '../../../src/node/documents/local-cache.js'
import { DocumentReplica } from '../../../src/node/documents/document-replica.js'
import { OpenDocument } from '../../../src/node/documents/open-document.js'
import type { DocumentChange } from '../../../src/node/documents/replica-feed.js'
import type { DocumentStreams } from '../../../src/ports/documents.js'
import { countingIds } from '../../support/counting-ids.js'
import { hash } from '../../support/membership.js'
import { StreamNet } from '../../support/memory-streams.js'

const ID = 'the document'
const EVERYTHING = Number.POSITIVE_INFINITY

/** The streams of two members, of which this node is one. */
class Scene {
  readonly ann = keyToText(hash(utf8('ann')))
  readonly #net = new StreamNet({ isConnected: () => true, moved: 0 })
  readonly streams: DocumentStreams = this.#net.of(this.ann)
  /** Blocks that were read, by stream. */
  readonly read = new Map<string, number>()
  readonly errors: unknown[] = []
  /** Blocks that a stream has, by what the node stored of it. */
  readonly written = new Map<string, number>()
  own = ''
  other = ''
  /** Called before each read and append; what it throws, they reject with. */
  before: (what: 'read' | 'append', stream: string) => void = () => {}

  /** A text of so many blocks in the stream of each of the two. */
  static async of(t: Assert, blocks: number): Promise<Scene> {
    const scene = new Scene()
    scene.own = (await scene.streams.own('own')).stream
    scene.other = (await scene.streams.own('other')).stream
    scene.streams.follow([scene.own, scene.other].map((stream) => ({ stream, mayHave: () => true })))
    for (const stream of [scene.own, scene.other]) {
      const document = await scene.open(t, { own: stream })
      for (let at = 0; at < blocks; at++) await document.edit((doc) => doc.getText('text').insert(at, `${at % 10}`))
      await document.close()
    }
    scene.read.clear()
    return scene
  }

  async open(
    t: Assert,
    { own = this.own, counted = EVERYTHING }: { readonly own?: string; readonly counted?: number | null } = {}
  ): Promise<OpenDocument> {
    const ids = countingIds()
    const onError = (error: unknown): unknown => this.errors.push(error)
    const seal = (block: Uint8Array): Uint8Array =>
      sealBlock(block, { document: ID, self: this.ann, tier: 1, ids, at: 1 })
    const replica = new DocumentReplica({
      make: (stream) => new Replica({ guid: ID, hash, own: stream }),
      streams: {
        read: async (stream, from, limit) => {
          this.before('read', stream)
          const blocks = await this.streams.read(stream, from, limit)
          this.read.set(stream, (this.read.get(stream) ?? 0) + blocks.length)
          return blocks
        },
        size: (stream) => this.streams.size(stream)
      },
      base: () => Promise.resolve(null),
      own,
      kept: keptDocument(ID, { hash, documents: this.streams, onError }),
      open: (bytes) => openBlock(bytes, ID),
      onStop: () => {},
      onError
    })
    const document = new OpenDocument({
      replica,
      append: async (stream, bytes) => {
        this.before('append', stream)
        return await this.streams.append(stream, bytes.map(seal))
      },
      written: (stream) => this.written.get(stream) ?? 0,
      mustHavePlace: () => {},
      onWritten: () => {},
      onError
    })
    t.teardown(() => document.close())
    await document.follow(
      new Map<string, number>([[this.own, EVERYTHING], ...(counted === null ? [] : [[this.other, counted] as const])])
    )
    return document
  }

  /** Opens it, keeps it, and lets it go. */
  async keep(t: Assert, counted = EVERYTHING): Promise<void> {
    const document = await this.open(t, { counted })
    await document.keep(1)
    await document.close()
    this.read.clear()
  }

  /** Blocks that were read of both streams. */
  taken(): number {
    return (this.read.get(this.own) ?? 0) + (this.read.get(this.other) ?? 0)
  }
}

const textOf = (document: OpenDocument): Promise<string> => document.read(({ doc }) => doc.getText('text').toJSON())

function newsOf(document: OpenDocument): DocumentChange[] {
  const news: DocumentChange[] = []
  document.onChange((one) => news.push(one))
  return news
}

const stateOf = (document: OpenDocument): Promise<Uint8Array> => document.read((replica) => replica.state())

/** The same, made of the streams alone. */
async function madeAnew(t: Assert, scene: Scene, counted = EVERYTHING): Promise<Uint8Array> {
  const kept = await scene.streams.kept(ID)
  await scene.streams.keep(ID, null)
  const state = await stateOf(await scene.open(t, { counted }))
  await scene.streams.keep(ID, kept)
  scene.read.clear()
  return state
}

test('a document that was kept is opened with the blocks that came after alone, and written on', async (t: Assert) => {
  const scene = await Scene.of(t, 300)
  await scene.keep(t)
  const writer = await scene.open(t)
  t.is(scene.taken(), 2, 'the last block of each, to see that they are there')
  await writer.edit((doc) => doc.getText('text').insert(0, 'more. '))
  await writer.close()
  const whole = await madeAnew(t, scene)
  const late = await scene.open(t)
  t.alike(await stateOf(late), whole)
  t.is(scene.taken(), 3)
  t.is(await late.read(({ doc }) => doc.getText('text').toJSON().slice(0, 6)), 'more. ')
  t.alike(scene.errors, [])
})

test('a document with few new blocks is not kept again', async (t: Assert) => {
  const scene = await Scene.of(t, 3)
  const document = await scene.open(t)
  await document.keep()
  t.is(await scene.streams.kept(ID), null)
  await document.keep(6)
  t.unlike(await scene.streams.kept(ID), null)
})

test('a damaged cache is left alone: the document is made of its streams', async (t: Assert) => {
  const scene = await Scene.of(t, 40)
  const whole = await madeAnew(t, scene)
  await scene.keep(t)
  const good = (await scene.streams.kept(ID)) ?? new Uint8Array()
  for (const at of [0, 31, 32, 40, good.byteLength >> 1, good.byteLength - 1]) {
    const bad = Uint8Array.from(good)
    bad[at] = (bad[at] ?? 0) ^ 1
    await scene.streams.keep(ID, bad)
    scene.read.clear()
    t.alike(await stateOf(await scene.open(t)), whole, `byte ${at}`)
    t.is(scene.taken(), 80)
  }
  await scene.streams.keep(ID, good.subarray(0, 20))
  t.alike(await stateOf(await scene.open(t)), whole, 'cut short')
})

test('cached content that counts no longer, or is in no stream, is left alone', async (t: Assert) => {
  const scene = await Scene.of(t, 40)
  await scene.keep(t)
  t.alike(
    await stateOf(await scene.open(t, { counted: 10 })),
    await madeAnew(t, scene, 10),
    'a stream of which less counts'
  )
  const own = await scene.open(t, { counted: null })
  t.is(await own.read(({ doc }) => doc.getText('text').length), 40, 'a stream that nobody names any more')
  await scene.keep(t, 10)
  t.alike(await stateOf(await scene.open(t, { counted: 10 })), await madeAnew(t, scene, 10), 'the limit of before')
  t.alike(await stateOf(await scene.open(t)), await madeAnew(t, scene), 'the limit is lifted')
  await scene.streams.keep(ID, null)
  await scene.keep(t)
  const blocks = await scene.streams.read(scene.other, 0, 30)
  await scene.streams.remove([scene.other])
  await scene.streams.append(scene.other, blocks)
  t.alike(await stateOf(await scene.open(t)), await madeAnew(t, scene), 'streams that were put back')
})

test('edits after the loss of the right to write are refused, and accepted when it is given again', async (t: Assert) => {
  const scene = await Scene.of(t, 2)
  const document = await scene.open(t)
  const session = await document.openSession()
  const edit = (): Promise<unknown> => document.edit((doc) => doc.getText('text').insert(0, 'x'))
  // The new list is in the queue before the edit.
  const lost = document.follow(new Map([[scene.own, 2]]))
  for (const attempt of [
    edit(),
    document.openSession(),
    document.openSession(session),
    document.write(new Uint8Array([0, 0]), 'one')
  ])
    await t.exception(attempt, /may not write/)
  await lost
  t.is((await scene.streams.read(scene.own, 0, 9)).length, 3, 'two edits and the announcement of the session')
  await document.follow(new Map([[scene.own, EVERYTHING]]))
  await edit()
  t.is(await document.read(({ doc }) => doc.getText('text').toJSON()), 'x01')
})

test('a forked stream counts for nothing in the cache either', async (t: Assert) => {
  const scene = await Scene.of(t, 40)
  await scene.keep(t)
  const document = await scene.open(t)
  document.onForked(scene.other, 'two tales')
  t.is((await document.read(({ doc }) => doc.getText('text').toJSON())).length, 40)
})

test('a program gets the clientID again that it had, before and after a restart, unless another one got it since', async (t: Assert) => {
  const scene = await Scene.of(t, 1)
  const document = await scene.open(t)
  const [first, second] = [await document.openSession(), await document.openSession()]
  t.unlike(await document.openSession(first), first, 'it goes on')
  document.closeSession(first)
  t.is(await document.openSession(first), first)
  document.closeSession(first)
  t.is(await document.openSession(), first, 'a newcomer may have it')
  document.closeSession(first)
  t.not(await document.openSession(first), first, 'then it is not its own any more')
  await document.edit((doc) => doc.getText('text').insert(0, 'x'))
  const own = await document.read(({ doc }) => doc.clientID)
  await document.close()
  const again = await scene.open(t)
  t.is(await again.openSession(second), second)
  t.not(await again.openSession(second), second)
  t.not(await again.openSession(12_345), 12_345, 'one of nobody')
  const theirs = await again.read(({ doc }) => [...doc.store.clients.keys()])
  t.ok(theirs.includes(own))
})

test('a node edits a document under one clientID however often it opens it', async (t: Assert) => {
  const scene = await Scene.of(t, 0)
  for (let time = 0; time < 20; time++) {
    const document = await scene.open(t)
    await document.edit((doc) => doc.getText('text').insert(time, 'x'))
    await document.close()
  }
  const document = await scene.open(t)
  t.is(await document.read(({ doc }) => doc.store.clients.size), 1)
  const own = await document.read((replica) => replica.sessions.clientId())
  t.not(await document.openSession(own), own, 'no program gets it')
})

test('nothing is written before what the own stream holds was read back', async (t: Assert) => {
  const scene = await Scene.of(t, 2)
  scene.written.set(scene.own, 2)
  scene.streams.follow([])
  const document = await scene.open(t)
  const edit = (): Promise<unknown> => document.edit((doc) => doc.getText('text').insert(0, 'x'))
  await t.exception(edit(), /not read back/)
  await t.exception(document.openSession(), /not read back/)
  scene.streams.follow([{ stream: scene.own, mayHave: () => true }])
  document.onBlocks(scene.own)
  await edit()
  t.is(await document.read(({ doc }) => doc.getText('text').toJSON()), 'x01')
})

test('a replica with unread blocks is neither read nor edited, and the next use reads on', async (t: Assert) => {
  const scene = await Scene.of(t, 600)
  const document = await scene.open(t)
  const session = await document.openSession()
  const news = newsOf(document)
  const own = (await scene.streams.own('another')).stream
  let reads = 0
  scene.before = (what) => {
    if (what === 'read' && ++reads > 2) throw new Error('the disk')
  }
  document.onForked(scene.other, 'two tales')
  await t.exception(document.goOn(own), /the disk/)
  const uses = [
    () => textOf(document),
    () => document.edit((doc) => doc.getText('text').insert(0, 'x')),
    () => document.write(new Uint8Array([0, 0]), 'one'),
    () => document.openSession(session)
  ]
  for (const use of uses) await t.exception(use(), /the disk/)
  t.alike(news, [], 'no program gets half of it')
  scene.before = () => {}
  t.is((await textOf(document)).length, 600)
  t.alike(news, [{ type: 'reset', isMoved: true }], 'programs still learn that they need other clientIDs')
})

test('a document whose streams could not be read when it was opened is read on as well', async (t: Assert) => {
  const scene = await Scene.of(t, 300)
  scene.before = (_what, stream) => {
    if (stream === scene.other) throw new Error('the disk')
  }
  await t.exception(scene.open(t), /the disk/)
  scene.before = () => {}
  t.is((await textOf(await scene.open(t))).length, 600)
})

test('blocks that come while a stream is read to its end are not forgotten', async (t: Assert) => {
  const scene = await Scene.of(t, 1)
  const [one, other] = [await scene.open(t), await scene.open(t, { own: scene.other })]
  // The read that finds nothing is under way when there is more.
  let hasMore: Promise<unknown> | null = null
  scene.before = (what, stream) => {
    if (what === 'append' || stream !== scene.other || hasMore !== null) return
    hasMore = Promise.resolve().then(async () => {
      await other.edit((doc) => doc.getText('text').insert(0, 'more'))
      one.onBlocks(scene.other)
    })
  }
  const read = scene.streams.read.bind(scene.streams)
  scene.streams.read = async (...which) => {
    const blocks = await read(...which)
    if (which[0] === scene.other) await hasMore
    return blocks
  }
  one.onBlocks(scene.other)
  await textOf(one)
  t.is(await textOf(one), 'more00')
})

test('a reader gets all blocks that are stored, also those that no event announced yet', async (t: Assert) => {
  const scene = await Scene.of(t, 1)
  const [one, other] = [await scene.open(t), await scene.open(t, { own: scene.other })]
  await other.edit((doc) => doc.getText('text').insert(0, 'more'))
  t.is(await textOf(one), 'more00')
  await other.edit((doc) => doc.getText('text').insert(0, 'and '))
  await one.edit((doc) => doc.getText('text').insert(0, 'first '))
  t.is(await textOf(one), 'first and more00', 'an edit comes after them')
})

test('a refused edit changes nothing, is sent to nobody, and leaves the clientIDs of programs alone', async (t: Assert) => {
  const scene = await Scene.of(t, 2)
  const document = await scene.open(t)
  const session = await document.openSession()
  const program = new Y.Doc()
  program.clientID = session
  Y.applyUpdate(program, await stateOf(document))
  const before = await stateOf(document)
  const news = newsOf(document)
  await t.exception(
    document.edit((doc) => doc.getMap('map').set('key', 'x'.repeat(300_000))),
    /cannot be sent to others/
  )
  await t.exception(
    document.edit((doc) => {
      doc.getText('text').insert(0, 'half')
      throw new Error('the rest')
    }),
    /the rest/
  )
  scene.before = (what) => {
    if (what === 'append') throw new Error('the disk')
  }
  const vector = Y.encodeStateVector(program)
  program.getText('text').insert(0, 'typed. ')
  const update = Y.encodeStateAsUpdate(program, vector)
  await t.exception(document.write(update, 'program'), /the disk/)
  await t.exception(document.openSession(), /the disk/)
  await t.exception(
    document.edit((doc) => doc.getText('text').insert(0, 'y')),
    /the disk/
  )
  t.alike(await stateOf(document), before)
  t.alike(news, [])
  scene.before = () => {}
  await document.write(update, 'program')
  t.alike(
    news.map((one) => (one.type === 'update' ? one.by : one.type)),
    ['program']
  )
  t.is(await textOf(document), program.getText('text').toJSON())
  t.is(await textOf(await scene.open(t)), 'typed. 0101')
  const other = await document.openSession()
  t.not(other, session)
})

test('an edit in several pieces is durable with all of them or with none', async (t: Assert) => {
  const scene = await Scene.of(t, 1)
  const document = await scene.open(t)
  const news = newsOf(document)
  const edit = (): Promise<void> => document.edit((doc) => doc.getText('text').insert(0, 'x'.repeat(600_000)))
  let appends = 0
  scene.before = (what) => {
    if (what === 'append' && appends++ === 0) throw new Error('the disk')
  }
  await t.exception(edit(), /the disk/)
  t.is((await scene.streams.read(scene.own, 0, 9)).length, 1)
  t.is(await textOf(document), '00')
  await edit()
  t.is(appends, 2)
  t.is((await scene.streams.read(scene.own, 0, 9)).length, 4)
  t.is(news.length, 1)
  t.is((await textOf(await scene.open(t))).length, 600_002)
})

test('updates that arrived while a refused edit was forgotten are reported', async (t: Assert) => {
  const scene = await Scene.of(t, 2)
  const [one, other] = [await scene.open(t), await scene.open(t, { own: scene.other })]
  const program = new Y.Doc()
  Y.applyUpdate(program, await stateOf(one))
  one.onChange((news) => {
    if (news.type === 'update') Y.applyUpdate(program, news.update)
  })
  const refused = one.edit((doc) => doc.getMap('map').set('key', 'x'.repeat(300_000)))
  await t.exception(refused, /cannot be sent to others/)
  await other.edit((doc) => doc.getText('text').insert(0, 'more. '))
  one.onBlocks(scene.other)
  t.is(await textOf(one), 'more. 0101')
  t.is(program.getText('text').toJSON(), 'more. 0101')
})
