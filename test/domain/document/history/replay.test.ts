import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { sharedParts } from '../../../../src/domain/document/shared-types.js'
import { type HistoryChange, HistoryReplay, type TimedBlock } from '../../../../src/domain/document/history/replay.js'
import type { Replica } from '../../../../src/domain/document/replica.js'
import {
  apply,
  arbEdits,
  type Edit,
  publish,
  replicaOf,
  tell,
  type Writer,
  writer
} from '../../../support/documents.js'
import { holds } from '../../../support/holds.js'

/** Blocks by stream, as a node reads them. */
type Streams = ReadonlyMap<string, readonly TimedBlock[]>

/** Edits of four members that publish after each one. `clockOf`: the author's clock at an edit. */
function recorded(
  edits: readonly Edit[],
  clockOf: (at: number, who: number) => number
): { writers: Writer[]; streams: Streams; order: TimedBlock[] } {
  const writers = ['ann', 'bob', 'cem', 'dee'].map((name) => writer(name))
  const order: TimedBlock[] = []
  for (const [at, edit] of edits.entries()) {
    const one = writers[edit.who]
    if (one === undefined) continue
    const before = one.blocks.length
    if (edit.isInformed) tell(one.replica, writers)
    apply(one.replica.doc, edit)
    publish(one)
    for (const [place, bytes] of one.blocks.slice(before).entries())
      order.push({ stream: one.key, index: before + place, bytes, at: clockOf(at, edit.who) })
  }
  const streams = new Map(writers.map(({ key }) => [key, order.filter(({ stream }) => stream === key)]))
  return { writers, streams, order }
}

/** All changes of these streams, with the content after each. */
function replayed(
  streams: Streams,
  replica: Replica = replicaOf(null)
): { changes: HistoryChange[]; contents: unknown[]; replica: Replica } {
  const replay = new HistoryReplay(replica)
  const places = new Map([...streams.keys()].map((stream) => [stream, 0]))
  const [changes, contents]: [HistoryChange[], unknown[]] = [[], []]
  for (;;) {
    for (const [stream, blocks] of streams) {
      const place = places.get(stream) ?? 0
      const block = blocks[place]
      if (block === undefined || !replay.lacks(stream)) continue
      replay.give(block)
      places.set(stream, place + 1)
    }
    const change = replay.step()
    if (change === null) return { changes, contents, replica }
    if (change === 'nothing') continue
    changes.push(change)
    contents.push(sharedParts(replay.doc))
  }
}

test('the content after each change is that of the blocks written until then, where clocks agree', async (t) => {
  await holds(
    t,
    fc.property(arbEdits(), (edits) => {
      const { streams, order } = recorded(edits, (at) => at)
      const { changes, contents } = replayed(streams)
      const expected = new Map<string, unknown>()
      const whole = replicaOf(null)
      for (const block of order) {
        whole.receive(block)
        expected.set(`${block.stream}/${block.index}`, sharedParts(whole.doc))
      }
      for (const [place, { stream, index }] of changes.entries())
        assert.deepEqual(contents[place], expected.get(`${stream}/${index}`))
      assert.deepEqual(contents.at(-1) ?? [], sharedParts(whole.doc))
    }),
    200
  )
})

test('with wrong clocks each change comes after those that it depends on, and the last content is the same', async (t) => {
  const arbClocks = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 30 })
  await holds(
    t,
    fc.property(arbEdits(), arbClocks, (edits, clocks) => {
      const { writers, streams } = recorded(edits, (at) => clocks[at % clocks.length] ?? 0)
      const whole = replicaOf(null)
      tell(whole, writers)
      const { changes, contents, replica } = replayed(streams)
      assert.deepEqual(contents.at(-1) ?? [], sharedParts(whole.doc))
      assert.deepEqual(replica.vectorClock(), whole.vectorClock())
      const again = replicaOf(null)
      const places = new Map<string, number>()
      for (const { stream, index } of changes) {
        for (let place = places.get(stream) ?? 0; place <= index; place++) {
          const block = streams.get(stream)?.[place]
          if (block !== undefined) again.receive(block)
        }
        places.set(stream, index + 1)
        assert.equal(again.waiting, 0, 'no change waits for a later one')
      }
    }),
    200
  )
})

