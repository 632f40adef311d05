import * as Y from 'yjs'
import { fullBytes } from '../../domain/document/document-size.js'
import { MAX_DOCUMENT_BYTES } from '../../domain/document/replica.js'
import { writeDenied } from '../../domain/document/denied.js'
import {
  editShared,
  readShared,
  type SharedEdit,
  type SharedPart,
  sharedParts,
  type SharedType
} from '../../domain/document/shared-types.js'
import { mustCutUpdate } from '../../domain/document/update/cut.js'
import { asNodeError, messageOf, NodeError } from '../../kit/errors.js'
import type { DocumentLiveEvent } from '../../ports/document-api.js'
import type { NodeApi } from '../../ports/node-api.js'

/**
 * Checks what is to be written into a document that is not there yet, as the node would.
 * @throws NodeError INVALID_INPUT, PAYLOAD_TOO_LARGE, OVERLOADED when no document has room for it
 */
export function mustFitNew(root: string, edit: SharedEdit): void {
  const doc = new Y.Doc()
  try {
    doc.transact(() => editShared(doc, root, edit))
    piecesFor(doc, Y.encodeStateAsUpdate(doc))
  } finally {
    doc.destroy()
  }
}

/** All parts of a document, of the whole of it as one update. */
export function partsOfUpdate(update: Uint8Array): SharedPart[] {
  const doc = new Y.Doc()
  try {
    Y.applyUpdate(doc, update)
    return sharedParts(doc)
  } finally {
    doc.destroy()
  }
}

/** An edit of a document that has it as the calls that it takes. @throws NodeError PAYLOAD_TOO_LARGE, OVERLOADED */
function piecesFor(doc: Y.Doc, update: Uint8Array): readonly Uint8Array[] {
  const pieces = mustCutUpdate(update)
  // The node would take some of them and then be full.
  if (pieces.length > 1 && Y.encodeStateAsUpdate(doc).byteLength >= fullBytes(MAX_DOCUMENT_BYTES))
    throw new NodeError('OVERLOADED', 'the document has no room for the edit')
  return pieces
}

/**
 * A snapshot of a document that is edited apart from it. Saving sends the difference to the snapshot; Yjs merges it
 * with concurrent edits.
 */
export class DocumentFork {
  readonly #api: NodeApi
  readonly #name: string
  readonly #session: string
  readonly #doc: Y.Doc
  readonly #ending: AbortController
  #fault: string | null = null

  private constructor(
    api: NodeApi,
    name: string,
    { session, doc, ending }: { session: string; doc: Y.Doc; ending: AbortController }
  ) {
    this.#api = api
    this.#name = name
    this.#session = session
    this.#doc = doc
    this.#ending = ending
  }

  /**
   * Takes a snapshot of the document. Close it.
   * @throws NodeError DOCUMENT_NOT_FOUND; FORBIDDEN without the right to write
   */
  static async open(api: NodeApi, name: string): Promise<DocumentFork> {
    const ending = new AbortController()
    const lines = api.watch('documents.live', { document: name }, { signal: ending.signal })[Symbol.asyncIterator]()
    try {
      const { value } = await lines.next()
      if (value?.type !== 'open')
        throw new NodeError('CHANNEL_CLOSED', 'the node ended the document before it was whole', { next: [] })
      if (value.clientId === null) throw await denied(api, name)
      const doc = new Y.Doc()
      Y.applyUpdate(doc, value.update)
      doc.clientID = value.clientId
      const fork = new DocumentFork(api, name, { session: value.session, doc, ending })
      void fork.#follow(lines)
      return fork
    } catch (error) {
      ending.abort()
      throw error
    }
  }

  /**
   * The value that a shared type had at that moment.
   * @throws NodeError CONFLICT when the name is that of another type
   */
  read(type: SharedType, root: string): unknown {
    return readShared(this.#doc, type, root)
  }

  /**
   * Writes the difference that an edit makes; false: it makes none. At most once. One over 256 KiB goes in several
   * calls: where one of them fails the error says how much is written.
   * @throws NodeError CONFLICT when the document was begun anew meanwhile, or its node was; OVERLOADED when it would be
   * full; else as `documents.apply`
   */
  async save(root: string, edit: SharedEdit): Promise<boolean> {
    const updates: Uint8Array[] = []
    this.#doc.on('update', (update: Uint8Array) => void updates.push(update))
    this.#doc.transact(() => editShared(this.#doc, root, edit))
    const [update] = updates
    if (update === undefined) return false
    if (this.#fault !== null) throw new NodeError('CONFLICT', this.#fault, { next: [] })
    const pieces = piecesFor(this.#doc, update)
    for (const [place, piece] of pieces.entries()) {
      await this.#api
        .call('documents.apply', { document: this.#name, session: this.#session, update: piece })
        .catch((error: unknown) => {
          throw place === 0
            ? error
            : halfWritten(error, `${place} of the ${pieces.length} pieces of the edit are written`)
        })
    }
    return true
  }

  /** Ends it. */
  close(): void {
    this.#ending.abort()
    this.#doc.destroy()
  }

  /** Lines are read on so that the session lives; what others write is merged by the node. */
  async #follow(lines: AsyncIterator<DocumentLiveEvent>): Promise<void> {
    try {
      for (let next = await lines.next(); next.done !== true; next = await lines.next())
        if (next.value.type === 'reset')
          this.#fault = 'the document was begun anew meanwhile, as part of it counts no longer'
      this.#fault ??= 'the node ended the document meanwhile'
    } catch (error) {
      this.#fault ??= `the node went away meanwhile: ${messageOf(error)}`
    }
  }
}

function halfWritten(cause: unknown, what: string): NodeError {
  const { code, message, data, next } = asNodeError(cause)
  return new NodeError(code, `${message}; ${what}`, { data, next, cause })
}

async function denied(api: NodeApi, document: string): Promise<NodeError> {
  const [{ name, creator, access }, { node }] = await Promise.all([
    api.call('documents.show', { document }),
    api.call('node.status', {})
  ])
  return writeDenied({ name, creator: creator.name, owner: null, rule: access?.write, writer: node.name })
}
