import test from 'brittle'
import { Replica } from '../../../src/domain/document/replica.js'
import { DocumentHistory, HISTORY_LIMITS } from '../../../src/node/documents/history.js'
import { sealBlock } from '../../../src/node/documents/local-streams.js'
import { countingIds } from '../../support/counting-ids.js'
import { publish, replicaOf, type Writer, writer } from '../../support/documents.js'
import { failsWith } from '../../support/fails.js'
import { hash, keyText } from '../../support/membership.js'

/** Streams as stored, and the largest number of blocks of one read. */
function stored(writers: readonly Writer[], bytes = 0) {
  const ids = countingIds()
  const seal = (block: Uint8Array, at: number): Uint8Array =>
    sealBlock(block, { document: 'id', self: keyText('self'), ids, tier: 0, at })
  const blocks = new Map(writers.map(({ key, blocks: all }) => [key, all.map(seal)]))
  const reads: number[] = []
  const history = new DocumentHistory({
    documents: {
      read: (stream, from, limit) => {
        reads.push(limit)
        return Promise.resolve((blocks.get(stream) ?? []).slice(from, from + limit))
      },
      size: () => ({ blocks: 0, from: 0, bytes })
    },
    known: { idOf: () => 'id' },
    own: { streamsOf: () => [] }
  })
  const ends = new Map([...blocks].map(([stream, all]) => [stream, all.length]))
  return { history, ends, reads }
}

test('a replay reads few blocks at a time, with many streams too, and stops at a given change', async (t) => {
  const writers = Array.from({ length: 40 }, (_, at) => writer(`writer ${at}`))
  for (const one of writers)
    for (let edit = 0; edit < 10; edit++) {
      one.replica.doc.getText('text').insert(0, 'x')
      publish(one)
    }
  const { history, ends, reads } = stored(writers)
  const open = { former: () => Promise.resolve({ replica: replicaOf(null), ends }) }
  let seen = 0
  const text = await history.replay(
    { name: 'notes', open },
    () => ++seen === 123,
    (doc) => doc.getText('text').toJSON()
  )
  t.is(text, 'x'.repeat(123))
  t.ok(Math.max(...reads) * writers.length <= HISTORY_LIMITS.maxRead, `${Math.max(...reads)} blocks a read`)
  const whole = await history.replay(
    { name: 'notes', open: { former: () => Promise.resolve({ replica: replicaOf(null), ends }) } },
    () => false,
    (doc) => doc.getText('text').length
  )
  t.is(whole, 400)
})

test('a history with too many blocks or bytes is refused before any is read, and blocks that are gone give CONFLICT', async (t) => {
  const ann = writer('ann')
  ann.replica.doc.getText('text').insert(0, 'x')
  publish(ann)
  const replay = (history: DocumentHistory, end: number): Promise<unknown> => {
    const replica = new Replica({ guid: 'id', hash, own: null })
    const former = (): ReturnType<Parameters<DocumentHistory['replay']>[0]['open']['former']> =>
      Promise.resolve({ replica, ends: new Map([[ann.key, end]]) })
    return history.replay(
      { name: 'notes', open: { former } },
      () => false,
      () => null
    )
  }
  const { history, reads } = stored([ann])
  await failsWith(t, 'OVERLOADED', () => replay(history, HISTORY_LIMITS.maxBlocks + 1))
  const large = stored([ann], HISTORY_LIMITS.maxBytes + 1)
  await failsWith(t, 'OVERLOADED', () => replay(large.history, 1))
  t.is(reads.length + large.reads.length, 0)
  const error = await failsWith(t, 'CONFLICT', () => replay(history, 2))
  t.ok(error.retryable)
  t.is(await replay(history, 1), null, 'a failed replay stops no later one')
})
