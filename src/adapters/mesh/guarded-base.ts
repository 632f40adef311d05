import Autobase from 'autobase'
import type { AutobaseHandlers, GetWriterArgs, LogBlock, LogCore, LogHead, LogWriter } from 'autobase'
import b4a from 'b4a'
import type Corestore from 'corestore'
import type Hyperbee from 'hyperbee'
import { messageOf } from '../../kit/errors.js'
import { keyToText } from '../../kit/ids.js'
import { BadBlock, checkBlock, isPrevious, MAX_LOG_BLOCK_BYTES } from './log-blocks.js'
import { MAX_BLOCKS } from './core-messages.js'

/** Form of the cores of the log; a newer one names keys of blocks that come from elsewhere. */
const MANIFEST_VERSION = 1
/** What encryption puts before a block, in bytes. */
const PADDING_BYTES = 8

/** What the engine of the log asks before it takes something of a peer. */
export interface LogGuard {
  /** May a core (z32) hold blocks of the log? False: nobody needs to hear that it has new ones. */
  isWriter(coreKey: string): boolean
  /** Does a member with the right to write claim this core, which the log does not name yet? */
  isClaimed(coreKey: string): boolean
  /** A core holds a block that must not be read: from it on nothing of the core is taken. */
  onBadBlock(coreKey: string, reason: string): void
}

/**
 * The engine of the log with a check before everything that a peer supplies: it opens only cores that the log names, or that a
 * member claims which may write, and it sees no block that breaks one of its assumptions. Autobase itself ends the process at such a block.
 */
export class GuardedBase extends Autobase<Hyperbee> {
  readonly #guard: LogGuard

  constructor(store: Corestore, key: Uint8Array | null, { handlers, guard }: { handlers: AutobaseHandlers<Hyperbee>; guard: LogGuard }) {
    super(store, key, handlers)
    this.#guard = guard
  }

  override hintWakeup(hints: LogHead | readonly LogHead[]): void {
    const named = [hints].flat().filter(({ key, length }) => length <= MAX_BLOCKS && this.#guard.isWriter(keyToText(key)))
    if (named.length > 0) super.hintWakeup(named)
  }

  protected override async _getWriterByKey(...args: GetWriterArgs): Promise<LogWriter | null> {
    const [key, , , , isAdded, system] = args
    // With a system of its own the engine reads what it took before, or what an entry just added.
    if (system === null && !isAdded && !(await this.#isKnown(key))) return null
    return super._getWriterByKey(...args)
  }

  protected override _makeWriter(...args: readonly [Uint8Array, number, boolean, boolean]): LogWriter {
    const writer = super._makeWriter(...args)
    const load = writer._loadNextNode.bind(writer)
    const link = writer._ensureNodeDependencies.bind(writer)
    let due = 0
    writer._loadNextNode = () =>
      this.#checked(writer, async () => {
        const at = writer.nodes.length
        if (!(await isReadable(writer.core, at)) || !(await load()) || writer.node === null) return false
        checkBlock(writer.node, { core: writer.core.key, at, due })
        due = writer.node.batch - 1
        writer.node.trace = null
        return true
      })
    writer._ensureNodeDependencies = (boot) => this.#checked(writer, async () => (await link(boot)) && (await this.#checkHeads(writer)))
    return writer
  }

  /** Values of optimistic first blocks, by the core (z32) that they stand in. Blocks that are missing or bad are left out. */
  async claims(): Promise<ReadonlyMap<string, Uint8Array>> {
    const claims = new Map<string, Uint8Array>()
    for await (const { key } of this.system?.list() ?? []) {
      const first = await this.#blockOf(key, 0).catch(badAsMissing)
      if (first?.optimistic === true && first.node.value !== null) claims.set(keyToText(key), first.node.value)
    }
    return claims
  }

  async #isKnown(key: Uint8Array): Promise<boolean> {
    if (b4a.equals(key, this.key) || b4a.equals(key, this.local.key) || this.#guard.isClaimed(keyToText(key))) return true
    return this.system !== null && (await this.system.get(key)) !== null
  }

  /** What goes wrong with a block is the fault of its core, which is set aside; the others go on. */
  async #checked(writer: LogWriter, read: () => Promise<boolean>): Promise<boolean> {
    try {
      return await read()
    } catch (error) {
      if (this.closing !== null || !isFault(error)) throw error
      writer.frozen = true
      writer.node = null
      this.#guard.onBadBlock(keyToText(writer.core.key), messageOf(error))
      return false
    }
  }

  /** A batch goes into the order as one, so nobody may put a block into the middle of it. */
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
      return (await isReadable(core, at)) ? await core.get(at, { wait: false }) : null
    } finally {
      await core.close()
    }
  }
}

/** @throws what is no fault of the block */
function badAsMissing(error: unknown): null {
  if (isFault(error)) return null
  throw error
}

/** Is the block here? @throws BadBlock where the engine cannot tell what is in it, or would wait for a key that never comes */
async function isReadable(core: LogCore, at: number): Promise<boolean> {
  const block = (await core.has(at)) ? await core.get(at, { raw: true, wait: false }) : null
  if (block === null) return false
  if ((core.manifest?.version ?? 0) > MANIFEST_VERSION) throw new BadBlock('a core of a form that the log does not use')
  if (block.byteLength < PADDING_BYTES || block.byteLength > MAX_LOG_BLOCK_BYTES) throw new BadBlock('a block of no sensible size')
  return true
}

/** Is it the fault of the bytes, and not of the store or of an end? */
function isFault(error: unknown): boolean {
  if (error instanceof BadBlock || error instanceof TypeError || error instanceof RangeError) return true
  return error instanceof Error && (error.name === 'AssertionError' || ('code' in error && error.code === 'DECODING_ERROR'))
}
