import Autobase from 'autobase'
import type { AutobaseHandlers, GetWriterArgs, LogBlock, LogCore, LogHead, LogWriter } from 'autobase'
import b4a from 'b4a'
import type Corestore from 'corestore'
import type Hyperbee from 'hyperbee'
import type { CoreLimit } from '../../../domain/membership/log-share.js'
import { messageOf } from '../../../kit/errors.js'
import { keyToText } from '../../../kit/ids.js'
import type { CoreCare } from './core-care.js'
import { CoreShare } from './core-share.js'
import { BadBlock, checkBlock, isPrevious, MAX_LOG_BLOCK_BYTES } from './log-blocks.js'
import { MAX_BLOCKS } from './core-messages.js'

/** Form of the cores of the log; a newer one names keys of blocks that come from elsewhere. */
const MANIFEST_VERSION = 1
/** Bytes that encryption puts before a block. */
const PADDING_BYTES = 8

/** Why nothing more of a core is read. */
export interface CoreFault {
  readonly code: 'MALFORMED' | 'OVERLOADED' | 'INTERNAL'
  readonly reason: string
}

/** The checks of the log's engine before it takes data of a peer. */
export interface LogGuard {
  /** May a core (z32) hold blocks of the log? False: its new blocks need not be announced. */
  isWriter(coreKey: string): boolean
  /** Does a member with the right to write claim this core, which the log does not name yet? */
  isClaimed(coreKey: string): boolean
  /** The record of cores at which starts ended; null when there is none. */
  readonly care: Pick<CoreCare, 'mayRead'> | null
  /** The limit of a core's blocks that are read. */
  limitOf(coreKey: string): CoreLimit
  /**
   * A core without a known owner is over its limit: it is read further when {@link GuardedBase.limitsChanged} is
   * called.
   */
  onWaiting(coreKey: string): void
  /**
   * A core holds a block that must not be read, or more than its share (OVERLOADED): nothing of the core is taken from
   * there on.
   */
  onBadBlock(coreKey: string, fault: CoreFault): void
}

/**
 * The engine of the log with a check before all data of a peer. It opens only cores that the log names, or that a
 * member with the right to write claims. It sees no block that breaks one of its assumptions; Autobase itself ends the
 * process at such a block.
 */
export class GuardedBase extends Autobase<Hyperbee> {
  readonly #guard: LogGuard
  /** Lengths of cores (z32) of revoked members, as blocks that are read name them. */
  readonly #named = new Map<string, number>()

  constructor(
    store: Corestore,
    key: Uint8Array | null,
    { handlers, guard }: { handlers: AutobaseHandlers<Hyperbee>; guard: LogGuard }
  ) {
    super(store, key, handlers)
    this.#guard = guard
  }

  override hintWakeup(hints: LogHead | readonly LogHead[]): void {
    const named = [hints].flat().filter(({ key, length }) => length <= MAX_BLOCKS && this.#isHeeded(keyToText(key)))
    if (named.length > 0) super.hintWakeup(named)
  }

  /** Of revoked members only blocks are fetched that other blocks name, whatever peers have of them. */
  #isHeeded(coreKey: string): boolean {
    return this.#guard.isWriter(coreKey) && !this.#guard.limitOf(coreKey).isRevoked
  }

