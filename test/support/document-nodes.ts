import type { DocumentReading } from '../../src/ports/document-api.js'
import { type LocalNode, until } from './nodes.js'

/** Resolves when a text of a document is so on a node. */
export async function untilText(node: LocalNode, text: string, document = 'notes'): Promise<void> {
  await until(node.api, 'documents.list', {}, ({ documents }) => documents.some(({ name }) => name === document))
  await until(node.api, 'documents.read', { document, type: 'text' }, ({ value }) => value === text)
}

/** Sets the text of a document, as its node. */
export function write(node: LocalNode, text: string, document = 'notes'): Promise<DocumentReading> {
  return node.api.call('documents.edit', { document, edit: { type: 'text', text } })
}
