import test, { type Assert } from 'brittle'
import { AbandonedDocuments, leftProblems, leftReason, shareOf } from '../../../src/node/documents/left-documents.js'
import type { LeftStream } from '../../../src/node/documents/replication-set.js'
import type { DocumentRecord, RemovedDocument } from '../../../src/domain/membership/types.js'
import { EMPTY_VIEW } from '../../../src/domain/membership/view.js'
import { ManualClock } from '../../support/manual-clock.js'

test('the share of a member counts its own left streams alone, and each reason has its words', (t) => {
  const left: LeftStream[] = [
    { stream: 'a', node: 'one', reason: 'bytes' },
    { stream: 'b', node: 'two', reason: 'places' },
    { stream: 'c', node: 'one', reason: 'revoked' },
    { stream: 'd', node: 'two', reason: 'oversized' }
  ]
  const record: DocumentRecord = { name: 'plan', creator: 'one', createdAt: 0, access: null, streams: [] }
  const share = shareOf(
    { followed: { leftOf: () => left }, shares: { bytesOf: ({ kind }) => (kind === 'stream' ? 7 : 3) } },
    { documents: new Map([['plan', record]]) },
    'one'
  )
  t.alike([share.bytes, share.snapshotBytes, share.leftOut], [7, 3, 2])
  t.is(new Set(left.map(leftReason)).size, 4)
})

test('status names each member with an oversized block or too many streams, and no revoked one', (t) => {
  const left: LeftStream[] = [
    { stream: 'a', node: 'one', reason: 'oversized' },
    { stream: 'b', node: 'one', reason: 'oversized' },
    { stream: 'c', node: 'two', reason: 'oversized' },
    { stream: 'd', node: 'two', reason: 'bytes' },
    { stream: 'e', node: 'three', reason: 'revoked' }
  ]
  const record: DocumentRecord = { name: 'plan', creator: 'one', createdAt: 0, access: null, streams: [] }
  const view = { ...EMPTY_VIEW, documents: new Map([['plan', record]]) }
  const problems = leftProblems({ followed: { leftOf: () => left } }, view)
  t.alike(
    problems.map(({ code, next }) => [code, next]),
    [
      ['MALFORMED', 'a2a-node peers show one'],
      ['MALFORMED', 'a2a-node peers show two'],
      ['OVERLOADED', 'a2a-node peers show two']
    ]
  )
  t.ok(problems[0]?.message.includes('nothing more of 2 streams is fetched'), problems[0]?.message)
})

const MINUTE_MS = 60_000

/** Removed documents of a node, each with blocks here until they are freed. */
function removals() {
  const clock = new ManualClock()
  const removed = new Map<string, RemovedDocument>()
  const freed: string[] = []
  const state = { inUse: '', failing: '', errors: 0 }
  const isStored = (name: string): boolean => removed.has(name) && !freed.includes(name)
  const abandoned = new AbandonedDocuments({
    clock,
    log: { view: () => ({ ...EMPTY_VIEW, removedDocuments: new Map(removed) }) },
    followed: {
      isAbandoned: ({ name }) => removed.has(name),
      isUsed: isStored,
      removeAbandoned: (_, remove) => remove()
    },
    shares: { isStored: () => false },
    marks: { has: () => false },
    isInUse: (name) => state.inUse === name,
    remove: ({ name }) => {
      if (state.failing === name) return Promise.reject(new Error('the disk'))
      freed.push(name)
      return Promise.resolve()
    },
    onError: () => state.errors++
  })
  const set = (name: string, isRemoved: boolean): void => {
    if (isRemoved)
      removed.set(name, {
        name,
        creator: 'ann',
        createdAt: 0,
        access: null,
        streams: [],
        removed: { by: 'ann', at: clock.now() }
      })
    else removed.delete(name)
    abandoned.review()
  }
  const pass = async (minutes: number): Promise<void> => {
    clock.advance(minutes * MINUTE_MS)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { abandoned, clock, freed, state, set, pass }
}

test('the blocks of each removed document are freed ten minutes after its own removal', async (t: Assert) => {
  const { abandoned, clock, freed, set, pass } = removals()
  set('a', true)
  await pass(6)
  set('b', true)
  await pass(3)
  set('c', true)
  t.alike(freed, [])
  await pass(1)
  t.alike(freed, ['a'], 'a later removal neither delays an earlier one nor goes with it')
  await pass(6)
  t.alike(freed, ['a', 'b'])
  await pass(3)
  t.alike(freed, ['a', 'b', 'c'])
  t.is(clock.pending, 0)
  await abandoned.close()
})

test('a removal that the log undid counts anew when it comes again, and one in use or that fails is tried again', async (t: Assert) => {
  const { abandoned, clock, freed, state, set, pass } = removals()
  set('a', true)
  await pass(9)
  set('a', false)
  set('a', true)
  state.inUse = 'a'
  await pass(9)
  t.alike(freed, [])
  await pass(1)
  t.alike(freed, [], 'it is in use')
  state.inUse = ''
  state.failing = 'a'
  set('b', true)
  await pass(10)
  t.alike([freed, state.errors], [['b'], 1], 'one that fails does not hold up another')
  state.failing = ''
  await pass(9)
  t.alike(freed, ['b'], 'no retry comes at once')
  await pass(1)
  t.alike(freed, ['b', 'a'], 'the retry needs no change of the mesh log')
  set('c', true)
  await abandoned.close()
  t.is(clock.pending, 0, 'closing ends the wait')
})
