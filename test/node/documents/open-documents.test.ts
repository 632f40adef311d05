import test, { type Assert } from 'brittle'
import { asNodeError } from '../../../src/kit/errors.js'
import type { DocumentRecord, MembershipView } from '../../../src/domain/membership/types.js'
import { OpenDocuments, type OpenDocumentsDeps } from '../../../src/node/documents/open-documents.js'
import { ManualClock } from '../../support/manual-clock.js'
import { actor, founded, hash, keyText } from '../../support/membership.js'
import { StreamNet } from '../../support/memory-streams.js'

const IDLE_MS = 30_000
const owner = actor('owner')
const OWN = keyText('own')
const NEXT = keyText('next')

interface Scene {
  readonly open: OpenDocuments
  readonly clock: ManualClock
  readonly announced: string[]
  readonly offered: string[]
  /** True: this node may write the document. */
  mayWrite: boolean
  /** The own stream that is written now. */
  own: string
  isFollowed: boolean
}

/** The documents of a node whose log names `plan`, with the own streams in memory. */
function scene(t: Assert, deps: Partial<OpenDocumentsDeps> = {}): Scene {
  const clock = new ManualClock()
  const model = founded()
  const record: DocumentRecord = { name: 'plan', creator: owner.id, createdAt: 0, access: null, streams: [] }
  const view = (): MembershipView => ({ ...model.view(), documents: new Map([['plan', record]]) })
  const documents = new StreamNet({ isConnected: () => true, moved: 0 }).of(owner.id)
  const open = new OpenDocuments({
    clock,
    hash,
    log: { view },
    documents,
    known: { idOf: (name) => `id of ${name}` },
    own: {
      announce: (name, stream) => found.announced.push(`${name} ${stream}`),
      append: () => Promise.resolve(),
      blocksOf: () => 0,
      mayWrite: () => found.mayWrite,
      mustHavePlace: () => {},
      nameOf: (stream) => (stream === found.own ? 'plan' : null),
      open: () => Promise.resolve(found.own),
      unheardOf: () => []
    },
    followed: {
      has: () => found.isFollowed,
      add: () => {
        found.isFollowed = true
        return Promise.resolve()
      },
      use: () => {}
    },
    forks: { has: () => false },
    snapshots: {
      offer: (name) => {
        found.offered.push(name)
        return Promise.resolve()
      },
      used: { base: () => Promise.resolve(null) }
    },
    onReview: () => open.review(),
    onStop: () => {},
    onError: (error) => t.fail(String(error)),
    ...deps
  })
  const found: Scene = { open, clock, announced: [], offered: [], mayWrite: true, own: OWN, isFollowed: true }
  t.teardown(() => open.close())
  return found
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a document is in use from the request until each use is released once, and stays in memory a while longer', async (t: Assert) => {
  const { open, clock, offered } = scene(t)
  const first = open.hold('plan')
  t.alike([open.isInUse('plan'), open.find('plan')], [true, undefined], 'before it is open')
  const { document, release } = await first
  const second = await open.hold('plan')
  t.is(second.document, document, 'it is opened once')
  release()
  release()
  t.ok(open.isInUse('plan'), 'a second release of one use does nothing')
  second.release()
  t.absent(open.isInUse('plan'))
  clock.advance(IDLE_MS - 1)
  await settled()
  t.alike([open.find('plan')?.document, offered], [document, []])
  clock.advance(1)
  await settled()
  t.alike([open.find('plan'), offered], [undefined, ['plan']], 'its snapshot is offered first')
})

test('a document that is used again before its time stays open', async (t: Assert) => {
  const { open, clock } = scene(t)
  const { document, release } = await open.hold('plan')
  release()
  const again = await open.hold('plan')
  clock.advance(IDLE_MS)
  await settled()
  t.is(open.find('plan')?.document, document)
  await open.letGo('plan')
  t.ok(open.find('plan'), 'nor is it closed while a program has it open')
  again.release()
  await open.letGo('plan')
  t.absent(open.find('plan'))
})

test('a document that cannot be opened is not in use, and the next use tries again', async (t: Assert) => {
  let isBroken = true
  const found = scene(t, {
    snapshots: {
      offer: () => Promise.resolve(),
      used: { base: () => (isBroken ? Promise.reject(new Error('damaged')) : Promise.resolve(null)) }
    },
    onError: (error) => t.is(String(error), 'Error: damaged', 'the review at its opening fails as well')
  })
  await t.exception(found.open.hold('plan'), /damaged/)
  t.alike([found.open.isInUse('plan'), found.open.find('plan')], [false, undefined])
  isBroken = false
  t.ok((await found.open.hold('plan')).document)
  const code = await found.open.hold('unknown').catch((error: unknown) => asNodeError(error).code)
  t.is(code, 'DOCUMENT_NOT_FOUND')
})

test('a document that was left is followed again', async (t: Assert) => {
  const found = scene(t)
  found.isFollowed = false
  await found.open.hold('plan')
  t.ok(found.isFollowed)
})

test('a document opened without the right to write is opened again once this node may write it', async (t: Assert) => {
  const found = scene(t)
  found.mayWrite = false
  const { document, release } = await found.open.hold('plan')
  t.is(found.open.find('plan')?.own, null)
  release()
  found.mayWrite = true
  const again = await found.open.hold('plan')
  t.alike([again.document === document, found.open.find('plan')?.own], [false, OWN])
})

test('an open document goes on with the next own stream once the former one was left', async (t: Assert) => {
  const found = scene(t)
  const { document } = await found.open.hold('plan')
  await found.open.goOn('plan')
  t.is(found.open.find('plan')?.own, OWN, 'the stream was not left')
  found.own = NEXT
  await found.open.goOn('plan')
  t.is(found.open.find('plan')?.own, NEXT)
  await document.edit((doc) => doc.getText('text').insert(0, 'a'))
  t.alike(found.announced, [`plan ${NEXT}`])
})
