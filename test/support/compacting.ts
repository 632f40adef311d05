import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as Y from 'yjs'
import { Replica } from '../../src/domain/document/replica.js'
import { decodeSnapshot } from '../../src/domain/document/snapshot.js'
import type { StreamBeginning } from '../../src/domain/document/stream.js'
import { apply, arbEdits, type Edit, keptOf, mixed, type Writer } from './documents.js'
import { hash, keyText } from './membership.js'

/** A stream as everybody can read it, and what it continues. */
export interface Stream {
  readonly key: string
  readonly blocks: Uint8Array[]
  readonly beginning: StreamBeginning | null
}

/** One step of a world: an edit, also under a new session; hearing more of others; beginning a new stream. */
export interface Step {
  readonly what: 'edit' | 'xml' | 'session' | 'hear' | 'compact'
  readonly edit: Edit
  readonly chances: readonly number[]
}

/** Steps of up to four members. */
export function arbSteps(): fc.Arbitrary<Step[]> {
  const what = fc.constantFrom<Step['what']>('edit', 'edit', 'edit', 'xml', 'xml', 'xml', 'session', 'hear', 'hear', 'compact', 'compact')
  const step = fc.record({
    what,
    edit: arbEdits().map(([edit]) => edit),
    chances: fc.array(fc.nat({ max: 99 }), { minLength: 4, maxLength: 4 })
  })
  return fc.array(step, { minLength: 30, maxLength: 60 })
}

/** A replica that knows what these streams continue. */
export function replicaOver(streams: readonly Stream[], own: string | null = null): Replica {
  const replica = new Replica({ guid: 'notes', hash, own })
  for (const { key, beginning } of streams) if (beginning !== null) assert.deepEqual(replica.continues(key, beginning), [])
  return replica
}

/** Gives a replica these streams, in an order that `choices` decide; what comes too soon is offered again. */
export function feed(replica: Replica, streams: readonly Stream[], choices: readonly number[]): void {
  let left = mixed(
    streams.map((stream) => ({ ...stream, replica })),
    choices
  )
  for (let before = -1; left.length > 0 && left.length !== before; ) {
    before = left.length
    left = left.filter((block) => {
      const { outcome, stops } = replica.receive(block)
      assert.deepEqual(stops, [])
      return outcome === 'later' || outcome === 'early'
    })
  }
  assert.equal(left.length, 0)
}

/** What people see of a document, and how far each clientID got in it. */
export function seenIn(doc: Y.Doc): unknown {
  const { map, list } = { map: doc.getMap('map').toJSON(), list: doc.getArray('list').toJSON() }
  const clocks = [...Y.decodeStateVector(Y.encodeStateVector(doc))].sort(([a], [b]) => a - b)
  return { text: doc.getText('text').toDelta() as unknown, map, list, xml: doc.getXmlFragment('xml').toJSON(), clocks }
}

/** How far each clientID got, and where its runs begin, whatever streams that is known of. */
export function runsIn(replica: Replica): unknown {
  const kept = decodeSnapshot(keptOf(replica))
  assert.ok(kept.ok)
  return kept.head.streams.flatMap(({ clients }) => clients).sort((a, b) => a.client - b.client)
}

/** Edits nested XML: puts elements into each other, writes into them, and removes them with all they hold. */
function editXml(doc: Y.Doc, { at, value, kind }: Edit): void {
  const root = doc.getXmlFragment('xml')
  const elements = [...root.createTreeWalker(() => true)].filter((each) => each instanceof Y.XmlElement)
  const within = elements.length === 0 || at % 3 === 0 ? root : (elements[at % elements.length] ?? root)
  const place = at % (within.length + 1)
  if (kind === 'cut' || kind === 'pull' || kind === 'unset') within.delete(place, Math.min(2, within.length - place))
  else if (kind === 'set' && within instanceof Y.XmlElement) within.setAttribute(`k${at % 2}`, value)
  else if (kind === 'text') writeInto(within, { place, value })
  else within.insert(place, [new Y.XmlElement(`e${at % 4}`)])
}

function writeInto(within: Y.XmlFragment, { place, value }: { place: number; value: string }): void {
  const text = within.toArray().find((each) => each instanceof Y.XmlText)
  if (text instanceof Y.XmlText) text.insert(place % (text.length + 1) === 1 ? 0 : text.length, `${value};`)
  else within.insert(place, [new Y.XmlText(`${value}!`)])
}

/** A member: what it knows of the streams of others, and the one it writes. */
class Member {
  replica: Replica
  stream: Stream
  /** Streams that it knows, by member, and how many blocks of each. */
  readonly known = new Map<Member, { stream: Stream; length: number }>()
  compactions = 0

  constructor(readonly name: string) {
    this.stream = { key: keyText(`stream/${name}`), blocks: [], beginning: null }
    this.replica = replicaOver([], this.stream.key)
  }

