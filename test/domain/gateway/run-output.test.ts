import test from 'brittle'
import { RunOutput } from '../../../src/domain/gateway/run-output.js'
import { MAX_SENT_BYTES } from '../../../src/domain/gateway/sent-artifacts.js'

test('the texts of a language model are the result in pieces, and each turn replaces the one before', (t) => {
  const output = new RunOutput()
  const append = [
    { token: 'a', turn: 1 },
    { token: 'b', turn: 1 },
    { token: 'c', turn: 2 },
    { token: 'd', turn: 2 }
  ].map((report) => output.take(report, true)?.append)
  t.alike(append, [false, true, false, true])
  t.alike([output.isSpoken('cd'), output.isSpoken('abcd'), output.isSpoken('ab')], [true, false, false])
})

test('a piece that is no longer recorded is no part of the text', (t) => {
  const output = new RunOutput()
  output.take({ token: 'a', turn: 1 }, true)
  t.is(output.take({ token: 'b', turn: 1 }, false), null)
  t.alike([output.isSpoken('a'), output.isSpoken('ab')], [true, false])
  t.is(output.take({ token: '', turn: 1 }, true), null, 'an empty one is none')
})

test('a text too long to be stored is in the result itself', (t) => {
  const output = new RunOutput()
  const long = 'x'.repeat(MAX_SENT_BYTES + 1)
  output.take({ token: long, turn: 1 }, true)
  t.absent(output.isSpoken(long))
  t.ok(output.bytes > MAX_SENT_BYTES)
})

test('a result that names the sent artifacts adds no more; after the first turn it has to name them all', (t) => {
  const output = new RunOutput()
  const artifact = { artifactId: 'report', parts: [{ text: 'done' }] }
  t.is(output.take({ a2a: { artifact } }, true)?.artifact, artifact)
  output.sent(artifact, false)
  t.alike([output.isSent('done', true), output.isSent('done', false)], [true, false])
  t.ok(output.isSent({ artifacts: [artifact] }, false))
  t.absent(output.isSent('other', true))
})
