import test, { type Assert } from 'brittle'
import type { DocumentAccess } from '../../../src/domain/document/access.js'
import { countedBlocks } from '../../../src/domain/document/counted.js'
import { MAX_DOCUMENTS_OF_MEMBER, MAX_STREAMS_OF_MEMBER } from '../../../src/domain/membership/fold-document.js'
import { DOCUMENTS_KEY } from '../../../src/domain/membership/keys.js'
import { SERIAL_MAX_STEP } from '../../../src/domain/membership/serial.js'
import { type Actor, actor, founded, keyText, type LogModel, MESH } from '../../support/membership.js'

const owner = actor('owner')
const [ann, bob, cat] = [actor('ann'), actor('bob'), actor('cat')]

/** A mesh with two members in no sandbox and one in one. */
function world(): LogModel {
  const log = founded()
  for (const one of [ann, bob]) log.join(owner, one)
  log.join(owner, cat, { sandboxId: 'ci' })
  return log
}

const create = (log: LogModel, by: Actor, access: DocumentAccess | null = null, name = 'notes') =>
  log.write(by, { kind: 'document', mesh: MESH, name, access, at: 1000 })
const stream = (log: LogModel, by: Actor, key: string, name = 'notes') =>
  log.write(by, { kind: 'document-stream', mesh: MESH, name, coreKey: keyText(key) })
const restrict = (log: LogModel, by: Actor, access: DocumentAccess, lengths: Record<string, number> = {}) =>
  log.write(by, { kind: 'document-access', mesh: MESH, name: 'notes', access, lengths })

/** A list that lets these nodes see, and those write. */
function only(see: readonly Actor[], write: readonly Actor[], serial: number): DocumentAccess {
  const rule = (who: readonly Actor[]) => ({ members: who.map(({ id }) => id), maxTier: null, sandboxes: [], unsandboxed: false })
  return { see: rule(see), write: rule(write), serial }
}

test('who names a document first has created it, and the log keeps one of each name', (t: Assert) => {
  const log = world()
  t.is(create(log, ann).skipped, null)
  t.ok(create(log, bob).skipped)
  t.is(create(log, bob, null, 'plans/2026 \u00e9').skipped, null, 'any line is a name')
  const { documents } = log.view()
  t.alike([...documents.keys()].sort(), ['notes', 'plans/2026 \u00e9'])
  t.alike(documents.get('notes'), { name: 'notes', creator: ann.id, createdAt: 1000, access: null, streams: [] })
  t.alike(log.records.get(DOCUMENTS_KEY), { total: 2, by: { [ann.id]: 1, [bob.id]: 1 } })
})

test('a member adds streams to documents that it may write, each once and not many', (t: Assert) => {
  const log = world()
  t.ok(stream(log, ann, 's').skipped, 'a document that nobody created has none')
  create(log, ann)
  t.is(stream(log, bob, 's').skipped, null)
  t.ok(stream(log, bob, 's').skipped, 'once')
  t.ok(stream(log, cat, 's2').skipped, 'who is in a sandbox may not write by default')
  t.is(stream(log, ann, 's').skipped, null, 'naming the stream of another takes it from nobody')
  for (let i = 1; i < MAX_STREAMS_OF_MEMBER; i++) t.is(stream(log, bob, `s/${i}`).skipped, null)
  t.ok(stream(log, bob, 'one more').skipped)
  t.is(log.view().documents.get('notes')?.streams.length, MAX_STREAMS_OF_MEMBER + 1)
})

test('creator and owner restrict a document, nobody else, and the newest list counts', (t: Assert) => {
  const log = world()
  create(log, ann)
  t.ok(restrict(log, bob, only([bob], [bob], 1)).skipped, 'bob did not create it')
  t.is(restrict(log, ann, only([bob], [], 1), { [keyText('s')]: 4 }).skipped, null)
  t.alike(log.view().documents.get('notes')?.access, { access: only([bob], [], 1), by: ann.id, lengths: { [keyText('s')]: 4 } })
  t.ok(restrict(log, ann, only([bob], [], 1)).skipped, 'the same once more changes nothing')
  t.is(restrict(log, owner, only([cat], [cat], 1)).skipped, null, 'of equal serials that of the owner')
  t.ok(restrict(log, ann, only([bob], [bob], 1)).skipped)
  t.ok(restrict(log, ann, only([bob], [bob], 2 + SERIAL_MAX_STEP)).skipped, 'numbers cannot be used up')
  t.is(restrict(log, ann, only([bob], [bob], 2)).skipped, null)
  t.ok(stream(log, cat, 'c').skipped)
  t.is(stream(log, bob, 'b').skipped, null)
  t.is(stream(log, owner, 'o').skipped, null, 'the owner always may')
})

test('a document is born with its list, so that nobody sees it who may not', (t: Assert) => {
  const log = world()
  t.is(create(log, ann, only([cat], [cat], 1)).skipped, null)
  t.ok(stream(log, bob, 'b').skipped)
  t.is(stream(log, cat, 'c').skipped, null)
})

test('no member uses up the documents of the others, nor those of the owner', (t: Assert) => {
  const log = world()
  log.records.set(DOCUMENTS_KEY, { total: MAX_DOCUMENTS_OF_MEMBER, by: { [ann.id]: MAX_DOCUMENTS_OF_MEMBER } })
  t.ok(create(log, ann).skipped)
  t.is(create(log, bob).skipped, null)
  log.records.set(DOCUMENTS_KEY, { total: 1_000_000, by: {} })
  t.ok(create(log, ann, null, 'more').skipped)
  t.is(create(log, owner, null, 'more').skipped, null)
})

test('of who may write all blocks count; of who lost that right as many as the list had seen', (t: Assert) => {
  const log = world()
  create(log, ann)
  stream(log, bob, 'b')
  stream(log, ann, 'a')
  const counted = (key: string): number => {
    const view = log.view()
    const document = view.documents.get('notes')
    if (document === undefined) throw new Error('no document')
    return countedBlocks(view, document, keyText(key))
  }
  t.is(counted('b'), Number.POSITIVE_INFINITY)
  t.is(counted('nobody'), 0)
  restrict(log, ann, only([ann, bob], [], 1), { [keyText('b')]: 3 })
  t.is(counted('b'), 3)
  t.is(counted('a'), Number.POSITIVE_INFINITY, 'its creator always may')
  restrict(log, ann, only([ann], [], 2))
  t.is(counted('b'), 0)
  restrict(log, ann, only([ann, bob], [bob], 3))
  t.is(counted('b'), Number.POSITIVE_INFINITY)
  log.revoke(owner, bob)
  t.is(counted('b'), Number.POSITIVE_INFINITY, 'what a member wrote outlives its membership')
})

test('a core is a stream of one document only, so that nobody gets it by another', (t: Assert) => {
  const log = world()
  create(log, ann, only([ann], [ann], 1), 'private')
  create(log, bob, null, 'open')
  t.is(stream(log, ann, 's', 'private').skipped, null)
  t.is(stream(log, bob, 's', 'open').skipped, 'the stream is one of another document')
  t.is(stream(log, ann, 's', 'open').skipped, 'the stream is one of another document', 'not even its writer')
  t.is(stream(log, bob, 's2', 'open').skipped, null)
  t.is(log.view().documents.get('open')?.streams.length, 1)
})
