import * as Y from 'yjs'
import { keyToText } from '../../src/kit/ids.js'
import { Replica } from '../../src/domain/document/replica.js'
import { decodeSnapshot, encodeSnapshot, type SnapshotHead } from '../../src/domain/document/snapshot.js'
import { openBlock } from '../../src/node/documents/local-streams.js'
import { hash, MESH } from './membership.js'
import type { StreamKey } from '../../src/domain/document/client-ids.js'
import type { DocumentRecord } from '../../src/domain/membership/types.js'
import { write } from './document-scene.js'
import type { FakeNode, World } from './fake-node.js'

/** How long a document that nobody uses stays open. */
const IDLE_MS = 30_000
/** Edits that make a document long enough. */
export const MANY = 1100

/** Writes a text of one character, again and again, and one that stays. */
export async function writeMuch(node: FakeNode, last: string): Promise<void> {
  // A node loads it when it first needs it, and no clock of a test waits for that.
  await import('../../src/node/documents/snapshots/verify.js')
  for (let edit = 0; edit < MANY; edit++) await write(node.api(), `${edit % 10}`)
  await write(node.api(), last)
}

/** The snapshot in force of the document. */
export function snapshotOf(world: World): DocumentRecord['snapshot'] {
  return world.log.view().documents.get('notes')?.snapshot
}

/** Of all streams of the document on a node, how many of their blocks are in the snapshot that it uses. */
export async function begunOn(node: FakeNode): Promise<number> {
  const { streams } = await node.api().call('documents.show', { document: 'notes' })
  return streams.reduce((sum, { from }) => sum + from, 0)
}

/** It runs no more, and nobody reaches it. */
export async function stop(world: World, node: FakeNode, others: readonly FakeNode[]): Promise<void> {
  for (const other of others) world.net.disconnect(node.id, other.id)
  await node.core.close()
}

/** Nobody uses the document until it is let go, and longer. */
export async function idle(world: World): Promise<void> {
  await world.settle()
  await world.pass(2 * IDLE_MS)
  await world.settle()
}

/** What a snapshot says of streams, and its document. */
export interface Told {
  readonly head: SnapshotHead
  readonly doc: Y.Doc
}

/** How a snapshot is made: of all streams of the document or of these, and changed before it is put in force. */
interface Forging {
  readonly of?: readonly StreamKey[]
  change?(told: Told): Told
}

/** Snapshots that were forged so far, so that each has a core of its own. */
let forged = 0

/** A member makes a snapshot of what it has, changes it and puts it in force. Returns its core. */
export async function forge(node: FakeNode, { of, change = (told) => told }: Forging = {}): Promise<StreamKey> {
  const { documents, log } = node.core.deps
  const id = node.core.documents.known.idOf('notes')
  const replica = new Replica({ guid: id, hash, own: null })
  const record = log.view().documents.get('notes')
  for (const { coreKey: stream } of record?.streams ?? []) {
    const blocks = of?.includes(stream) === false ? [] : await documents.read(stream, 0, MANY * 2)
    for (const [index, bytes] of blocks.entries())
      replica.receive({ stream, index, bytes: openBlock(bytes, id) ?? new Uint8Array() })
  }
  const honest = decodeSnapshot(replica.snapshot())
  if (!honest.ok) throw new Error(honest.reason)
  const copy = new Y.Doc()
  Y.applyUpdate(copy, replica.state())
  const { head, doc } = change({ head: honest.head, doc: copy })
  const bytes = encodeSnapshot(head, doc)
  const { stream: coreKey } = await documents.own(`forged ${forged++}`)
  await documents.append(coreKey, [bytes])
  const lengths = Object.fromEntries(
    head.streams.filter(({ length }) => length > 0).map(({ key, length }) => [key, length])
  )
  const entry = {
    coreKey,
    blocks: 1,
    hash: keyToText(hash(bytes)),
    lengths,
    serial: record?.access?.access.serial ?? 0
  }
  await log.submit({ kind: 'document-snapshot', mesh: MESH, name: 'notes', ...entry })
  return coreKey
}

/**
 * A member puts a snapshot in force that lies: something is deleted that nobody deleted (`isCut`), or `more` blocks are
 * said to be in it.
 */
export function lie(
  node: FakeNode,
  { isCut = false, more = 0 }: { readonly isCut?: boolean; readonly more?: number }
): Promise<StreamKey> {
  return forge(node, {
    change: ({ head, doc }) => {
      if (isCut) doc.getText('text').delete(0, 2)
      return { head: { ...head, streams: head.streams.map((one) => ({ ...one, length: one.length + more })) }, doc }
    }
  })
}
