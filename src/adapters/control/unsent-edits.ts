import type { NodeError } from '../../kit/errors.js'

/** Bytes of edits that go in one call, as long as they are several; one over 256 KiB goes in several. */
const BATCH_BYTES = 131_072

/** An edit that the node does not have yet, and how many there are with it. */
export interface PendingUpdate {
  readonly update: Uint8Array
  readonly count: number
}

/** A caller that waits until the node has a number of edits. */
interface Saver {
  readonly count: number
  resolve(): void
  reject(error: NodeError): void
}

/** Edits of a document that its node does not have yet, in their order, and the callers that wait for them. */
export class UnsentEdits {
  #edits: PendingUpdate[] = []
  /** Edits that were made here. */
  #count = 0
  #savers: readonly Saver[] = []
  /** Why no edit is sent any more. */
  #fault: NodeError | null = null

  /** Has the node all of them? */
  get isEmpty(): boolean {
    return this.#edits.length === 0
  }

  /** An edit was made. */
  add(update: Uint8Array): void {
    this.#edits.push({ update, count: ++this.#count })
  }

  /** One update holds all that is unsent: it goes in the place of the edits, if there are any. */
  merge(update: Uint8Array): void {
    if (!this.isEmpty) this.#edits = [{ update, count: this.#count }]
  }

  /** The first edits that fit into one call. */
  batch(): readonly PendingUpdate[] {
    let bytes = 0
    const end = this.#edits.findIndex(({ update }, at) => (bytes += update.byteLength) > BATCH_BYTES && at > 0)
    return this.#edits.slice(0, end === -1 ? undefined : end)
  }

  /** The node has a batch. Another session may have begun meanwhile: what is to be sent in that one stays. */
  sent(batch: readonly PendingUpdate[]): void {
    if (this.#edits[0] === batch[0]) this.#edits.splice(0, batch.length)
    const sent = batch.at(-1)?.count ?? 0
    for (const { count, resolve } of this.#savers) if (count <= sent) resolve()
    this.#savers = this.#savers.filter(({ count }) => count > sent)
  }

  /** Resolves when the node has all edits made until now. @throws NodeError once sending has ended */
  saved(): Promise<void> {
    if (this.isEmpty) return Promise.resolve()
    if (this.#fault !== null) return Promise.reject(this.#fault)
    const count = this.#count
    return new Promise((resolve, reject) => (this.#savers = [...this.#savers, { count, resolve, reject }]))
  }

  /** Sending has ended; the first reason counts. */
  fail(fault: NodeError): void {
    this.#fault ??= fault
    for (const { reject } of this.#savers) reject(this.#fault)
    this.#savers = []
  }
}
