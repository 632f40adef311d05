import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { CRDTSyncChannel, type SyncWire } from '../../../src/domain/document/sync-channel.js'
import { type CRDTSyncMessage, MAX_CLOCK_ENTRIES } from '../../../src/domain/document/sync-message.js'
import { readUpdate } from '../../../src/domain/document/update/update.js'
import * as Y from 'yjs'
import { apply, arbEdits } from '../../support/documents.js'
import { holds } from '../../support/holds.js'

type Listener = (payload: unknown, from: string) => void

/** Wires that connect so many agents; what one sends, all others hear at once. */
function wires(count: number): { wire: SyncWire; inject: Listener }[] {
  const listeners = Array.from({ length: count }, () => new Set<Listener>())
  const toAll = (place: number, payload: unknown): void => {
    for (const [other, set] of listeners.entries())
      if (other !== place) for (const listener of set) listener(payload, `a${place}@node`)
  }
  return listeners.map((own, place) => ({
    wire: {
      send: async (payload) => toAll(place, payload),
      listen: (handler) => {
        own.add(handler)
        return () => void own.delete(handler)
      }
    },
    inject: (payload, from) => own.forEach((listener) => listener(payload, from))
  }))
}

function faultOf(update: unknown): string | null {
  if (!(update instanceof Uint8Array)) return 'no bytes'
  const reading = readUpdate(update)
  return reading.ok ? null : reading.reason
}

/** Agents with a document and a channel each: what comes in is applied. */
function agents(count: number) {
  return wires(count).map(({ wire, inject }, place) => {
    const doc = new Y.Doc()
    doc.clientID = place + 1
    const heard: CRDTSyncMessage[] = []
    const skipped: unknown[] = []
    const edits: Uint8Array[] = []
    const failed: unknown[] = []
    const channel = new CRDTSyncChannel({
      wire,
      now: () => 1,
      faultOf,
      onSkipped: (one) => skipped.push(one),
      onError: (error) => failed.push(error)
    })
    channel.onUpdate((message) => {
      heard.push(message)
      Y.applyUpdate(doc, message.payload as Uint8Array, 'channel')
    })
    doc.on('update', (update: Uint8Array, origin: unknown) => {
      if (origin !== 'channel') edits.push(update)
    })
    return { name: `a${place}@node`, doc, channel, heard, skipped, failed, edits, inject }
  })
}

test('Feature: a2a-mcp-protocols, Property 27: CRDT update broadcast and apply round trip', async (t) => {
  await holds(
    t,
    fc.asyncProperty(arbEdits(), async (edits) => {
      const all = agents(4)
      let sent = 0
      const counts: Record<string, number> = {}
      for (const edit of edits) {
        const one = all[edit.who]
        apply(one.doc, edit)
        for (const update of one.edits.splice(0)) {
          sent++
          counts[one.name] = (counts[one.name] ?? 0) + 1
          await one.channel.broadcast(update, one.name)
          // Every message carries the number of updates of each agent so far, its own included.
          for (const other of all) if (other !== one) assert.deepEqual(other.heard.at(-1)?.vectorClock, counts)
        }
      }
      const total = all.reduce((sum, { heard }) => sum + heard.length, 0)
      assert.equal(total, sent * 3, 'every update reached every other agent')
      for (const { doc, channel } of all) {
        assert.deepEqual(Y.encodeStateVector(doc), Y.encodeStateVector(all[0].doc))
        assert.deepEqual(doc.getText('text').toDelta(), all[0].doc.getText('text').toDelta())
        assert.deepEqual(doc.getMap('map').toJSON(), all[0].doc.getMap('map').toJSON())
        assert.deepEqual(doc.getArray('list').toJSON(), all[0].doc.getArray('list').toJSON())
        assert.deepEqual(channel.getVectorClock(), counts)
      }
    })
  )
})

test('an unreadable update is reported with its source and skipped; later updates pass', async (t) => {
  const [ann, bob] = agents(2)
  bob.inject(
    { sourceAgentId: ann.name, vectorClock: { [ann.name]: 1 }, payload: Uint8Array.of(1), timestamp: 1 },
    ann.name
  )
  bob.inject({ sourceAgentId: ann.name, vectorClock: {}, payload: Uint8Array.of(0, 0), timestamp: 1 }, ann.name)
  bob.inject('garbage', ann.name)
  const code = 'CRDT_DESERIALIZATION_FAILED'
  const none = 'no message of a document'
  t.alike(bob.skipped, [
    { code, source: ann.name, reason: 'it is cut short' },
    { code, source: ann.name, reason: none },
    { code, source: ann.name, reason: none }
  ])
  t.alike(bob.channel.getVectorClock(), {})
  ann.doc.getText('text').insert(0, 'text')
  for (const update of ann.edits) await ann.channel.broadcast(update, ann.name)
  t.is(bob.doc.getText('text').toJSON(), 'text')
})

test('no update makes a channel throw', async (t) => {
  const [bob] = agents(1)
  await holds(
    t,
    fc.property(fc.anything(), (payload) => bob.inject(payload, 'a9@node')),
    1000
  )
})

test('a closed channel sends and receives nothing; a removed handler receives nothing', async (t) => {
  const [ann, bob, cem] = agents(3)
  let count = 0
  const stop = cem.channel.onUpdate(() => void count++)
  ann.doc.getText('text').insert(0, 'x')
  const [update] = ann.edits
  await ann.channel.broadcast(update, ann.name)
  stop()
  await bob.channel.close()
  await ann.channel.broadcast(update, ann.name)
  await bob.channel.broadcast(update, bob.name)
  t.alike([bob.heard.length, cem.heard.length, count], [1, 2, 1])
})

test('nobody speaks for another, and no more agents are counted than a vector clock names', (t) => {
  const [bob] = agents(1)
  const empty = Uint8Array.of(0, 0)
  const say = (source: string, from: string): void =>
    bob.inject({ sourceAgentId: source, vectorClock: { [source]: 7 }, payload: empty, timestamp: 1 }, from)
  say('eve@node', 'mallory@node')
  t.alike(bob.channel.getVectorClock(), {})
  for (let place = 0; place < MAX_CLOCK_ENTRIES + 5; place++) say(`a${place}@node`, `a${place}@node`)
  t.is(Object.keys(bob.channel.getVectorClock()).length, MAX_CLOCK_ENTRIES)
  t.is(bob.skipped.length, 1 + 5)
  say('a3@node', 'a3@node')
  t.is(bob.heard.length, MAX_CLOCK_ENTRIES + 1, 'a counted writer continues')
})

test('a handler that throws keeps no update from the others', (t) => {
  const [bob] = agents(1)
  let count = 0
  bob.channel.onUpdate(() => {
    throw new Error('broken')
  })
  bob.channel.onUpdate(() => void count++)
  bob.inject({ sourceAgentId: 'a@n', vectorClock: { 'a@n': 1 }, payload: Uint8Array.of(0, 0), timestamp: 1 }, 'a@n')
  t.alike([count, bob.failed.length], [1, 1])
})
