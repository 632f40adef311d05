import test, { type Assert } from 'brittle'
import { UnsentEdits } from '../../../src/adapters/control/unsent-edits.js'
import { NodeError } from '../../../src/kit/errors.js'

const KIB = 1024

test('a batch is the first edits that fit into 128 KiB, and one larger edit goes alone', (t: Assert) => {
  const edits = new UnsentEdits()
  t.ok(edits.isEmpty)
  t.alike(edits.batch(), [])
  const sizes = [200 * KIB, 64 * KIB, 64 * KIB, 1]
  for (const size of sizes) edits.add(new Uint8Array(size))
  const sent: number[][] = []
  while (!edits.isEmpty) {
    const batch = edits.batch()
    sent.push(batch.map(({ update }) => update.byteLength))
    edits.sent(batch)
  }
  t.alike(sent, [[200 * KIB], [64 * KIB, 64 * KIB], [1]])
})

test('a caller waits for the edits made before it asked, also when they go as one, and learns why none is sent any more', async (t: Assert) => {
  const edits = new UnsentEdits()
  await edits.saved()
  edits.add(new Uint8Array(1))
  const first = edits.saved()
  const stale = edits.batch()
  edits.add(new Uint8Array(1))
  const second = edits.saved()
  edits.merge(new Uint8Array(2))
  edits.sent(stale)
  await first
  t.is(edits.batch().length, 1, 'the merged update stays: the batch was of an earlier session')
  edits.sent(edits.batch())
  await second
  t.ok(edits.isEmpty)
  edits.merge(new Uint8Array(9))
  t.ok(edits.isEmpty, 'nothing is merged where nothing is unsent')
  edits.add(new Uint8Array(1))
  const third = edits.saved()
  edits.fail(new NodeError('CONFLICT', 'first'))
  edits.fail(new NodeError('CANCELED', 'second'))
  for (const waiting of [third, edits.saved()]) {
    const error = await waiting.then(null, (thrown: unknown) => thrown)
    t.ok(error instanceof NodeError && error.message === 'first', String(error))
  }
})
