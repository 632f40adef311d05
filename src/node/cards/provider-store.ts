import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import type { AgentProvider } from '../../kit/names/provider.js'
import { type ProviderNotice, readProviders } from '../../domain/card/provider.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Name of the stored document. */
const DOCUMENT = 'providers'
/** Most kept providers of one node, and of all. */
const MAX_OF_NODE = 256
const MAX_KEPT = 2048
/** Least time between a change and its write, in milliseconds. */
const WRITE_MS = 2000

/** Dependencies of {@link ProviderStore}. */
export interface ProviderStoreDeps {
  readonly store: NodeStore
  readonly clock: Clock
  readonly telemetry: Pick<Telemetry, 'log'>
}

interface Stored {
  readonly nodes: Readonly<Record<NodeId, readonly ProviderNotice[]>>
}

/**
 * The providers of agents of other nodes, which come over links alone, kept over restarts. Bounded: of a node with too
 * many, and of the node with the most, the oldest goes first.
 */
export class ProviderStore {
  readonly #deps: ProviderStoreDeps
  /** By node and agent id; the oldest first. */
  readonly #kept = new Map<NodeId, Map<string, ProviderNotice>>()
  #count = 0
  #timer: Timer | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ProviderStoreDeps) {
    this.#deps = deps
  }

  /** Reads the stored providers. An unreadable document is logged: its content comes again over links. */
  async load(): Promise<void> {
    const stored = await this.#deps.store.read<Stored>(DOCUMENT).catch((error: unknown) => {
      this.#deps.telemetry.log('warn', 'stored providers could not be read', { reason: messageOf(error) })
      return null
    })
    if (!isRecord(stored?.nodes)) return
    for (const [node, list] of Object.entries(stored.nodes))
      for (const notice of readProviders(Array.isArray(list) ? list : [])) this.#keep(node, notice)
  }

  /** The provider of a revision of a card; null: none is known. */
  of(node: NodeId, { id, revision }: Pick<ProviderNotice, 'id' | 'revision'>): AgentProvider | null {
    const known = this.#kept.get(node)?.get(id)
    return known?.revision === revision ? known.provider : null
  }

  /** Keeps a provider. Written within two seconds. */
  put(node: NodeId, notice: ProviderNotice): void {
    this.#keep(node, notice)
    this.#writeSoon()
  }

  /** Forgets the providers of a node. */
  forget(node: NodeId): void {
    const { size = 0 } = this.#kept.get(node) ?? {}
    if (!this.#kept.delete(node)) return
    this.#count -= size
    this.#writeSoon()
  }

  /** Writes a change that waits, and nothing later. */
  async close(): Promise<void> {
    if (this.#timer !== null) this.#write()
    await this.#writing
  }

  #keep(node: NodeId, notice: ProviderNotice): void {
    const ofNode = this.#kept.get(node) ?? new Map<string, ProviderNotice>()
    this.#kept.set(node, ofNode)
    if (!ofNode.delete(notice.id)) this.#count++
    ofNode.set(notice.id, notice)
    if (ofNode.size > MAX_OF_NODE) this.#evict(ofNode)
    else if (this.#count > MAX_KEPT) this.#evict([...this.#kept.values()].reduce((a, b) => (b.size > a.size ? b : a)))
  }

  #evict(ofNode: Map<string, ProviderNotice>): void {
    const [oldest] = ofNode.keys()
    if (oldest !== undefined && ofNode.delete(oldest)) this.#count--
  }

  #writeSoon(): void {
    this.#timer ??= this.#deps.clock.after(WRITE_MS, () => this.#write())
  }

  #write(): void {
    const { store, clock, telemetry } = this.#deps
    clock.clear(this.#timer)
    this.#timer = null
    const nodes = Object.fromEntries([...this.#kept].map(([node, ofNode]) => [node, [...ofNode.values()]]))
    this.#writing = store
      .write(DOCUMENT, { nodes } satisfies Stored)
      .catch((error: unknown) =>
        telemetry.log('warn', 'providers of agents could not be kept', { reason: messageOf(error) })
      )
  }
}
