import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { MAX_SENT_BYTES, SentArtifacts } from '../../../src/domain/gateway/sent-artifacts.js'
import { holds } from '../../support/holds.js'

test('a result that repeats the sent chunks is recognized, for any cuts, and no other one', async (t: Assert) => {
  const property = fc.property(
    fc.array(fc.string(), { minLength: 1, maxLength: 8 }),
    fc.string({ minLength: 1 }),
    (pieces, more) => {
      const told = new SentArtifacts()
      for (const [at, text] of ['what it was before', ...pieces].entries())
        told.take({ artifactId: 'out', parts: [{ text }] }, at > 1)
      const text = pieces.join('')
      const all = (parts: readonly object[]) => ({ artifacts: [{ artifactId: 'out', parts }] })
      const known = [text, { text }, all(pieces.map((one) => ({ text: one }))), all([{ text }])]
      return (
        known.every((one) => told.covers(one)) &&
        ![null, more + text, { text, more }, all([]), all([{ text: more + text }])].some((one) => told.covers(one))
      )
    }
  )
  await holds(t, property, 300)
})

test('several artifacts are recognized by all of them; data by its value; the result itself and large ones never', (t: Assert) => {
  const told = new SentArtifacts()
  const [one, two] = [
    { artifactId: 'a', parts: [{ text: 'x' }] },
    { artifactId: 'b', parts: [{ data: { n: 1, m: [2] } }] }
  ]
  told.take(one, false)
  told.take(two, false)
  t.alike(
    [{ artifacts: [one, two] }, { artifacts: [one] }, { artifacts: [two, one] }, 'x', { artifacts: 'x' }].map(
      (result) => told.covers(result)
    ),
    [true, false, false, false, false]
  )
  const data = new SentArtifacts()
  data.take(two, false)
  t.alike([data.covers({ m: [2], n: 1 }), data.covers({ n: 1 })], [true, false])
  for (const artifact of [
    { artifactId: 'result', parts: [{ text: 'x' }] },
    { artifactId: 'out', parts: [{ text: 'x'.repeat(MAX_SENT_BYTES) }] }
  ]) {
    const other = new SentArtifacts()
    other.take(artifact, false)
    t.absent(other.covers(artifact.parts[0]?.text))
  }
})

test('all artifacts are known when the result itself is one of them: nothing takes its place', (t: Assert) => {
  const told = new SentArtifacts()
  for (const [at, text] of ['a', 'b', 'c'].entries()) told.take({ artifactId: 'log', parts: [{ text }] }, at > 0)
  const result = { artifactId: 'result', parts: [{ data: { done: 3 } }] }
  told.take(result, false)
  const log = { artifactId: 'log', parts: [{ text: 'abc' }] }
  t.ok(told.covers({ artifacts: [log, result] }))
  t.ok(told.isAll({ artifacts: [log, result] }))
  t.absent(told.isAll({ done: 3 }))
  t.absent(told.covers({ artifacts: [log, { ...result, parts: [{ data: { done: 4 } }] }] }))
  t.absent(told.covers({ done: 3 }))
})
