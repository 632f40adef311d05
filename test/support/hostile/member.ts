import path from 'node:path'
import Corestore from 'corestore'
import { DocumentCores } from '../../../src/adapters/mesh/documents/document-cores.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { asNodeError } from '../../../src/kit/errors.js'
import type { StreamKey } from '../../../src/domain/document/client-ids.js'
import type { SignedCard } from '../../../src/domain/membership/types.js'
import type { Lab } from '../../adapters/mesh/lab.js'
import { Eve } from '../hostile.js'
import { tempDir, type Teardown } from '../tmp.js'
import { EvilCalls } from './calls.js'
import { LogCores } from './log-cores.js'

/** Nearly a largest block. */
const BLOCK = new Uint8Array(262_144)
/** Blocks of her streams in a MiB. */
export const BLOCKS_PER_MEBIBYTE = 4

/**
 * A member made of the product's own parts: its link, its cores of the log and its cores of documents take what a test
 * wants.
 */
export class HostileMember extends Eve {
  readonly logCores: LogCores
  readonly calls = new EvilCalls(this)
  /** Requests that she has made so far. */
  count = 0
  readonly #documents: DocumentCores
  readonly #streams = new Set<StreamKey>()
  #told = 0

  private constructor(
    ...[member, victim, parts]: readonly [...ConstructorParameters<typeof Eve>, { readonly documents: DocumentCores }]
  ) {
    super(member, victim)
    this.#documents = parts.documents
    this.logCores = new LogCores(member)
    this.#countFrames()
  }

  /** Joins by an invite and is linked to the victim. */
  static async join(
    t: Teardown,
    lab: Lab,
    by: { readonly code: string; readonly victim: string }
  ): Promise<HostileMember> {
    const documents = await documentsOf(t)
    const member = await lab.join('eve', by.code, { onPassed: (peer, stream) => documents.link(peer, stream) })
    const eve = new HostileMember(member, { id: by.victim }, { documents })
    t.teardown(() => eve.logCores.close())
    await member.start()
    await eve.link()
    await eve.logCores.ready()
    return eve
  }

  /** Bytes that the victim has told her. */
  get told(): number {
    return this.#told
  }

  /** Has she a link to anybody? */
  get isLinked(): boolean {
    return this.member.mesh.links.list().length > 0
  }

  /** Resolves when the victim has told her so many bytes more. */
  async untilTold(bytes: number): Promise<void> {
    const goal = this.#told + bytes
    await this.member.seen.until(() => this.#told >= goal)
  }

  /** Brings a card into the log by the way that honest members take; it comes behind what she sent before. */
  async says(card: SignedCard): Promise<void> {
    const { log, meshId: mesh } = this.member.mesh
    await log.submit({ kind: 'card', mesh, card })
  }

  /**
   * Writes to a stream of hers of that name so many MiB in blocks of 256 KiB, which hold no document; all who may see
   * it can have them.
   */
  async writeStream(name: string, mebibytes: number): Promise<StreamKey> {
    const { stream } = await this.#documents.own(name)
    for (let at = 0; at < mebibytes * BLOCKS_PER_MEBIBYTE; at++) await this.#documents.append(stream, [BLOCK])
    this.#streams.add(stream)
    this.#documents.follow([...this.#streams].map((one) => ({ stream: one, mayHave: () => true })))
    return stream
  }

  /** Creates a document by the log alone, with a stream of hers. */
  async announce(name: string, coreKey: StreamKey): Promise<void> {
    const { log, meshId: mesh } = this.member.mesh
    await log.submit({ kind: 'document', mesh, name, access: null, at: 1 })
    await log.submit({ kind: 'document-stream', mesh, name, coreKey })
  }

  /** Hours of answers are too many to keep: a few frames are left for who looks for one. */
  #countFrames(): void {
    const { seen } = this.member
    const onFrame = seen.onFrame.bind(seen)
    seen.onFrame = (link, frame) => {
      if (link.peer === this.victim.id) this.#told += frame.byteLength
      if (seen.frames.length > 1000) seen.frames.splice(0, 900)
      onFrame(link, frame)
    }
  }
}

async function documentsOf(t: Teardown): Promise<DocumentCores> {
  const dir = path.join(await tempDir(t), 'documents')
  const clock = systemClock()
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  const open = async (): Promise<Corestore> => {
    const store = new Corestore(dir)
    await store.ready()
    return store
  }
  const documents = new DocumentCores({ clock, telemetry, toError: asNodeError, open })
  // Links end first.
  t.teardown(() => documents.close(), { order: 1 })
  return documents
}
