import type { DocumentStreamRecord } from '../../src/domain/membership/types.js'
import { write } from './document-scene.js'
import type { FakeNode, World } from './fake-node.js'

/** How long a document that nobody uses stays open. */
const IDLE_MS = 30_000
/** How long what was replaced stays here. */
export const TIDY_MS = 60_000
/** Edits that make a stream long enough. */
export const MANY = 1100

/** Writes a text of one character, again and again, and one that stays. */
export async function writeMuch(node: FakeNode, last: string): Promise<void> {
  for (let edit = 0; edit < MANY; edit++) await write(node.api(), `${edit % 10}`)
  await write(node.api(), last)
}

/** The streams of the document in the log. */
export function streamsOf(world: World): readonly DocumentStreamRecord[] {
  return world.log.view().documents.get('notes')?.streams ?? []
}

/** It runs no more, and nobody reaches it. */
export async function stop(world: World, node: FakeNode, others: readonly FakeNode[]): Promise<void> {
  for (const other of others) world.net.disconnect(node.id, other.id)
  await node.core.close()
}

/** Nobody uses the document until it is let go. */
export async function idle(world: World): Promise<void> {
  await world.settle()
  await world.pass(IDLE_MS)
  await world.settle()
}
