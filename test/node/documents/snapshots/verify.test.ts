import test from 'brittle'
import { Replica } from '../../../../src/domain/document/replica.js'
import { type Compared, compareSnapshot } from '../../../../src/node/documents/snapshots/verify.js'
import { hash, keyText } from '../../../support/membership.js'

const WRITER = keyText('writer')

function replicaOf(own: string | null = null): Replica {
  return new Replica({ guid: 'document', hash, own })
}

/** A stream in which one member wrote these words, one block each, and the snapshot of all of it. */
function written(...words: readonly string[]): {
  readonly blocks: readonly Uint8Array[]
  readonly snapshot: Uint8Array
} {
  const writer = replicaOf(WRITER)
  const blocks: Uint8Array[] = []
  for (const word of words) {
    writer.doc.clientID = writer.sessions.clientId()
    writer.doc.getText('text').insert(0, word)
    const taken = writer.takeBlocks()
    if (taken.ok) blocks.push(...taken.blocks)
  }
  const reader = replicaOf()
  for (const [index, bytes] of blocks.entries()) reader.receive({ stream: WRITER, index, bytes })
  return { blocks, snapshot: reader.snapshot() }
}

function comparedWith(blocks: readonly Uint8Array[], length = blocks.length): Compared {
  return {
    lengths: { [WRITER]: length },
    base: null,
    make: () => replicaOf(),
    streams: {
      read: (_stream, from, limit) => Promise.resolve(blocks.slice(from, from + Math.max(0, limit))),
      size: () => ({ blocks: blocks.length, bytes: 0, from: 0 })
    },
    open: (bytes) => bytes,
    isOver: () => false
  }
}

test('a snapshot equals its streams, for any later blocks', async (t) => {
  const { snapshot } = written('b', 'a')
  const { blocks } = written('b', 'a', 'x')
  t.is(await compareSnapshot(snapshot, comparedWith(blocks, 2)), 'same')
})

test('a snapshot of which blocks are missing here is incomplete', async (t) => {
  const { blocks, snapshot } = written('b', 'a')
  t.is(await compareSnapshot(snapshot, comparedWith(blocks.slice(0, 1), 2)), 'incomplete')
})

test('a snapshot that holds something else, or other lengths than the log says, or is none, is another one', async (t) => {
  const { blocks, snapshot } = written('b', 'a')
  t.is(await compareSnapshot(written('b', 'z').snapshot, comparedWith(blocks)), 'other')
  t.is(await compareSnapshot(snapshot, comparedWith(blocks, 1)), 'other')
  t.is(await compareSnapshot(new Uint8Array([1, 2, 3]), comparedWith(blocks)), 'other')
})