  protected override async _getWriterByKey(...args: GetWriterArgs): Promise<LogWriter | null> {
    const [key, , , , isAdded, system] = args
    // With its own system the engine reads blocks taken before; an added writer was named by an entry just now.
    if (system === null && !isAdded && !(await this.#isKnown(key))) return null
    return super._getWriterByKey(...args)
  }

  protected override _makeWriter(...args: readonly [Uint8Array, number, boolean, boolean]): LogWriter {
    const writer = super._makeWriter(...args)
    const load = writer._loadNextNode.bind(writer)
    const link = writer._ensureNodeDependencies.bind(writer)
    const share = new CoreShare(writer.core, () => this.#guard.limitOf(keyToText(writer.core.key)))
    let due = 0
    writer._resume = () =>
      resume(writer, share.end(writer.nodes.length, this.#named.get(keyToText(writer.core.key)) ?? 0))
    writer._loadNextNode = () =>
      this.#checked(writer, async () => {
        const at = writer.nodes.length
        const bytes = await readableBytes(writer.core, at)
        if (bytes === null || !(await this.#isWithin(share, writer, bytes)) || !(await this.#isTaken(writer)))
          return false
        if (!(await load()) || writer.node === null) return false
        checkBlock(writer.node, { core: writer.core.key, at, due })
        due = writer.node.batch - 1
        writer.node.trace = null
        return true
      })
    writer._ensureNodeDependencies = (boot) =>
      this.#checked(writer, async () => {
        this.#noteHeads(writer)
        return (await link(boot)) && (await this.#checkHeads(writer))
      })
    return writer
  }

  /**
   * Values of optimistic first blocks, by the core (z32) that they stand in. Blocks that are missing or bad are left
   * out.
   */
  async claims(): Promise<ReadonlyMap<string, Uint8Array>> {
    const claims = new Map<string, Uint8Array>()
    for await (const { key } of this.system?.list() ?? []) {
      const first = await this.#blockOf(key, 0).catch(badAsMissing)
      if (first?.optimistic === true && first.node.value !== null) claims.set(keyToText(key), first.node.value)
    }
    return claims
  }

  /** The limits of some cores have changed: asks for more or fewer of their blocks, and reads on in waiting ones. */
  limitsChanged(): void {
    if (this.closing !== null) return
    this.activeWriters.updateActivity()
    // Rejects only while it closes, and then nothing more is read.
    this.update().catch(() => {})
  }

  async #isWithin(share: CoreShare, { core, nodes }: LogWriter, bytes: number): Promise<boolean> {
    if (core.writable) return true
    const verdict = await share.of(nodes.length, bytes)
    if (verdict === 'over') throw new OverShare('it is over its share of the log')
    if (verdict === 'wait') this.#guard.onWaiting(keyToText(core.key))
    return verdict === 'read'
  }

  /** Blocks that were in the order before stay readable, so that a start finds its way to its earlier state. */
  async #isTaken(writer: LogWriter): Promise<boolean> {
    const { core, nodes } = writer
    const { care } = this.#guard
    if (care === null || core.writable || this.system === null) return true
    const ordered = (await this.system.get(core.key))?.length ?? 0
    if (nodes.length < ordered || (await care.mayRead(keyToText(core.key)))) return true
    writer.frozen = true
    writer._pause()
    return false
  }

  async #isKnown(key: Uint8Array): Promise<boolean> {
    if (b4a.equals(key, this.key) || b4a.equals(key, this.local.key) || this.#guard.isClaimed(keyToText(key)))
      return true
    return this.system !== null && (await this.system.get(key)) !== null
  }

  /** A fault of a block is the fault of its core, which is set aside; the others go on. */
  async #checked(writer: LogWriter, read: () => Promise<boolean>): Promise<boolean> {
    try {
      return await read()
    } catch (error) {
      if (this.closing !== null || !isFault(error)) throw error
      writer.frozen = true
      writer.node = null
      writer._pause()
      const code = error instanceof OverShare ? 'OVERLOADED' : 'MALFORMED'
      this.#guard.onBadBlock(keyToText(writer.core.key), { code, reason: messageOf(error) })
      return false
    }
  }

  /**
   * Blocks of revoked members that a block names are fetched with it; it is linked again and again until they are here.
   */
  #noteHeads({ node }: LogWriter): void {
    for (const { key, length } of node?.actualHeads ?? []) {
      const core = keyToText(key)
      if (this.#guard.limitOf(core).isRevoked) this.#named.set(core, Math.max(length, this.#named.get(core) ?? 0))
    }
  }

  /** A batch goes into the order as one, so no block may name a block inside it. */
  async #checkHeads({ core, node, nodes }: LogWriter): Promise<true> {
    const at = nodes.length
    for (const head of node?.actualHeads ?? []) {
      if (isPrevious(head, { core: core.key, at })) continue
      if ((await this.#batchOf(head)) !== 1) throw new BadBlock('it names a block inside a batch')
    }
    return true
  }

  /** Blocks from a block on to the end of its batch; 1 of a block that is not here, which the engine needs no more. */
  async #batchOf({ key, length }: LogHead): Promise<number> {
    const buffered = this.activeWriters.get(key)?.nodes.get(length - 1)
    if (buffered) return buffered.batch
    return (await this.#blockOf(key, length - 1))?.node.batch ?? 1
  }

  /** A block of a writer; null when it is not here. */
  async #blockOf(key: Uint8Array, at: number): Promise<LogBlock | null> {
    const core = this._makeWriterCore(key)
    try {
      await core.ready()
      return (await readableBytes(core, at)) === null ? null : await core.get(at, { wait: false })
    } finally {
      await core.close()
    }
  }
}

/** @throws errors that are no fault of the block */
function badAsMissing(error: unknown): null {
  if (isFault(error)) return null
  throw error
}

/** A core is over its share. */
class OverShare extends BadBlock {}

/** Asks for blocks of a core up to one, and for nothing more of one that is set aside. */
function resume(writer: LogWriter, last: number): void {
  const { core, frozen, nodes, range } = writer
  const end = frozen ? nodes.length : last
  if (range?.range.end === end) return
  writer._pause()
  if (end > nodes.length) writer.range = core.download({ start: nodes.length, end, linear: true })
}

/**
 * Size of a stored block; null: it is missing.
 * @throws BadBlock where the engine cannot decode it, or would wait for a key that never comes
 */
async function readableBytes(core: LogCore, at: number): Promise<number | null> {
  const block = (await core.has(at)) ? await core.get(at, { raw: true, wait: false }) : null
  if (block === null) return null
  if ((core.manifest?.version ?? 0) > MANIFEST_VERSION) throw new BadBlock('a core of a form that the log does not use')
  if (block.byteLength < PADDING_BYTES || block.byteLength > MAX_LOG_BLOCK_BYTES)
    throw new BadBlock('a block of no sensible size')
  return block.byteLength
}

/** Is it the fault of the bytes, and not of the store or of an end? */
function isFault(error: unknown): boolean {
  if (error instanceof BadBlock || error instanceof TypeError || error instanceof RangeError) return true
  return (
    error instanceof Error && (error.name === 'AssertionError' || ('code' in error && error.code === 'DECODING_ERROR'))
  )
}
