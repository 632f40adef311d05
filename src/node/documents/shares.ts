import type { Clock, Timer } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { DOCUMENT_SHARE_LIMITS, type Payer, payerKey } from '../../domain/document/share.js'
import type { NodeStore } from '../../ports/storage.js'

/** Name of the stored bytes that each stream takes of a share. */
const STORED = 'document-shares'
/** The longest delay between a change and its write, in milliseconds. */
const STORE_MS = 2000

/** Dependencies of {@link DocumentShares}. */
export interface DocumentSharesDeps {
  readonly clock: Clock
  readonly store: NodeStore
  /** A stream went over a share, or is no longer over. Called in a turn of its own. */
  onChange(): void
  onError(error: unknown): void
}

/** The stored form: whose share a stream takes, and how many bytes. */
type StoredShares = Readonly<Record<StreamKey, readonly [kind: Payer['kind'], node: NodeId, bytes: number]>>

interface Grant {
  readonly payer: Payer
  readonly bytes: number
}

/**
 * The bytes of unused documents that each member makes this node keep. A stream keeps its bytes until its blocks are
 * removed, also over a restart. So no later stream takes a share whose bytes are on disk.
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

  /** Reads the stored bytes. */
  async start(): Promise<void> {
    const stored = (await this.#deps.store.read<StoredShares>(STORED)) ?? {}
    for (const [stream, [kind, node, bytes]] of Object.entries(stored))
      this.#grant(stream, { payer: { kind, node }, bytes })
  }

  /** Stores pending changes. */
  async close(): Promise<void> {
    if (this.#timer !== null) this.#store()
    await this.#writing
  }

  /** True when a stream takes bytes of a share. */
  isStored(stream: StreamKey): boolean {
    return this.#grants.has(stream)
  }

  /** True when a stream is longer than the share of its members allows. */
  isRefused(stream: StreamKey): boolean {
    return this.#refused.has(stream)
  }

  /** Bytes that one payer takes. */
  bytesOf(payer: Payer): number {
    return this.#totals.get(payerKey(payer)) ?? 0
  }

  /**
   * True when `bytes` bytes of a stream may be here. `payers`: the members that announced it; the first with room pays.
   */
  mayHold(stream: StreamKey, payers: readonly Payer[], bytes: number): boolean {
    const { stepBytes, maxBytes } = DOCUMENT_SHARE_LIMITS
    const grant = this.#grants.get(stream)
    const wanted = Math.ceil(bytes / stepBytes) * stepBytes
    if (wanted === (grant?.bytes ?? 0)) return this.#settle(stream, true)
    const own = (payer: Payer): number =>
      grant !== undefined && payerKey(payer) === payerKey(grant.payer) ? grant.bytes : 0
    // The stream may be shorter than before: a snapshot replaced its first blocks.
    const isLess = grant !== undefined && wanted < grant.bytes
    const payer = isLess ? grant.payer : payers.find((one) => this.bytesOf(one) - own(one) + wanted <= maxBytes)
    if (payer === undefined) return this.#settle(stream, false)
    this.#grant(stream, wanted === 0 ? null : { payer, bytes: wanted })
    this.#due()
    return this.#settle(stream, true)
  }

  /** Frees the share of these streams: their blocks were removed, or their document is used here. */
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
    // The calling core is in the middle of its work.
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
    const grants = [...this.#grants].map(
      ([stream, { payer, bytes }]) => [stream, [payer.kind, payer.node, bytes] as const] as const
    )
    this.#writing = this.#writing
      .then(() => store.write(STORED, Object.fromEntries(grants) satisfies StoredShares))
      .catch(onError)
  }
}
