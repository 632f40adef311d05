import test from 'brittle'
import { Replica } from '../../../src/domain/document/replica.js'
import { ReplicaFeed, type ReplicaFeedDeps, ReplicaRebuild } from '../../../src/node/documents/replica-feed.js'
import { hash, keyText } from '../../support/membership.js'

const GUID = 'document'
const WRITER = keyText('writer')

function reader(): Replica {
  return new Replica({ guid: GUID, hash, own: null })
}

/** Blocks of a stream in which one member wrote these words, one each. */
function blocksOf(...words: readonly string[]): Uint8Array[] {
  const writer = new Replica({ guid: GUID, hash, own: WRITER })
  const blocks: Uint8Array[] = []
  for (const word of words) {
    writer.doc.clientID = writer.sessions.clientId()
    writer.doc.getText('text').insert(0, word)
    const taken = writer.takeBlocks()
    if (taken.ok) blocks.push(...taken.blocks)
  }
  return blocks
}

function feedOf(blocks: readonly Uint8Array[], deps: Partial<ReplicaFeedDeps> = {}): ReplicaFeed {
  return new ReplicaFeed(reader(), {
    streams: {
      read: (_stream, from, limit) => Promise.resolve(blocks.slice(from, from + Math.max(0, limit))),
      size: () => ({ blocks: blocks.length, bytes: 0, from: 0 })
    },
    open: (bytes) => bytes,
    limitOf: () => Number.POSITIVE_INFINITY,
    onStops: () => {},
    onLater: () => {},
    isOver: () => false,
    ...deps
  })
}

test('a replica takes all blocks of an offered stream, as far as they count, and none of others', async (t) => {
  const blocks = blocksOf('c', 'b', 'a')
  const feed = feedOf(blocks)
  await feed.feed()
  t.is(feed.lengthOf(WRITER), 0, 'nothing was offered')
  feed.offer(WRITER)
  await feed.feed()
  t.alike([feed.replica.doc.getText('text').toJSON(), feed.lengthOf(WRITER), feed.unkept], ['abc', 3, 3])
  const limited = feedOf(blocks, { limitOf: () => 2 })
  limited.offer(WRITER)
  await limited.feed()
  t.is(limited.replica.doc.getText('text').toJSON(), 'bc')
  t.alike(
    [feed.isAtLeastAsFarAs(limited), limited.isAtLeastAsFarAs(feed), feed.isAsFarAs(limited)],
    [true, false, false]
  )
})

test('a stream that could not be read is read on from where it was', async (t) => {
  const blocks = blocksOf('b', 'a')
  let isBroken = true
  const feed = feedOf(blocks, {
    streams: {
      read: (_stream, from) =>
        isBroken && from === 1
          ? Promise.reject(new Error('unreadable'))
          : Promise.resolve(blocks.slice(from, from + 1)),
      size: () => ({ blocks: 2, bytes: 0, from: 0 })
    }
  })
  feed.offer(WRITER)
  await t.exception(feed.feed(), /unreadable/)
  t.is(feed.lengthOf(WRITER), 1)
  isBroken = false
  await feed.feed()
  t.is(feed.replica.doc.getText('text').toJSON(), 'ab')
})

test('a stream that begins behind its known blocks is reported', async (t) => {
  let later = 0
  const feed = feedOf([], {
    streams: { read: () => Promise.resolve([]), size: () => ({ blocks: 0, bytes: 0, from: 5 }) },
    onLater: () => later++
  })
  feed.offer(WRITER)
  await feed.feed()
  t.is(later, 1)
})

test('holders get the strongest reason for a rebuild, once, and none after a refused edit without a change', (t) => {
  const [before, after] = [feedOf([]), feedOf([])]
  const rebuild = new ReplicaRebuild()
  t.alike([rebuild.change(after), rebuild.isDue], [null, false])
  rebuild.need('refused', before)
  t.alike([rebuild.isDue, rebuild.isUntold], [true, true])
  t.is(rebuild.change(after), null)
  rebuild.need('void', before)
  rebuild.need('refused', before)
  t.alike(rebuild.change(after), { type: 'reset', isMoved: false })
  t.is(rebuild.change(after), null)
  rebuild.need('void', before)
  rebuild.need('moved', before)
  t.alike(rebuild.change(after), { type: 'reset', isMoved: true })
})
