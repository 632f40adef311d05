import { seal } from '../../src/domain/membership/signing.js'
import type { DocumentInfo } from '../../src/ports/document-api.js'
import type { FakeNode, World } from './fake-node.js'
import { keyText, MESH } from './membership.js'

/** Announces documents of a member by the log alone, each with an empty stream of that member. Returns their names. */
export function announceMany(world: World, { actor, name }: FakeNode, names: readonly string[]): readonly string[] {
  for (const document of names) {
    world.log.model.apply(seal('entry', { kind: 'document', mesh: MESH, name: document, access: null, at: 1 }, actor))
    const coreKey = keyText(`${name}/${document}`)
    world.log.model.apply(seal('entry', { kind: 'document-stream', mesh: MESH, name: document, coreKey }, actor))
  }
  world.log.changed()
  return names
}

/**
 * Writes a document past the editor: as many blocks of 1 MiB in a stream of the member. All blocks are the same bytes
 * in memory.
 */
export async function writeBlocks(
  world: World,
  node: FakeNode,
  { name, mebibytes }: { name: string; mebibytes: number }
): Promise<string> {
  const { documents } = node.core.deps
  const { stream } = await documents.own(`bulk/${name}`)
  await documents.append(
    stream,
    Array.from({ length: mebibytes }, () => BLOCK)
  )
  const isKnown = world.log.view().documents.has(name)
  if (!isKnown)
    world.log.model.apply(seal('entry', { kind: 'document', mesh: MESH, name, access: null, at: 1 }, node.actor))
  world.log.model.apply(seal('entry', { kind: 'document-stream', mesh: MESH, name, coreKey: stream }, node.actor))
  world.log.changed()
  await world.settle()
  return stream
}

const BLOCK = new Uint8Array(1_048_576)

/** One row of `doc ls` on a node. */
export async function rowOn(node: FakeNode, name: string): Promise<DocumentInfo | undefined> {
  return (await node.api().call('documents.list', {})).documents.find((one) => one.name === name)
}

/** As many names that sort before all others. */
export function firstNames(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `!${String(at).padStart(4, '0')}`)
}
