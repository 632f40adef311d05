import test, { type Assert } from 'brittle'
import { keyToText, utf8 } from '../../src/kit/ids.js'
import { Replica } from '../../src/domain/document/replica.js'
import { openBlock, sealBlock } from '../../src/node/document-road.js'
import { keptDocument } from '../../src/node/kept-documents.js'
import { OpenDocument } from '../../src/node/open-document.js'
import type { DocumentStreams } from '../../src/ports/documents.js'
import { countingIds } from '../support/counting-ids.js'
import { hash } from '../support/membership.js'
import { StreamNet } from '../support/memory-streams.js'

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
  own = ''
  other = ''

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
    const document = new OpenDocument({
      make: (stream) => new Replica({ guid: ID, hash, own: stream }),
      streams: {
        append: (stream, bytes) => this.streams.append(stream, bytes),
        read: async (stream, from, limit) => {
          const blocks = await this.streams.read(stream, from, limit)
          this.read.set(stream, (this.read.get(stream) ?? 0) + blocks.length)
          return blocks
        }
      },
      own,
      kept: keptDocument(ID, { hash, documents: this.streams, onError: (error) => this.errors.push(error) }),
      seal: (block) => sealBlock(block, { document: ID, self: this.ann, tier: 1, ids, at: 1 }),
      open: (bytes) => openBlock(bytes, ID),
      onStop: () => {},
      onWritten: () => {},
      onError: (error) => this.errors.push(error)
    })
    t.teardown(() => document.close())
    await document.follow(new Map<string, number>([[this.own, EVERYTHING], ...(counted === null ? [] : [[this.other, counted] as const])]))
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

test('what was kept and is damaged is left alone: the document is made of its streams', async (t: Assert) => {
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

test('what was kept and counts no longer, or is in no stream, is left alone', async (t: Assert) => {
  const scene = await Scene.of(t, 40)
  await scene.keep(t)
  t.alike(await stateOf(await scene.open(t, { counted: 10 })), await madeAnew(t, scene, 10), 'a stream of which less counts')
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

test('what is written once the right to write is lost, is refused, and taken when it is given again', async (t: Assert) => {
  const scene = await Scene.of(t, 2)
  const document = await scene.open(t)
  const session = await document.openSession()
  const edit = (): Promise<unknown> => document.edit((doc) => doc.getText('text').insert(0, 'x'))
  // The new list is in the queue before the edit.
  const lost = document.follow(new Map([[scene.own, 2]]))
  for (const attempt of [edit(), document.openSession(), document.openSession(session), document.write(new Uint8Array([0, 0]), 'one')])
    await t.exception(attempt, /may not write/)
  await lost
  t.is((await scene.streams.read(scene.own, 0, 9)).length, 3, 'two edits and what announced the session')
  await document.follow(new Map([[scene.own, EVERYTHING]]))
  await edit()
  t.is(await document.read(({ doc }) => doc.getText('text').toJSON()), 'x01')
})

test('a stream with two tales counts for nothing in what was kept either', async (t: Assert) => {
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
