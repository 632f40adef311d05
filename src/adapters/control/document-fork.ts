import * as Y from 'yjs'
import { editShared, readShared, type SharedEdit, type SharedType } from '../../domain/document/shared-types.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { DocumentLiveEvent } from '../../ports/document-api.js'
import type { NodeApi } from '../../ports/node-api.js'

/**
 * A document as it was at one moment, to be edited apart from it for as long as that takes. What is saved is the difference
 * to that moment, and Yjs merges it with what others wrote meanwhile, wherever they wrote it.
 */
export class DocumentFork {
  readonly #api: NodeApi
  readonly #name: string
  readonly #session: string
  readonly #doc: Y.Doc
  readonly #ending: AbortController
  #fault: string | null = null

  private constructor(api: NodeApi, name: string, { session, doc, ending }: { session: string; doc: Y.Doc; ending: AbortController }) {
    this.#api = api
    this.#name = name
    this.#session = session
    this.#doc = doc
    this.#ending = ending
  }

  /** Takes the document as it is now. Close it. @throws NodeError DOCUMENT_NOT_FOUND, FORBIDDEN for who may not write it */
  static async open(api: NodeApi, name: string): Promise<DocumentFork> {
    const ending = new AbortController()
    const lines = api.watch('documents.live', { document: name }, { signal: ending.signal })[Symbol.asyncIterator]()
    try {
      const { value } = await lines.next()
      if (value?.type !== 'open') throw new NodeError('CHANNEL_CLOSED', 'the node ended the document before it was whole', { next: [] })
      if (value.clientId === null) throw new NodeError('FORBIDDEN', 'the document may be read here, not written')
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

  /** The value that a shared type had at that moment. @throws NodeError CONFLICT when the name is that of another type */
  read(type: SharedType, root: string): unknown {
    return readShared(this.#doc, type, root)
  }

  /**
   * Writes the difference that an edit makes; false: it makes none. At most once.
   * @throws NodeError CONFLICT when the document was begun anew meanwhile, or its node was; else as `documents.apply`
   */
  async save(root: string, edit: SharedEdit): Promise<boolean> {
    const updates: Uint8Array[] = []
    this.#doc.on('update', (update: Uint8Array) => void updates.push(update))
    this.#doc.transact(() => editShared(this.#doc, root, edit))
    const [update] = updates
    if (update === undefined) return false
    if (this.#fault !== null) throw new NodeError('CONFLICT', this.#fault, { next: [] })
    await this.#api.call('documents.apply', { document: this.#name, session: this.#session, update })
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
        if (next.value.type === 'reset') this.#fault = 'the document was begun anew meanwhile, as part of it counts no longer'
      this.#fault ??= 'the node ended the document meanwhile'
    } catch (error) {
      this.#fault ??= `the node went away meanwhile: ${messageOf(error)}`
    }
  }
}
