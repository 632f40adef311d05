import test from 'brittle'
import { clientIdOf } from '../../../src/domain/document/client-ids.js'
import { MAX_STREAMS, StreamTable } from '../../../src/domain/document/stream-table.js'
import { hash, keyText } from '../../support/membership.js'

const [ONE, TWO] = [keyText('one'), keyText('two')]

test('a stream is the same each time, and a document has a bounded number of them', (t) => {
  const table = new StreamTable(hash)
  const first = table.of(ONE)
  t.is(table.of(ONE), first)
  for (let at = 1; at < MAX_STREAMS; at++) table.of(`stream-${at}`)
  t.alike([table.size, table.of('one too many'), table.of(ONE) === first], [MAX_STREAMS, null, true])
  t.is(table.find('one too many'), undefined)
})

test('an ended stream is reported with its end, and a later end changes nothing', (t) => {
  const table = new StreamTable(hash)
  const stream = table.of(ONE)
  t.alike([...table.ends()], [])
  stream?.endAt({ at: 3, reason: 'forked' })
  stream?.endAt({ at: 5, reason: 'later' })
  t.alike([...table.ends()], [[ONE, { at: 3, reason: 'forked' }]])
  t.is(stream?.endAt({ at: 1, reason: 'earlier' }).at, 1)
})

test('content of a snapshot in force counts, for any end of the stream', (t) => {
  const past = { key: ONE, length: 4, opened: [0], clients: [], end: { at: 4, reason: 'its end' } }
  const inForce = new StreamTable(hash)
  inForce.restore([past], true)
  t.alike([inForce.lengths(), [...inForce.ends()]], [{ [ONE]: 4 }, []])
  t.is(inForce.of(ONE)?.endAt({ at: 1, reason: 'forked' }).at, 4)
  const kept = new StreamTable(hash)
  kept.restore([past], false)
  t.alike([...kept.ends()], [[ONE, past.end]])
  t.ok(kept.of(ONE)?.endAt({ at: 1, reason: 'forked' }).needsRebuild)
})

test('a clientID is of the stream that opened its session, and once an ended stream would have', (t) => {
  const table = new StreamTable(hash)
  table.of(ONE)
  t.is(table.open(ONE, 2), null)
  const client = clientIdOf({ stream: ONE, number: 1 }, hash)
  t.is(table.ids.ownerOf(client), ONE)
  const unopened = clientIdOf({ stream: TWO, number: 3 }, hash)
  table.of(TWO)
  t.is(table.onceOwnerOf(unopened), null)
  table.of(TWO)?.endAt({ at: 0, reason: 'forked' })
  t.is(table.onceOwnerOf(unopened), TWO)
})
