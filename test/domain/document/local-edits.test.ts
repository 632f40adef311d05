import test from 'brittle'
import { utf8 } from '../../../src/kit/ids.js'
import { forger, publish, replicaOf, stateOf, tell, writer } from '../../support/documents.js'

/** An update of this clientID: a text behind and before clocks of its own. */
function between(
  client: number,
  { clock, left, right, text }: { clock: number; left: number; right: number; text: string }
): Uint8Array {
  const id = (at: number): number[] => [...varUint(client), ...varUint(at)]
  return Uint8Array.from([
    1,
    1,
    ...varUint(client),
    ...varUint(clock),
    0xc4,
    ...id(left),
    ...id(right),
    text.length,
    ...utf8(text),
    0
  ])
}

function varUint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varUint(Math.floor(value / 128))]
}

test('an edit that would end the stream of this node at others is not written: left and right origins in the wrong order', (t) => {
  const ann = writer('ann')
  const text = ann.replica.doc.getText('text')
  const client = ann.replica.doc.clientID
  text.insert(0, 'abcdef')
  publish(ann)
  const write = (left: number, right: number): string | null =>
    ann.replica.write(between(client, { clock: 6, left, right, text: 'Z' }))
  t.is(write(4, 2), 'an update whose left and right are the wrong way round')
  t.is(text.toJSON(), 'abcdef')
  t.is(write(4, 5), null)
  publish(ann)
  t.is(text.toJSON(), 'abcdeZf')
  const replica = replicaOf(null)
  t.alike(tell(replica, [ann]), [])
  t.alike(stateOf(replica), stateOf(ann.replica))
})

test('an insertion in one piece before the latest one of the program is accepted, here and elsewhere', (t) => {
  const ann = writer('ann')
  const session = ann.replica.sessions.open()
  publish(ann)
  const program = forger(session)
  const text = program.doc.getText('text')
  text.insert(0, 'abc')
  program.doc.transact(() => {
    text.insert(0, 'X')
    text.insert(1, 'Y')
    text.insert(1, 'Z')
  })
  for (const update of program.take()) {
    t.is(ann.replica.write(update), null)
    publish(ann)
  }
  const replica = replicaOf(null)
  t.alike(tell(replica, [ann]), [])
  t.is(replica.doc.getText('text').toJSON(), 'XZYabc')
})

test('an insertion with the origins of its new part in the wrong order is not sent, also when its beginning is known', (t) => {
  const ann = writer('ann')
  const client = ann.replica.doc.clientID
  ann.replica.doc.getText('text').insert(0, 'abcdef')
  publish(ann)
  // Clock 5 is known: of this only what follows is new, behind clock 5 and before clock 2.
  t.is(ann.replica.write(between(client, { clock: 5, left: 1, right: 2, text: 'YZ' })), null)
  t.alike(ann.replica.takeBlocks(), { ok: false, reason: 'an update whose left and right are the wrong way round' })
})

test('nothing is put into a stream of this node that ended', (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'a')
  publish(ann)
  ann.replica.stop(ann.key, 1, 'two tales')
  t.alike(ann.replica.takeBlocks(), { ok: true, blocks: [] })
  ann.replica.doc.getText('text').insert(0, 'b')
  t.alike(ann.replica.takeBlocks(), { ok: false, reason: 'the stream of this node ended' })
})

test('an edit in pieces of which others could take the first ones only is refused: the document would be full', (t) => {
  const ann = writer('ann', { maxBytes: 1_000_000 })
  const text = ann.replica.doc.getText('text')
  text.insert(0, 'a'.repeat(700_000))
  publish(ann)
  t.is(ann.blocks.length, 3)
  // What is removed makes room for what comes instead of it, here and on the way.
  ann.replica.doc.transact(() => {
    text.delete(0, 700_000)
    text.insert(0, 'b'.repeat(800_000))
  })
  publish(ann)
  const replica = replicaOf(null, { maxBytes: 1_000_000 })
  t.alike(tell(replica, [ann]), [])
  t.ok(replica.doc.getText('text').toJSON() === 'b'.repeat(800_000))
  text.insert(0, 'c'.repeat(300_000))
  t.alike(ann.replica.takeBlocks(), { ok: false, reason: 'the document has no room for it', isFull: true })
})