test('a history gives the part, its type, the size and the clock of each change', (t) => {
  const ann = writer('ann')
  const steps = [
    (): void => ann.replica.doc.getText('text').insert(0, 'hello'),
    (): void => ann.replica.doc.getText('text').delete(0, 2),
    (): void => void ann.replica.doc.getMap('settings').set('color', 'blue'),
    (): void => ann.replica.doc.getMap('settings').delete('color'),
    (): void => ann.replica.doc.getArray('list').insert(0, [1, 2]),
    (): void => ann.replica.doc.getText('text').delete(0, 3)
  ]
  for (const step of steps) {
    step()
    publish(ann)
  }
  const times = [50, 40, 60, 70, 80, 90]
  const blocks = ann.blocks.map((bytes, index) => ({ stream: ann.key, index, bytes, at: times[index] ?? 0 }))
  const { changes } = replayed(new Map([[ann.key, blocks]]))
  t.alike(
    changes.map(({ at, latest, added, removed, parts }) => [at, latest, added, removed, ...parts]),
    [
      [50, 50, 5, 0, { root: 'text', type: 'text' }],
      [40, 50, 0, 2, { root: 'text', type: 'text' }],
      [60, 60, 1, 0, { root: 'settings', type: 'map' }],
      [70, 70, 0, 1, { root: 'settings', type: 'map' }],
      [80, 80, 2, 0, { root: 'list', type: 'list' }],
      [90, 90, 0, 3, { root: 'text', type: 'text' }]
    ]
  )
  t.alike(
    changes.map(({ bytes }) => bytes),
    ann.blocks.map(({ byteLength }) => byteLength)
  )
})

test('blocks that can never be applied, and garbage, end a replay and leave the other streams whole', (t) => {
  const [ann, bob, cem] = [writer('ann'), writer('bob'), writer('cem')]
  ann.replica.doc.getText('text').insert(0, 'ann')
  publish(ann)
  tell(bob.replica, [ann])
  bob.replica.doc.getText('text').insert(3, ' and bob')
  publish(bob)
  cem.replica.doc.getText('text').insert(0, 'cem')
  publish(cem)
  const timed = ({ key, blocks }: Writer, at: number): readonly TimedBlock[] =>
    blocks.map((bytes, index) => ({ stream: key, index, bytes, at }))
  const garbage = [{ stream: bob.key, index: 0, bytes: new Uint8Array([9, 9]), at: 0 }]
  const lost = replayed(
    new Map([
      [bob.key, timed(bob, 1)],
      [cem.key, timed(cem, 2)]
    ])
  )
  t.is(lost.replica.doc.getText('text').toJSON(), 'cem')
  const broken = replayed(
    new Map([
      [bob.key, [...garbage, ...timed(bob, 1)]],
      [cem.key, timed(cem, 2)]
    ])
  )
  t.is(broken.replica.doc.getText('text').toJSON(), 'cem')
  t.is(broken.changes.length, 1)
})

test('a replay of a full document ends, and names no change that is not applied', (t) => {
  const ann = writer('ann')
  for (let piece = 0; piece < 8; piece++) {
    ann.replica.doc.getText('text').insert(0, 'x'.repeat(100_000))
    publish(ann)
  }
  const blocks = ann.blocks.map((bytes, index) => ({ stream: ann.key, index, bytes, at: index }))
  const { changes, contents } = replayed(new Map([[ann.key, blocks]]), replicaOf(null, { maxBytes: 600_000 }))
  t.ok(changes.length > 0 && changes.length < 8, `${changes.length} changes`)
  t.is(contents.length, changes.length)
})
