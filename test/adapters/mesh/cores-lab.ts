import path from 'node:path'
import type { Assert } from 'brittle'
import Corestore from 'corestore'
import { DocumentCores } from '../../../src/adapters/mesh/documents/document-cores.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { asNodeError } from '../../../src/kit/errors.js'
import { keyFromText, utf8 } from '../../../src/kit/ids.js'
import type { FollowedStream } from '../../../src/ports/documents.js'
import { actor } from '../../support/membership.js'
import { tempDir } from '../../support/tmp.js'
import { streamPair } from './stream-pair.js'

/** A stream that all may have. */
export const everybody = (stream: string): FollowedStream => ({ stream, mayHave: () => true })
/** A stream that goes to nobody. */
export const nobody = (stream: string): FollowedStream => ({ stream, mayHave: () => false })

/** The cores of one node, with what it was told. */
export class Side {
  readonly cores: DocumentCores
  readonly forked: string[] = []
  /** Streams of which blocks came from others. */
  readonly fetched = new Set<string>()
  /** Warnings in its log. */
  readonly warnings: string[] = []
  /** How often its store was opened. */
  opened = 0
  #waiting: (() => void)[] = []

  constructor(t: Assert, dir: string) {
    const clock = systemClock()
    this.cores = new DocumentCores({
      clock,
      telemetry: new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => this.#warned(line) }),
      toError: asNodeError,
      open: async () => {
        this.opened++
        const store = new Corestore(dir)
        await store.ready()
        return store
      }
    })
    this.cores.start({
      onBlocks: () => this.#wake(),
      onFetched: (stream) => {
        this.fetched.add(stream)
        this.#wake()
      },
      onForked: (stream) => {
        this.forked.push(stream)
        this.#wake()
      }
    })
    t.teardown(() => this.cores.close())
    // Streams and clocks of these tests keep no process alive.
    const alive = setInterval(() => {}, 60_000)
    t.teardown(() => clearInterval(alive))
  }

  /** Resolves when something is so; looked at whenever the cores tell something. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #warned(line: string): void {
    this.warnings.push(line)
    this.#wake()
  }

  #wake(): void {
    for (const go of this.#waiting.splice(0)) go()
  }
}

/** Sides in directories of these names. */
export async function sides(t: Assert, ...names: readonly string[]): Promise<Side[]> {
  const dir = await tempDir(t)
  return names.map((name) => new Side(t, path.join(dir, name)))
}

/** Ten bytes each. */
export function numbered(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, at) => utf8(`block ${String(at).padStart(4, '0')}`))
}

/** The blocks of a stream that are in the store of a closed side. */
export async function storedBlocks(dir: string, stream: string): Promise<number[]> {
  const store = new Corestore(dir)
  const core = store.get({ key: keyFromText(stream), writable: false })
  await core.ready()
  const blocks = await Promise.all(Array.from({ length: core.length }, (_, at) => core.get(at, { wait: false })))
  await store.close()
  return blocks.flatMap((block, at) => (block === null ? [] : [at]))
}

/** A stream between two sides. */
export async function link(t: Assert, a: readonly [string, Side], b: readonly [string, Side]): Promise<void> {
  const [one, other] = await streamPair(t, a[0], b[0])
  a[1].cores.link(actor(b[0]).id, one)
  b[1].cores.link(actor(a[0]).id, other)
}
