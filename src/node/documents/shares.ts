import type { Clock, Timer } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { DOCUMENT_SHARE_LIMITS, type Payer, payerKey } from '../../domain/document/share.js'
import type { NodeStore } from '../../ports/storage.js'

/** Name of the stored document of what each stream takes of a share. */
const STORED = 'document-shares'
/** How much later than a change it is stored at most, in milliseconds. */
const STORE_MS = 2000

/** What {@link DocumentShares} needs. */
export interface DocumentSharesDeps {
  readonly clock: Clock
  readonly store: NodeStore
  /** A stream is over a share, or no longer. Called in a turn of its own. */
  onChange(): void
  onError(error: unknown): void
}

/** As stored: whose share a stream takes, and how many bytes of it. */
type StoredShares = Readonly<Record<StreamKey, readonly [kind: Payer['kind'], node: NodeId, bytes: number]>>

interface Grant {
  readonly payer: Payer
  readonly bytes: number
}

/**
 * How many bytes each member makes this node keep of documents that nobody uses here. What a stream got once it has until its
 * blocks are removed, also over a restart: no later stream takes a share whose bytes are on disk.
 */
export class DocumentShares {
  readonly #deps: DocumentSharesDeps
  readonly #grants = new Map<StreamKey, Grant>()
  /** Bytes by payer. */
  readonly #totals = new Map<string, number>()
  readonly #refused = new Set<StreamKey>()
  #timer: Timer | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: DocumentSharesDeps) {
    this.#deps = deps
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    const stored = (await this.#deps.store.read<StoredShares>(STORED)) ?? {}
    for (const [stream, [kind, node, bytes]] of Object.entries(stored)) this.#grant(stream, { payer: { kind, node }, bytes })
  }

  /** Stores what is not stored yet. */
  async close(): Promise<void> {
    if (this.#timer !== null) this.#store()
    await this.#writing
  }

  /** Does a stream take something of a share? */
  isStored(stream: StreamKey): boolean {
    return this.#grants.has(stream)
  }

  /** Is a stream longer than the share of its members has room for? */
  isRefused(stream: StreamKey): boolean {
    return this.#refused.has(stream)
  }

  /** Bytes that one payer takes. */
  bytesOf(payer: Payer): number {
    return this.#totals.get(payerKey(payer)) ?? 0
  }

  /** May as many bytes of a stream be here? `payers`: the members who announced it; the first with room pays. */
  mayHold(stream: StreamKey, payers: readonly Payer[], bytes: number): boolean {
    const { stepBytes, maxBytes } = DOCUMENT_SHARE_LIMITS
    const grant = this.#grants.get(stream)
    const wanted = Math.ceil(bytes / stepBytes) * stepBytes
    if (wanted === (grant?.bytes ?? 0)) return this.#settle(stream, true)
    const own = (payer: Payer): number => (grant !== undefined && payerKey(payer) === payerKey(grant.payer) ? grant.bytes : 0)
    // It may be shorter than before: a snapshot took the place of its first blocks.
    const isLess = grant !== undefined && wanted < grant.bytes
    const payer = isLess ? grant.payer : payers.find((one) => this.bytesOf(one) - own(one) + wanted <= maxBytes)
    if (payer === undefined) return this.#settle(stream, false)
    this.#grant(stream, wanted === 0 ? null : { payer, bytes: wanted })
    this.#due()
    return this.#settle(stream, true)
  }

  /** These streams take nothing of a share any more: their blocks were removed, or somebody uses their document here. */
  release(streams: readonly StreamKey[]): void {
    for (const stream of streams) {
      this.#refused.delete(stream)
      if (!this.#grants.has(stream)) continue
      this.#grant(stream, null)
      this.#due()
    }
  }

  #settle(stream: StreamKey, isStored: boolean): boolean {
    if (this.#refused.has(stream) !== isStored) return isStored
    if (isStored) this.#refused.delete(stream)
    else this.#refused.add(stream)
    // The core that asks is in the middle of its work.
    void Promise.resolve().then(() => this.#deps.onChange())
    return isStored
  }

  #grant(stream: StreamKey, grant: Grant | null): void {
    const before = this.#grants.get(stream)
    if (before !== undefined) this.#totals.set(payerKey(before.payer), this.bytesOf(before.payer) - before.bytes)
    if (grant === null) this.#grants.delete(stream)
    else this.#grants.set(stream, grant)
    if (grant !== null) this.#totals.set(payerKey(grant.payer), this.bytesOf(grant.payer) + grant.bytes)
  }

  #due(): void {
    this.#timer ??= this.#deps.clock.after(STORE_MS, () => this.#store())
  }

  #store(): void {
    const { clock, store, onError } = this.#deps
    clock.clear(this.#timer)
    this.#timer = null
    const grants = [...this.#grants].map(([stream, { payer, bytes }]) => [stream, [payer.kind, payer.node, bytes] as const] as const)
    this.#writing = this.#writing.then(() => store.write(STORED, Object.fromEntries(grants) satisfies StoredShares)).catch(onError)
  }
}
