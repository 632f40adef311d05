import fc from 'fast-check'
import * as Y from 'yjs'
import { Replica, type StreamBlock } from '../../src/domain/document/replica.js'
import type { StreamStop } from '../../src/domain/document/stream.js'
import type { Hash } from '../../src/kit/sign.js'
import { hash, keyText } from './membership.js'

/** One edit of a random session: what is done, by whom, and whether it has heard of all edits before. */
export interface Edit {
  readonly who: number
  readonly kind: 'text' | 'cut' | 'set' | 'unset' | 'push' | 'pull' | 'nest' | 'mark'
  readonly at: number
  readonly value: string
  readonly isInformed: boolean
}

/** Edits of up to four people on a text, a map and a list; at least one. */
export function arbEdits(): fc.Arbitrary<Edit[]> {
  const edit = fc.record({
    who: fc.nat({ max: 3 }),
    kind: fc.constantFrom('text' as const, 'cut', 'set', 'unset', 'push', 'pull', 'nest', 'mark'),
    at: fc.nat({ max: 20 }),
    value: fc.oneof(fc.constantFrom('a', 'bc', 'déf', '🌍', ''), fc.string({ maxLength: 5 })),
    isInformed: fc.boolean()
  })
  return fc.array(edit, { minLength: 1, maxLength: 24 })
}

/** Nests so many lists in a list. */
export function nestLists(list: Y.Array<unknown>, levels: number): void {
  let inner = list
  for (let level = 0; level < levels; level++) {
    const next = new Y.Array<unknown>()
    inner.insert(0, [next])
    inner = next
  }
}

/** Does one edit in a document. */
export function apply(doc: Y.Doc, { kind, at, value }: Edit): void {
  const text = doc.getText('text')
  const map = doc.getMap('map')
  const list = doc.getArray('list')
  const place = (length: number): number => at % (length + 1)
  // Yjs replaces a surrogate pair that is split, even by an edit that changes nothing and is told to nobody.
  const whole = (index: number): number => (/[\uDC00-\uDFFF]/.test(text.toJSON().charAt(index)) ? index - 1 : index)
  const spot = whole(place(text.length))
  const few = whole(Math.min(spot + 3, text.length)) - spot
  if (kind === 'text') text.insert(spot, `${value}.`)
  else if (kind === 'cut') text.delete(spot, few)
  else if (kind === 'set') map.set(`k${at % 3}`, { value })
  else if (kind === 'unset') map.delete(`k${at % 3}`)
  else if (kind === 'push') list.insert(place(list.length), [value, at, null])
  else if (kind === 'pull') list.delete(place(list.length), Math.min(2, list.length - place(list.length)))
  else if (kind === 'mark') text.format(spot, few, { bold: at % 2 === 0 ? true : null })
  else nest(map, list, { at, value })
}

function nest(map: Y.Map<unknown>, list: Y.Array<unknown>, { at, value }: { at: number; value: string }): void {
  const key = `n${at % 2}`
  const known = map.get(key)
  if (known instanceof Y.Array) known.push([value])
  else if (at % 3 === 0) map.set(key, Y.Array.from([value]))
  else list.insert(0, [new Y.Map([[key, value]])])
}

/**
 * The updates that these edits make, in an order in which each stands on earlier ones only. Edits without effect make
 * none.
 */
export function edited(edits: readonly Edit[]): { who: number; update: Uint8Array }[] {
  const made: { who: number; update: Uint8Array }[] = []
  const docs = [0, 1, 2, 3].map((who) => {
    const doc = new Y.Doc()
    doc.clientID = who * 1000 + 2 ** 50
    doc.on('update', (update: Uint8Array, origin: unknown) => {
      if (origin !== 'told') made.push({ who, update })
    })
    return doc
  })
  // At least one, whatever the edits do.
  const first = docs[0]
  first.getText('text').insert(0, 'begin')
  for (const edit of edits) {
    const doc = docs[edit.who]
    if (edit.isInformed) for (const { update } of [...made]) Y.applyUpdate(doc, update, 'told')
    apply(doc, edit)
  }
  return made
}

