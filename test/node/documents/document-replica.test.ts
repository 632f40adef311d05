import test, { type Assert } from 'brittle'
import { Replica } from '../../../src/domain/document/replica.js'
import { DocumentReplica, type DocumentReplicaDeps } from '../../../src/node/documents/document-replica.js'
import type { DocumentChange } from '../../../src/node/documents/replica-feed.js'
import { hash, keyText } from '../../support/membership.js'

const GUID = 'document'
const OWN = keyText('own')
const OTHER = keyText('other')
const EVERYTHING = Number.POSITIVE_INFINITY

/** Blocks of a stream in which one member inserted these words at the beginning, one each. */
function blocksOf(stream: string, ...words: readonly string[]): Uint8Array[] {
  const writer = new Replica({ guid: GUID, hash, own: stream })
  return words.flatMap((word) => {
    writer.doc.clientID = writer.sessions.clientId()
    writer.doc.getText('text').insert(0, word)
    const taken = writer.takeBlocks()
    return taken.ok ? taken.blocks : []
  })
}

interface Scene {
  readonly replica: DocumentReplica
  readonly streams: Map<string, Uint8Array[]>
  readonly changes: DocumentChange[]
  readonly stops: string[]
  /** The cached snapshot. */
  kept: Uint8Array | null
}

function scene(
  t: Assert,
  streams: Readonly<Record<string, Uint8Array[]>>,
  deps: Partial<DocumentReplicaDeps> = {}
): Scene {
  const stored = new Map(Object.entries(streams))
  const replica = new DocumentReplica({
    make: (own) => new Replica({ guid: GUID, hash, own }),
    streams: {
      read: (stream, from, limit) => Promise.resolve((stored.get(stream) ?? []).slice(from, from + Math.max(0, limit))),
      size: (stream) => ({ blocks: stored.get(stream)?.length ?? 0, bytes: 0, from: 0 })
    },
    own: OWN,
    open: (bytes) => bytes,
    base: () => Promise.resolve(null),
    kept: {
      read: () => Promise.resolve(found.kept),
      write: (snapshot) => {
        found.kept = snapshot
        return Promise.resolve()
      }
    },
    onStop: ({ stream, at }) => found.stops.push(`${stream === OWN ? 'own' : 'other'} ${at}`),
    onError: (error) => t.fail(String(error)),
    ...deps
  })
  const found: Scene = { replica, streams: stored, changes: [], stops: [], kept: null }
  replica.onChange((change) => found.changes.push(change))
  t.teardown(() => replica.close(Promise.resolve()))
  return found
}

const textOf = ({ replica }: Scene): string => replica.current.doc.getText('text').toJSON()

test('a replica takes the counted blocks of each stream, and more once more of them count', async (t: Assert) => {
  const found = scene(t, { [OTHER]: blocksOf(OTHER, 'c', 'b', 'a') })
  const { replica } = found
  await replica.follow(new Map([[OTHER, 2]]))
  t.alike([textOf(found), replica.lengthOf(OTHER), replica.isLimited(OTHER)], ['bc', 2, true])
  await replica.follow(new Map([[OTHER, EVERYTHING]]))
  t.alike([textOf(found), replica.isLimited(OTHER)], ['abc', false])
  t.alike([found.stops, found.changes.at(-1)?.type], [[], 'reset'], 'the limit of an access list is no stop')
})

test('blocks that no longer count are taken back, and holders begin anew', async (t: Assert) => {
  const found = scene(t, { [OTHER]: blocksOf(OTHER, 'c', 'b', 'a') })
  await found.replica.follow(new Map([[OTHER, EVERYTHING]]))
  found.changes.length = 0
  await found.replica.exclude(OTHER, 'two branches')
  t.alike([textOf(found), found.stops, [...found.replica.stops.keys()]], ['', ['other 0'], [OTHER]])
  t.alike(found.changes, [{ type: 'reset', isMoved: false }])
})

test('an edit is reported once it is published, and a refused one is undone without a report', async (t: Assert) => {
  const found = scene(t, { [OWN]: [] })
  const { replica, changes } = found
  await replica.follow(new Map([[OWN, EVERYTHING]]))
  const insert = (word: string) => (): void => {
    replica.current.doc.clientID = replica.current.sessions.clientId()
    replica.current.doc.getText('text').insert(0, word)
  }
  const publish = (): Promise<void> => {
    t.is(changes.length, 0, 'not before it is durable')
    const taken = replica.current.takeBlocks()
    const blocks = taken.ok ? taken.blocks : []
    found.streams.get(OWN)?.push(...blocks)
    replica.appended(OWN, blocks.length)
    return Promise.resolve()
  }
  await replica.edit('session', insert('a'), publish)
  t.alike([changes.map((change) => change.type === 'update' && change.by), replica.lengthOf(OWN)], [['session'], 1])
  changes.length = 0
  await t.exception(
    replica.edit(null, insert('b'), () => Promise.reject(new Error('the disk is full'))),
    /disk is full/
  )
  await replica.beWhole()
  t.alike([textOf(found), changes], ['a', []])
})

test('a replica whose streams cannot be read is not whole: it gives no snapshot, and reads on when it can', async (t: Assert) => {
  let isBroken = true
  const blocks = blocksOf(OTHER, 'b', 'a')
  const read = (stream: string, from: number): Promise<Uint8Array[]> =>
    isBroken ? Promise.reject(new Error('unreadable')) : Promise.resolve(stream === OTHER ? blocks.slice(from) : [])
  const found = scene(t, {}, { streams: { read, size: () => ({ blocks: 2, bytes: 0, from: 0 }) } })
  await t.exception(found.replica.follow(new Map([[OTHER, EVERYTHING]])), /unreadable/)
  t.is(
    found.replica.snapshot(() => true),
    null
  )
  await found.replica.keep(0)
  t.is(found.kept, null, 'nor is half of it cached')
  isBroken = false
  await found.replica.beWhole()
  t.is(textOf(found), 'ab')
  t.alike(found.replica.snapshot(() => true)?.lengths, { [OTHER]: 2 })
  t.is(
    found.replica.snapshot(({ lengths }) => (lengths[OTHER] ?? 0) > 2),
    null
  )
})

test('the cached snapshot is where the next replica begins, while all of it counts', async (t: Assert) => {
  const streams = { [OTHER]: blocksOf(OTHER, 'c', 'b', 'a') }
  const first = scene(t, streams)
  await first.replica.follow(new Map([[OTHER, EVERYTHING]]))
  await first.replica.keep(4)
  t.is(first.kept, null, 'too few blocks are new')
  await first.replica.keep(3)
  for (const [counted, text, reads] of [
    [EVERYTHING, 'abc', 1],
    [2, 'bc', 2]
  ] as const) {
    let taken = 0
    const next = scene(t, streams, {
      open: (bytes) => {
        taken++
        return bytes
      }
    })
    next.kept = first.kept
    await next.replica.follow(new Map([[OTHER, counted]]))
    t.alike([textOf(next), taken], [text, counted === EVERYTHING ? 0 : reads])
  }
})

test('holders learn of another own stream by a reset', async (t: Assert) => {
  const found = scene(t, { [OWN]: [], [OTHER]: blocksOf(OTHER, 'a') })
  await found.replica.follow(new Map([[OTHER, EVERYTHING]]))
  found.changes.length = 0
  await found.replica.goOn(keyText('next'))
  t.alike([found.replica.own, found.changes, textOf(found)], [keyText('next'), [{ type: 'reset', isMoved: true }], 'a'])
})
