import assert from 'node:assert/strict'
import * as Y from 'yjs'
import { readUpdate } from '../../src/domain/document/update/update.js'

/** The client that makes large edits. */
export const CLIENT = 2 ** 52 + 1

/** So many bytes of text, of whole characters; the first one is of one byte, so that later ones begin anywhere. */
export function long(unit: string, bytes: number): string {
  return `${bytes % 2 === 0 ? '' : '.'}${unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))}`
}

/** A document of these updates. */
export function docOf(updates: readonly Uint8Array[], clientID?: number): Y.Doc {
  const doc = new Y.Doc()
  if (clientID !== undefined) doc.clientID = clientID
  for (const update of updates) Y.applyUpdate(doc, update)
  return doc
}

/** The clock up to which pieces write, each being one that others take. */
export function mustFollow(pieces: readonly Uint8Array[], client: number): number | null {
  let next: number | null = null
  for (const piece of pieces) {
    const reading = readUpdate(piece)
    assert.ok(reading.ok, reading.ok ? '' : reading.reason)
    const { writes } = reading.update
    if (writes === null) continue
    assert.equal(writes.client, client)
    if (next !== null) assert.equal(writes.clock, next)
    next = writes.clock + writes.length
  }
  return next
}
