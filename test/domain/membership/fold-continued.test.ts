import test, { type Assert } from 'brittle'
import { countedStreams, streamsToHave } from '../../../src/domain/document/counted.js'
import { MAX_CONTINUED_OF_MEMBER, MAX_STREAMS_OF_MEMBER } from '../../../src/domain/membership/fold-document.js'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'
import { type Actor, actor, founded, keyText, type LogModel, MESH } from '../../support/membership.js'

const owner = actor('owner')
const [ann, bob] = [actor('ann'), actor('bob')]

/** A mesh with two members and a document in which ann writes the stream `a1` and bob `b1`. */
function world(): LogModel {
  const log = founded()
  for (const one of [ann, bob]) log.join(owner, one)
  log.write(owner, { kind: 'document', mesh: MESH, name: 'notes', access: null, at: 1000 })
  stream(log, ann, 'a1')
  stream(log, bob, 'b1')
  return log
}

/** Why a stream is not taken; null: it is. */
function stream(log: LogModel, by: Actor, key: string, from?: string, former: readonly string[] = from === undefined ? [] : [from]) {
  const continues =
    from === undefined
      ? {}
      : {
          continues: {
            from: keyText(from),
            blocks: 3,
            hash: keyText('tree'),
            former: former.map((name) => ({ stream: keyText(name), sessions: 1 }))
          }
        }
  return log.write(by, { kind: 'document-stream', mesh: MESH, name: 'notes', coreKey: keyText(key), ...continues }).skipped
}

/** Lets nobody but the creator write; `lengths`: what was known then. */
function close(log: LogModel, lengths: Record<string, number>): void {
  const rule = { members: [owner.id], maxTier: null, sandboxes: [], unsandboxed: false }
  const access = { see: { ...rule, unsandboxed: true }, write: rule, serial: 1 }
  const known = Object.fromEntries(Object.entries(lengths).map(([key, length]) => [keyText(key), length]))
  log.write(owner, { kind: 'document-access', mesh: MESH, name: 'notes', access, lengths: known })
}

function notes(log: LogModel): DocumentRecord {
  const document = log.view().documents.get('notes')
  if (document === undefined) throw new Error('no document')
  return document
}

