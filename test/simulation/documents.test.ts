import test, { type Assert } from 'brittle'
import { toBase64 } from '../../src/kit/bytes.js'
import { canonicalJson } from '../../src/kit/json.js'
import { keyToText, utf8 } from '../../src/kit/ids.js'
import { Replica } from '../../src/domain/document/replica.js'
import { editShared, readShared } from '../../src/domain/document/shared-types.js'
import { openBlock, sealBlock } from '../../src/node/documents/local-streams.js'
import { keptDocument } from '../../src/node/documents/local-cache.js'
import { DocumentReplica } from '../../src/node/documents/document-replica.js'
import { OpenDocument } from '../../src/node/documents/open-document.js'
import type { DocumentStreams } from '../../src/ports/documents.js'
import { countingIds } from '../support/counting-ids.js'
import { hash } from '../support/membership.js'
import { StreamNet } from '../support/memory-streams.js'
import { Random } from './random.js'

const WORLDS = 1000
const WRITERS = 5
const STEPS = 24
const ID = 'the document'

/** One member's node, as far as it has to do with the document. It can stop and start again. */
class Writer {
  readonly id: string
  own = ''
  document: OpenDocument | null = null
  readonly errors: unknown[] = []
  #streams: DocumentStreams | null = null

  constructor(
    readonly net: StreamNet,
    readonly number: number
  ) {
    this.id = keyToText(hash(utf8(`writer ${number}`)))
  }

  /** Starts it: reads back what it has, then goes on. */
  async start(all: readonly Writer[]): Promise<void> {
    const streams = this.net.of(this.id)
    this.#streams = streams
    this.own = (await streams.own(ID)).stream
    const ids = countingIds()
    const onError = (error: unknown): unknown => this.errors.push(error)
    const seal = (block: Uint8Array): Uint8Array =>
      sealBlock(block, { document: ID, self: this.id, tier: 1, ids, at: 1 })
    const replica = new DocumentReplica({
      make: (own) => new Replica({ guid: ID, hash, own }),
      streams,
      base: () => Promise.resolve(null),
      own: this.own,
      kept: keptDocument(ID, { hash, documents: streams, onError }),
      open: (bytes) => openBlock(bytes, ID),
      onStop: ({ reason }) => this.errors.push(new Error(reason)),
      onError
    })
    const document = new OpenDocument({
      replica,
      append: (stream, blocks) => streams.append(stream, blocks.map(seal)),
      written: () => 0,
      mustHavePlace: () => {},
      onWritten: () => {},
      onError
    })
    this.document = document
    streams.start({ onBlocks: (stream) => document.onBlocks(stream), onFetched: () => {}, onForked: () => {} })
    const known = all.map(({ own }) => own).filter((own) => own !== '')
    streams.follow(known.map((stream) => ({ stream, mayHave: () => true })))
    await document.follow(new Map(known.map((stream) => [stream, Number.POSITIVE_INFINITY])))
  }

  async stop(): Promise<void> {
    const { document } = this
    this.document = null
    await document?.keep(1)
    await this.#streams?.close()
    await document?.close()
  }
}

/** Five writers of whom any two may be cut off from each other, and any may be away. */
class DocumentWorld {
  readonly #random: Random
  readonly #cut = new Set<string>()
  readonly #net = new StreamNet({ isConnected: (a, b) => !this.#cut.has([a, b].sort().join()), moved: 0 })
  readonly #writers = Array.from({ length: WRITERS }, (_, number) => new Writer(this.#net, number))

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /**
   * Runs it: edits, cuts and restarts in any order, then everybody is back. Gives what each has then, and how much was
   * built on.
   */
  async run(): Promise<{
    readonly states: readonly string[]
    readonly edits: number
    readonly errors: readonly unknown[]
  }> {
    for (const writer of this.#writers) writer.own = (await this.#net.of(writer.id).own(ID)).stream
    for (const writer of this.#writers) await writer.start(this.#writers)
    let edits = 0
    for (let step = 0; step < STEPS; step++) if (await this.#step()) edits++
    this.#cut.clear()
    for (const writer of this.#writers) if (writer.document === null) await writer.start(this.#writers)
    await this.#settle()
    const states: string[] = []
    for (const { document } of this.#writers) states.push((await document?.read((replica) => stateOf(replica))) ?? '')
    const errors = this.#writers.flatMap((writer) => writer.errors)
    for (const writer of this.#writers) await writer.stop()
    return { states, edits, errors }
  }

  /** True: something was edited. */
  async #step(): Promise<boolean> {
    const random = this.#random
    const writer = random.pick(this.#writers)
    const what = random.weighted({ edit: 10, cut: 4, heal: 3, settle: 3, restart: 1 })
    if (writer === null) return false
    if (what === 'edit' && writer.document !== null) {
      await writer.document.edit((doc) => edit(doc, random))
      return true
    }
    const pair = [writer.id, random.pick(this.#writers)?.id ?? ''].sort().join()
    if (what === 'cut') this.#cut.add(pair)
    else if (what === 'heal') this.#cut.delete(pair)
    else if (what === 'restart') await (writer.document === null ? writer.start(this.#writers) : writer.stop())
    if (what === 'settle' || what === 'heal') await this.#settle()
    return false
  }

  async #settle(): Promise<void> {
    this.#net.changed()
    for (let quiet = 0, seen = this.#net.moved; quiet < 3; quiet++) {
      for (const { document } of this.#writers) await document?.read(() => {})
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#net.moved !== seen) quiet = 0
      seen = this.#net.moved
    }
  }
}

function edit(doc: Replica['doc'], random: Random): void {
  const text = String(readShared(doc, 'text', 'text'))
  const at = random.int(0, text.length)
  const remove = random.int(0, Math.min(3, text.length - at))
  const word = `${random.int(0, 999)} `
  const what = random.weighted({ text: 6, set: 2, map: 2, list: 2 })
  if (what === 'text') editShared(doc, 'text', { type: 'text', splice: { at, remove, insert: word } })
  else if (what === 'set')
    editShared(doc, 'text', { type: 'text', text: text.slice(0, at) + word + text.slice(at + remove) })
  else if (what === 'map') editShared(doc, 'map', { type: 'map', set: { [`k${random.int(0, 3)}`]: { word } } })
  else
    editShared(doc, 'list', {
      type: 'list',
      list: [...(readShared(doc, 'list', 'list') as unknown[]).slice(random.int(0, 2)), word]
    })
}

/** Equal states, equal bytes: what the document is and how far it follows each stream. */
function stateOf(replica: Replica): string {
  const values = (['text', 'map', 'list'] as const).map((type) => readShared(replica.doc, type, type))
  return canonicalJson([values, replica.vectorClock(), replica.waiting, toBase64(replica.state())])
}

test('five writers end with the same document in 1,000 worlds of random cuts, absences and restarts', async (t: Assert) => {
  let edits = 0
  for (let seed = 1; seed <= WORLDS; seed++) {
    const { states, edits: made, errors } = await new DocumentWorld(seed).run()
    edits += made
    if (new Set(states).size !== 1 || errors.length > 0) {
      t.fail(`world ${seed}: ${states.join('\n')} ${errors.map(String).join(' ')}`)
      return
    }
  }
  t.ok(edits > WORLDS, `${edits} edits`)
})
