import { createRequire } from 'node:module'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import type Hypercore from 'hypercore'
import type { NoiseStream } from 'hyperswarm'
import type { LabNode } from '../../adapters/mesh/lab.js'

/** A core and how many blocks of it there are. */
export interface Hint {
  readonly key: Uint8Array
  readonly length: number
}

/** The part of the engine's channel of hints that is used here. */
interface Hints {
  addStream(stream: NoiseStream): void
  session(
    capability: Uint8Array,
    handlers: object
  ): { announceByStream(stream: NoiseStream, hints: readonly Hint[]): void }
  destroy(): void
}

const require = createRequire(import.meta.url)
const { OplogMessage } = require('autobase/lib/messages.js') as { OplogMessage: Codec<unknown> }
// That of the engine itself, which is no package of ours.
const ProtomuxWakeup = createRequire(require.resolve('autobase'))('protomux-wakeup') as new () => Hints

/** A block of the log as the engine writes it, with these blocks before it. */
export function logBlock(heads: readonly Hint[]): Uint8Array {
  return c.encode(OplogMessage, { version: 2, optimistic: true, node: { heads, batch: 1, value: new Uint8Array(1) } })
}

/** Two blocks of which the second ends an engine that reads it unchecked: it names the first one twice. */
export function badBlocks({ key }: Pick<Hypercore, 'key'>): readonly Uint8Array[] {
  const twice = { key, length: 1 }
  return [logBlock([]), logBlock([twice, twice])]
}

/**
 * Cores of the log that a member writes past its engine, and hints about them by its own rules. Make it before the
 * member starts.
 */
export class LogCores {
  readonly #node: LabNode
  readonly #streams = new Set<NoiseStream>()
  readonly #hints = new ProtomuxWakeup()
  readonly #session: ReturnType<Hints['session']>
  #peers = 0
  #onPeer: () => void = () => {}

  constructor(node: LabNode) {
    this.#node = node
    const { log } = node.mesh
    const onpeeradd = (): void => {
      this.#peers++
      this.#onPeer()
    }
    this.#session = this.#hints.session(log.key, { onpeeradd })
    log.replicate = (stream) => {
      node.store.replicate(stream)
      this.#hints.addStream(stream)
      this.#streams.add(stream)
      stream.on('close', () => this.#streams.delete(stream))
    }
  }

  /** Resolves when a peer takes hints. */
  async ready(): Promise<void> {
    if (this.#peers > 0) return
    await new Promise<void>((resolve) => {
      this.#onPeer = resolve
    })
  }

  /** A core of hers, encrypted as those of the log are. */
  async core(name: string): Promise<Hypercore> {
    const core = this.#node.store.get({
      name: `hostile/${name}`,
      encryption: { key: this.#node.mesh.log.encryptionKey }
    })
    await core.ready()
    return core
  }

  /** Tells all peers of cores, in one frame each. */
  hint(hints: readonly Hint[]): void {
    for (const stream of this.#streams) this.#session.announceByStream(stream, hints)
  }

  close(): void {
    this.#hints.destroy()
  }
}
