import * as Y from 'yjs'
import { keyToText } from '../../src/kit/ids.js'
import { Replica } from '../../src/domain/document/replica.js'
import { decodeSnapshot, encodeSnapshot } from '../../src/domain/document/snapshot.js'
import { openBlock } from '../../src/node/document-road.js'
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
  await import('../../src/node/compared-snapshot.js')
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

/** A member puts a snapshot in force that lies: something is deleted that nobody deleted (`isCut`), or `more` blocks are said to be in it. */
export async function lie(
  node: FakeNode,
  { isCut = false, more = 0 }: { readonly isCut?: boolean; readonly more?: number }
): Promise<StreamKey> {
  const { documents, log } = node.core.parts
  const id = node.core.documents.known.idOf('notes')
  const replica = new Replica({ guid: id, hash, own: null })
  const sizes = new Map<string, number>()
  for (const { coreKey: stream } of log.view().documents.get('notes')?.streams ?? []) {
    const blocks = await documents.read(stream, 0, MANY * 2)
    for (const [index, bytes] of blocks.entries()) replica.receive({ stream, index, bytes: openBlock(bytes, id) ?? new Uint8Array() })
    sizes.set(stream, (await documents.bytesBefore(stream, blocks.length)) ?? 0)
  }
  const honest = decodeSnapshot(replica.snapshot(sizes))
  if (!honest.ok) throw new Error(honest.reason)
  const doc = new Y.Doc()
  Y.applyUpdate(doc, replica.state())
  if (isCut) doc.getText('text').delete(0, 2)
  const streams = honest.head.streams.map((one) => ({ ...one, length: one.length + more }))
  const bytes = encodeSnapshot({ ...honest.head, streams }, doc)
  const { stream: coreKey } = await documents.own(`a lie ${isCut} ${more}`)
  await documents.append(coreKey, [bytes])
  const entry = {
    coreKey,
    blocks: 1,
    hash: keyToText(hash(bytes)),
    lengths: Object.fromEntries(streams.map(({ key, length }) => [key, length])),
    serial: 0
  }
  await log.submit({ kind: 'document-snapshot', mesh: MESH, name: 'notes', ...entry })
  return coreKey
}
