import { NodeError } from '../../kit/errors.js'
import { keyFromText, keyToText, type NodeId, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { LookAlikes } from '../../kit/names/look-alikes.js'
import { DOCUMENT_NAME, nameFault } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { shown } from '../../kit/text.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { MemberLog } from '../../ports/mesh.js'
import { callerAccess, type CallerVerdict, type DocumentCaller } from './access.js'

/** Dependencies of {@link DocumentIndex}. */
export interface DocumentIndexDeps {
  readonly hash: Hash
  readonly log: Pick<MemberLog, 'view'>
  readonly self: NodeId
}

/** A document and its id. */
export interface IndexedDocument {
  readonly id: string
  readonly record: DocumentRecord
}

/** The documents that the log names, and the rights of callers on them. */
export class DocumentIndex {
  readonly #deps: DocumentIndexDeps
  readonly #ids = new Map<string, string>()

  constructor(deps: DocumentIndexDeps) {
    this.#deps = deps
  }

  /** The documents that a caller may see, by name. */
  list(by: DocumentCaller): IndexedDocument[] {
    const { log, self } = this.#deps
    const view = log.view()
    const seen = [...view.documents.values()].filter((record) => callerAccess(view, record, { self, by }).maySee)
    return seen.map((record) => this.#withId(record)).sort((a, b) => (a.record.name < b.record.name ? -1 : 1))
  }

  /**
   * Returns a function that warns of a deceptive name, given the documents that the caller may see; null for a harmless
   * name.
   */
  nameWarnings(by: DocumentCaller): (name: string) => string | null {
    const looks = new LookAlikes(this.list(by).map(({ record }) => record.name))
    return (name) => {
      const like = looks.find(name)
      if (like !== null) return `it looks like the name of the document ${safeName(like, DOCUMENT_NAME)}`
      return nameFault(name, DOCUMENT_NAME)?.reason ?? null
    }
  }

  /**
   * Finds a document by name or id.
   * @throws NodeError DOCUMENT_NOT_FOUND, also for a document that the caller may not see
   */
  find(text: string, by: DocumentCaller): IndexedDocument {
    const view = this.#deps.log.view()
    const record = view.documents.get(text) ?? [...view.documents.values()].find(({ name }) => this.idOf(name) === text)
    if (record !== undefined && this.access(record, by).maySee) return this.#withId(record)
    throw new NodeError('DOCUMENT_NOT_FOUND', `no document "${shown(text)}" that may be seen`)
  }

  /** The rights of a caller on a document. */
  access(record: DocumentRecord, by: DocumentCaller): CallerVerdict {
    const { log, self } = this.#deps
    return callerAccess(log.view(), record, { self, by })
  }

  /** z32 of hash(prefix, mesh key, name). */
  idOf(name: string): string {
    const known = this.#ids.get(name)
    if (known !== undefined) return known
    const mesh = this.#deps.log.view().mesh?.id ?? ''
    const id = keyToText(this.#deps.hash(utf8('a2a-node/document/1'), keyFromText(mesh), utf8(name)))
    this.#ids.set(name, id)
    return id
  }

  #withId(record: DocumentRecord): IndexedDocument {
    return { id: this.idOf(record.name), record }
  }
}