/** Which streams count when these have begun, and how many blocks of each. */
function counted(log: LogModel, begun: readonly string[]): Record<string, number> {
  const has = new Set(begun.map(keyText))
  const streams = countedStreams(log.view(), notes(log), ({ coreKey }) => has.has(coreKey))
  const names = new Map(['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => [keyText(name), name]))
  return Object.fromEntries([...streams].map(([key, { blocks }]) => [names.get(key) ?? key, blocks]))
}

const ALL = Number.POSITIVE_INFINITY

test('a member continues its own last stream and nothing else, with the clientIDs of its own streams only', (t: Assert) => {
  const log = world()
  t.ok(stream(log, ann, 'a2', 'b1'), 'not that of another')
  t.ok(stream(log, ann, 'a2', 'nobody'))
  t.ok(stream(log, ann, 'a2', 'a1', ['b1']), 'not with the clientIDs of another')
  t.ok(stream(log, ann, 'a2', 'a1', ['a1', 'b1']))
  t.ok(stream(log, ann, 'a2', 'a1', ['a1', 'a1']))
  t.is(stream(log, ann, 'a2', 'a1'), null)
  t.ok(stream(log, ann, 'other', 'a1'), 'there is one that continues it')
  t.is(stream(log, ann, 'a3', 'a2', ['a1', 'a2']), null)
  t.alike(notes(log).streams[3]?.continues, {
    from: keyText('a2'),
    blocks: 3,
    hash: keyText('tree'),
    former: ['a1', 'a2'].map((name) => ({ stream: keyText(name), sessions: 1 }))
  })
})

test('a stream that does not state the streams before it continues them all the same, so that nobody waits for these', (t: Assert) => {
  const log = world()
  stream(log, ann, 'a2', 'a1', [])
  stream(log, ann, 'a3', 'a2', ['a2'])
  const formerOf = (key: string): unknown =>
    countedStreams(log.view(), notes(log), ({ coreKey }) => coreKey === keyText(key)).get(keyText(key))?.beginning?.former
  t.alike(formerOf('a2'), [{ stream: keyText('a1'), sessions: 1 }])
  t.alike(
    formerOf('a3'),
    ['a1', 'a2'].map((name) => ({ stream: keyText(name), sessions: 1 }))
  )
})

test('nobody takes the place of a stream by naming it as its own, nor keeps its member from continuing it', (t: Assert) => {
  const log = world()
  t.is(stream(log, bob, 'a1'), null)
  t.ok(stream(log, bob, 'b2', 'a1'))
  t.is(stream(log, ann, 'a2', 'a1'), null)
  t.alike(counted(log, ['a2', 'b2']), { b1: ALL, a2: ALL })
})

test('of several who name a stream the one counts that wrote what it begins with', (t: Assert) => {
  const log = world()
  // Bob brought the entry of ann into the log, behind one of his own.
  t.is(stream(log, bob, 'a2'), null)
  t.is(stream(log, ann, 'a2', 'a1'), null)
  const begun = countedStreams(log.view(), notes(log), ({ nodeKey, continues }) => nodeKey === ann.id && continues !== undefined)
  t.alike(begun.get(keyText('a2'))?.beginning, { former: [{ stream: keyText('a1'), sessions: 1 }], blocks: 3 })
  t.absent(begun.has(keyText('a1')))
})

test('a stream that continues another takes its place once it has begun, also when one between them never did', (t: Assert) => {
  const log = world()
  stream(log, ann, 'a2', 'a1')
  t.alike(counted(log, []), { a1: ALL, b1: ALL })
  t.alike(counted(log, ['a2']), { b1: ALL, a2: ALL })
  stream(log, ann, 'a3', 'a2', ['a1', 'a2'])
  t.alike(counted(log, []), { a1: ALL, b1: ALL })
  t.alike(counted(log, ['a2']), { b1: ALL, a2: ALL })
  t.alike(counted(log, ['a3']), { b1: ALL, a3: ALL })
  t.alike(
    streamsToHave(notes(log), () => false),
    ['a1', 'b1', 'a2', 'a3'].map(keyText),
    'all are fetched until one has begun'
  )
  t.alike(
    streamsToHave(notes(log), ({ coreKey }) => coreKey === keyText('a2')),
    ['b1', 'a2', 'a3'].map(keyText)
  )
})

test('of who lost the right to write what a stream begins with stays, if whoever said so knew of it or of the one before', (t: Assert) => {
  const known: [Record<string, number>, Record<string, number>][] = [
    [{ a1: 9 }, { b1: 0, a2: 3 }],
    [
      { a1: 9, a2: 5 },
      { b1: 0, a2: 5 }
    ],
    [{ a2: 2 }, { b1: 0, a2: 3 }],
    [{}, { b1: 0, a2: 0 }]
  ]
  for (const [lengths, left] of known) {
    const log = world()
    stream(log, ann, 'a2', 'a1')
    close(log, lengths)
    t.alike(counted(log, ['a2']), left)
  }
  const log = world()
  stream(log, ann, 'a2', 'a1')
  close(log, { a1: 9, a2: 5 })
  t.alike(counted(log, []), { a1: 9, b1: 0 }, 'where it has not begun the other one stays as it was')
  t.ok(stream(log, ann, 'a3', 'a2', ['a1']), 'and it is continued no more')
})

test('streams that are continued take no place, and a member has a bounded number of them', (t: Assert) => {
  const log = world()
  for (let i = 1; i < MAX_STREAMS_OF_MEMBER; i++) t.is(stream(log, bob, `more/${i}`), null)
  t.ok(stream(log, bob, 'one more'))
  t.is(stream(log, bob, 'b2', 'b1'), null)
  t.ok(stream(log, bob, 'one more'))
  let [last, count] = ['a1', 0]
  for (; stream(log, ann, `a1/${count}`, last, ['a1']) === null; count++) last = `a1/${count}`
  t.is(count, MAX_CONTINUED_OF_MEMBER)
})