  /** Of each stream that it knows what it knows of it. */
  streams(): Stream[] {
    const others = [...this.known.values()].map(({ stream, length }) => ({ ...stream, blocks: stream.blocks.slice(0, length) }))
    return [this.stream, ...others]
  }
}

/** Members who write one document, hear of each other by chance, and begin new streams. */
export class CompactingWorld {
  readonly members = ['ann', 'bob', 'cem', 'dee'].map((name) => new Member(name))
  /** Has heard of everything that was ever written, and knows no streams. */
  readonly witness = new Y.Doc()
  compactions = 0

  constructor() {
    this.witness.on('afterTransaction', (transaction: Y.Transaction) => void Object.assign(transaction, { _needFormattingCleanup: false }))
    for (const member of this.members) this.#listen(member)
  }

  step({ what, edit, chances }: Step): void {
    const member = this.members[edit.who]
    if (what === 'hear') this.hear(member, chances)
    else if (what === 'compact') this.#compact(member, chances)
    else this.#edit(member, what, edit)
  }

  /** Hears more of each other stream: how much the chances decide. */
  hear(member: Member, chances: readonly number[]): void {
    let isOther = false
    for (const [place, other] of this.members.entries()) {
      if (other === member) continue
      const chance = chances[place] ?? 99
      const last = member.known.get(other) ?? { stream: other.stream, length: 0 }
      const isMoved = last.stream !== other.stream && chance > 40
      const stream = isMoved ? other.stream : last.stream
      const least = isMoved ? (stream.beginning?.blocks ?? 0) : last.length
      const length = least + Math.floor(((stream.blocks.length - least) * (chance + 1)) / 100)
      isOther ||= isMoved || (last.length === 0 && stream.beginning !== null)
      member.known.set(other, { stream, length })
    }
    if (isOther) this.#renew(member, chances)
    else feed(member.replica, member.streams(), chances)
  }

  /** All streams that count. */
  streams(): Stream[] {
    return this.members.map(({ stream }) => stream)
  }

  #edit(member: Member, what: Step['what'], edit: Edit): void {
    const { replica } = member
    replica.doc.clientID = what === 'session' ? replica.openSession() : replica.ownClientId()
    if (what === 'xml') editXml(replica.doc, edit)
    else apply(replica.doc, edit)
    this.#publish(member)
  }

  #publish({ replica, stream }: Member): void {
    const taken = replica.takeBlocks()
    assert.ok(taken.ok, taken.ok ? '' : taken.reason)
    stream.blocks.push(...taken.blocks)
  }

  #compact(member: Member, chances: readonly number[]): void {
    this.#publish(member)
    const snapshot = member.replica.ownSnapshot()
    if (snapshot === null) return
    const before = replicaOver(member.streams())
    feed(before, member.streams(), chances)
    const key = keyText(`stream/${member.name}/${++member.compactions}`)
    member.stream = { key, blocks: [...snapshot.blocks], beginning: { former: snapshot.former, blocks: snapshot.blocks.length } }
    this.#renew(member, chances)
    this.compactions++
    // What was made of the old stream and of the new one is the same, and refuses the same.
    const after = replicaOver(member.streams())
    feed(after, member.streams(), chances)
    assert.deepEqual(seenIn(after.doc), seenIn(before.doc))
    assert.ok(after.isSameAs(before))
    if (after.counts().waiting === 0 && before.counts().waiting === 0) assert.deepEqual(runsIn(after), runsIn(before))
  }

  /** A replica of what counts now; it has all that the one before had. */
  #renew(member: Member, chances: readonly number[]): void {
    const before = Y.decodeStateVector(Y.encodeStateVector(member.replica.doc))
    const streams = member.streams()
    member.replica = replicaOver(streams, member.stream.key)
    feed(member.replica, streams, chances)
    for (const [client, clock] of before) assert.ok(Y.getState(member.replica.doc.store, client) >= clock)
    this.#listen(member)
  }

  #listen({ replica }: Member): void {
    replica.doc.on('update', (update: Uint8Array, _origin: unknown, _doc: Y.Doc, { local }: Y.Transaction) => {
      if (local) Y.applyUpdate(this.witness, update)
    })
  }
}

/** What a writer begins its next stream with. */
export function compacted({ replica }: Pick<Writer, 'replica'>, name: string): Stream {
  const snapshot = replica.ownSnapshot()
  assert.ok(snapshot !== null)
  return {
    key: keyText(`stream/${name}`),
    blocks: [...snapshot.blocks],
    beginning: { former: snapshot.former, blocks: snapshot.blocks.length }
  }
}

/** A writer that goes on with a stream, and has heard of others. */
export function goingOn(stream: Stream, others: readonly Stream[] = []): Writer {
  const replica = replicaOver([stream, ...others], stream.key)
  feed(replica, [stream, ...others], [0])
  replica.doc.clientID = replica.ownClientId()
  return { key: stream.key, blocks: stream.blocks, replica }
}

/** A writer's stream, which continues none. */
export function plain({ key, blocks }: Writer): Stream {
  return { key, blocks, beginning: null }
}