/** A member that writes: its replica, and its stream as everybody can read it. */
export interface Writer {
  readonly key: string
  readonly replica: Replica
  readonly blocks: Uint8Array[]
}

/** The hash of documents in tests, or another. */
export function replicaOf(own: string | null, options: { hash?: Hash; maxBytes?: number } = {}): Replica {
  return new Replica({ guid: 'notes', hash, own, ...options })
}

/** A member of this name that edits as its node. */
export function writer(name: string, options: { hash?: Hash; maxBytes?: number } = {}): Writer {
  const key = keyText(`stream/${name}`)
  const replica = replicaOf(key, options)
  replica.doc.clientID = replica.sessions.clientId()
  return { key, replica, blocks: [] }
}

/** Puts what a writer edited into its stream. */
export function publish({ replica, blocks }: Writer): void {
  const taken = replica.takeBlocks()
  if (!taken.ok) throw new Error(taken.reason)
  blocks.push(...taken.blocks)
}

/** Tells a replica of all blocks of these streams; what it took is told again at no harm. */
export function tell(replica: Replica, writers: readonly Writer[]): StreamStop[] {
  return writers.flatMap(({ key, blocks }) =>
    blocks.flatMap((bytes, index) => replica.receive({ stream: key, index, bytes }).stops)
  )
}

/** A document whose next edits have this clientID, with all that these streams say. */
export function forger(clientID: number, writers: readonly Writer[] = []): { doc: Y.Doc; take(): Uint8Array[] } {
  const doc = new Y.Doc()
  const updates: Uint8Array[] = []
  const replica = replicaOf(null)
  tell(replica, writers)
  Y.applyUpdate(doc, stateOf(replica))
  doc.clientID = clientID
  doc.on('update', (update: Uint8Array) => updates.push(update))
  return { doc, take: () => updates.splice(0) }
}

/** Four members that edit, hear of each other now and then, and publish after each edit. */
export function written(edits: readonly Edit[]): Writer[] {
  const writers = ['ann', 'bob', 'cem', 'dee'].map((name) => writer(name))
  for (const edit of edits) {
    const one = writers[edit.who]
    if (edit.isInformed) tell(one.replica, writers)
    apply(one.replica.doc, edit)
    publish(one)
  }
  return writers
}

/** The blocks of streams in one order that keeps that of each stream; `choices` decides. */
export function mixed(writers: readonly Writer[], choices: readonly number[]): StreamBlock[] {
  const left = writers.map(({ key, blocks }) => blocks.map((bytes, index) => ({ stream: key, index, bytes })))
  const order: StreamBlock[] = []
  for (let step = 0; left.some((blocks) => blocks.length > 0); step++) {
    const open = left.filter((blocks) => blocks.length > 0)
    const block = open[(choices[step % Math.max(1, choices.length)] ?? 0) % open.length]?.shift()
    if (block !== undefined) order.push(block)
  }
  return order
}

/** The whole state of a replica as bytes, to compare. */
export function stateOf(replica: Replica): Buffer {
  return Buffer.from(Y.encodeStateAsUpdate(replica.doc))
}

/** A replica of what these orders tell; made anew, as its node would, whenever a stop asks for it. */
export function settled(
  order: readonly StreamBlock[],
  first: readonly StreamStop[] = [],
  options: { hash?: Hash } = {}
): Replica {
  const stops = [...first]
  for (let tries = 0; tries < 10; tries++) {
    const replica = replicaOf(null, options)
    for (const { stream, at, reason } of stops) replica.stop(stream, at, reason)
    const found = order.flatMap((block) => replica.receive(block).stops)
    if (!found.some(({ needsRebuild }) => needsRebuild)) return replica
    stops.push(...found)
  }
  throw new Error('a replica that is made anew again and again')
}
