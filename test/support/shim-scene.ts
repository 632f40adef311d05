import { duplexPair, type Duplex } from 'node:stream'
import path from 'node:path'
import type { Assert } from 'brittle'
import { serveMcp } from '../../src/adapters/mcp/server/serve.js'
import { LastKnown } from '../../src/cli/mcp/last-known.js'
import { Shim } from '../../src/cli/mcp/shim.js'
import { NodeError } from '../../src/kit/errors.js'
import { ManualClock } from './manual-clock.js'
import { McpScene, RawClient } from './mcp.js'
import { tempDir } from './tmp.js'

/** Clients of one home whose node comes and goes. Time stands still but for {@link ShimScene.pass}. */
export class ShimScene {
  readonly clock = new ManualClock()
  readonly notes: string[] = []
  readonly #file: string
  readonly #streams = new Set<Duplex>()
  /** The node that runs; null for none. */
  node: McpScene | null = null
  /** The fault of each attempt to connect while no node runs. */
  fault = new NodeError('NODE_NOT_RUNNING', 'no node answers')
  /** Did the last node leave its socket? */
  hasCrashed = false
  /** Starts a node; undefined where nobody may. */
  start: (() => Promise<void>) | undefined = undefined
  connections = 0
  /** Is each connection closed as soon as it is open? */
  endsAtOnce = false

  private constructor(file: string) {
    this.#file = file
  }

  static async make(t: Assert): Promise<ShimScene> {
    return new ShimScene(path.join(await tempDir(t), 'mcp-clients', '0123456789abcdef.json'))
  }

  /** The file of the last known state. */
  get file(): string {
    return this.#file
  }

  /** A client that writes lines by hand; `ended`: resolves with its shim. */
  client(t: Assert): RawClient & { readonly ended: Promise<unknown> } {
    const { stream, shim, ended } = this.connect()
    const raw = new RawClient(stream, { close: () => Promise.resolve(shim.close()), closed: Promise.resolve() })
    t.teardown(() => raw.close())
    return Object.assign(raw, { ended })
  }

  /** The client's side of a new shim. */
  connect(): { readonly stream: Duplex; readonly shim: Shim; readonly ended: Promise<unknown> } {
    const [ours, theirs] = duplexPair()
    const shim = new Shim({
      clock: this.clock,
      client: { input: theirs, output: theirs },
      known: new LastKnown(this.#file),
      version: () => '1.2.3',
      startCommand: 'a2a-node start --detach',
      connect: () => this.#connect(),
      hasCrashed: () => this.hasCrashed,
      note: (text) => void this.notes.push(text),
      ...(this.start === undefined ? {} : { start: () => this.start?.() ?? Promise.resolve() })
    })
    const ended = shim.run().catch((error: unknown) => error)
    // The process ends then.
    void ended.then(() => theirs.end())
    return { stream: ours, shim, ended }
  }

  /** The node ends, and with it every connection. */
  async stop(): Promise<void> {
    this.node = null
    const closed = [...this.#streams].map((stream) => new Promise((resolve) => stream.once('close', resolve)))
    for (const stream of this.#streams) stream.destroy()
    await Promise.all(closed)
    await turns()
  }

  /** Lets time pass, in steps that leave each attempt to connect its turn. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(Math.min(50, left))
      await turns()
    }
  }

  #connect(): Promise<Duplex> {
    const { node } = this
    if (node === null) return Promise.reject(this.fault)
    this.connections++
    const [ours, theirs] = duplexPair()
    this.#streams.add(ours)
    ours.once('close', () => {
      this.#streams.delete(ours)
      theirs.destroy()
    })
    serveMcp({ input: theirs, output: theirs }, node.parts)
    if (this.endsAtOnce) setImmediate(() => ours.destroy())
    return Promise.resolve(ours)
  }
}

/** Lets all that is due now happen. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}
