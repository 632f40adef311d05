import type { Clock } from '../../kit/clock.js'
import { asNodeError, messageOf, NodeError, passingConflict } from '../../kit/errors.js'
import { fromUtf8, type NodeId, type IdSource } from '../../kit/ids.js'
import { shellWord, shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import { hasPlaceFor, isStreamOf, MAX_STREAMS_OF_MEMBER } from '../../domain/membership/fold/document.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { Ledger } from '../../ports/ledger.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { addressText, OPERATOR } from '../../domain/card/card.js'
import { decodeEnvelope, encodeEnvelope } from '../../domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../domain/envelope/envelope.js'
import type { Tier } from '../../domain/routing/tier.js'
import { memberAccess } from './access.js'
import type { DocumentIndex } from './document-index.js'

/** Name of the stored document of own streams. */
export const OWN_STREAMS = 'document-streams'
/** Time limit of one attempt to bring a stream into the log, in milliseconds. */
const LOG_TIMEOUT_MS = 30_000

/** Dependencies of {@link LocalStreams}. */
export interface LocalStreamsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly store: NodeStore
  readonly ledger: Pick<Ledger, 'get' | 'commit'>
  readonly log: MemberLog
  readonly membership: Pick<Membership, 'certificate'>
  readonly documents: Pick<DocumentStreams, 'own' | 'append'>
  readonly self: NodeId
  readonly known: Pick<DocumentIndex, 'idOf'>
  /** Called when a stream of a document once had `blocks` blocks, and the store no longer has all of them. */
  onLost(name: string, stream: StreamKey, blocks: number): void
  onError(error: unknown): void
}

/** This node's own stream of one document. */
export interface LocalStream {
  /** The number of former streams. */
  readonly times: number
  /** The stream that is written now; null before it was opened. */
  readonly stream: StreamKey | null
  /** The number of blocks. The stored number is from the first opening; the ledger has the current one. */
  readonly blocks: number
  /** Former streams with blocks that the mesh does not know yet: still announced and read. Absent: none. */
  readonly unheard?: readonly StreamKey[]
}

/** Own streams as stored, by name of the document. */
export type StoredLocalStreams = Readonly<Record<string, LocalStream>>

const NONE: LocalStream = { times: 0, stream: null, blocks: 0 }

/** Ledger key of the length of an own stream. */
const lengthKey = (stream: StreamKey): string => `document-length/${stream}`

/** The length of an own stream after its last write, from the ledger. @throws NodeError STORE_DAMAGED */
export async function writtenLength(ledger: Pick<Ledger, 'get'>, { stream, blocks }: LocalStream): Promise<number> {
  const stored = stream === null ? null : await ledger.get(lengthKey(stream))
  return Math.max(blocks, stored === null ? 0 : Number(fromUtf8(stored)))
}

/**
 * The stream of each document that this node writes, and its length, stored outside of the document store. A stream
 * that became shorter, or has an unknown former length, is left for a new one: further writes would sign two different
 * blocks at one place. With a new ledger, the length at first opening is known, and the mark ({@link DocumentMarks}),
 * which may be 2 s old.
 */
export class LocalStreams {
  readonly #deps: LocalStreamsDeps
  /** By name of the document. */
  readonly #own = new Map<string, LocalStream>()
  /** Why the log takes no stream of this node in a document, by name of the document. */
  readonly #refusals = new Map<string, string>()
  /** The same by stream. */
  readonly #names = new Map<StreamKey, string>()
  /** Streams that are being brought into the log, or wait for the next attempt. */
  readonly #announced = new Set<StreamKey>()
  #isQuiet = false
  #stored: Promise<void> = Promise.resolve()

  constructor(deps: LocalStreamsDeps) {
    this.#deps = deps
  }

  /** Reads the stored streams. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredLocalStreams>(OWN_STREAMS)
    for (const [name, own] of Object.entries(stored ?? {})) {
      this.#put(name, { ...own, blocks: await writtenLength(this.#deps.ledger, own) })
    }
  }

  /**
   * Announces the streams that the mesh does not know: this node was killed before, or the log reordered the entries.
   */
  announceAll(): void {
    for (const [name, { stream, blocks }] of this.#own) {
      if (stream !== null && blocks > 0) this.announce(name, stream)
      for (const left of this.unheardOf(name)) this.announce(name, left)
    }
  }

  /** Former streams of a document that the mesh does not know yet. */
  unheardOf(name: string): readonly StreamKey[] {
    return (this.#of(name).unheard ?? []).filter((stream) => !this.#isKnown(name, stream))
  }

  /** Stops announcing. */
  quieten(): void {
    this.#isQuiet = true
  }

  /** True when this node may write a document that the log names. */
  mayWrite(name: string): boolean {
    const { log, self } = this.#deps
    const record = log.view().documents.get(name)
    return record !== undefined && memberAccess(log.view(), record, self).mayWrite
  }

  /** The stream to write: the former one when it is whole, else a new one. */
  async open(name: string): Promise<StreamKey> {
    const id = this.#deps.known.idOf(name)
    for (;;) {
      const known = this.#of(name)
      const { stream, blocks, isWhole } = await this.#deps.documents.own(`${id}/${known.times}`)
      const expected = known.stream === stream ? known.blocks : 0
      const isKnown = known.stream === stream || blocks === 0
      if (this.#of(name).times !== known.times) continue
      if (isWhole && isKnown && blocks >= expected) {
        // The home is a copy, or its store was begun anew: blocks of the former stream that are not here are lost.
        if (known.stream !== stream) {
          if (known.stream !== null && known.blocks > 0) this.#deps.onLost(name, known.stream, known.blocks)
          await this.#set(name, { ...this.#behind(name, known.stream, known.blocks), stream, blocks })
        } else this.#own.set(name, { ...known, blocks })
        return stream
      }
      if (known.stream === stream && blocks < expected) this.#deps.onLost(name, stream, expected)
      this.#own.set(name, this.#behind(name, stream, blocks))
      await this.leave(name)
    }
  }

  /** The name of the document for which this node writes the stream now; null for any other stream. */
  nameOf(stream: StreamKey): string | null {
    return this.#names.get(stream) ?? null
  }

  /** Names of the documents that this node wrote to. */
  names(): string[] {
    return [...this.#own].filter(([, { blocks }]) => blocks > 0).map(([name]) => name)
  }

  /** The stream of a document that is written now, or was before this start; null for none. */
  streamOf(name: string): StreamKey | null {
    return this.#of(name).stream
  }

  /** The stream of {@link streamOf}, and the former ones that the mesh does not know yet. */
  streamsOf(name: string): readonly StreamKey[] {
    const stream = this.streamOf(name)
    return [...(stream === null ? [] : [stream]), ...this.unheardOf(name)]
  }

  /** True when this node wrote blocks into the document that the mesh does not know yet. */
  hasUnheard(name: string): boolean {
    const { stream, blocks } = this.#of(name)
    return (stream !== null && blocks > 0 && !this.#isKnown(name, stream)) || this.unheardOf(name).length > 0
  }

  /** The number of blocks of the stream; 0 for a former one. */
  blocksOf(stream: StreamKey): number {
    const name = this.nameOf(stream)
    return name === null ? 0 : this.#of(name).blocks
  }

  /**
   * Appends blocks to the stream of a document. When this resolves the ledger has the new length, as durable as the
   * blocks. A ledger that fails to store it does not reject: the blocks are in the stream. @throws NodeError CONFLICT
   * for a stream that was left; as the store
   */
  async append(name: string, stream: StreamKey, blocks: readonly Uint8Array[]): Promise<void> {
    if (this.nameOf(stream) !== name) throw passingConflict('this node goes on with another stream of the document')
    const sealed = blocks.map((block) => this.#seal(name, block))
    const length = await this.#deps.documents.append(stream, sealed)
    if (this.nameOf(stream) !== name) return
    this.#own.set(name, { ...this.#of(name), blocks: length })
    await this.#record(stream, String(length))
  }

  /**
   * Leaves the stream: later blocks go into another one. From the call until the next opening this node has no stream
   * of the document.
   */
  async leave(name: string): Promise<void> {
    const { stream } = this.#of(name)
    await this.#set(name, leftStream(this.#of(name)))
    if (stream !== null) await this.#record(stream, null)
  }

  /** Leaves the stream of a document whose blocks are removed here. */
  async forget(name: string): Promise<void> {
    const { unheard: _, ...own } = this.#of(name)
    this.#own.set(name, own)
    await this.leave(name)
  }

  /** Adds a former stream whose blocks count, though the mesh does not know it yet. */
  #behind(name: string, stream: StreamKey | null, blocks: number): LocalStream {
    const own = this.#of(name)
    if (stream === null || blocks === 0 || this.#isKnown(name, stream)) return own
    const others = this.unheardOf(name).filter((one) => one !== stream)
    return { ...own, unheard: [...others, stream].slice(-MAX_STREAMS_OF_MEMBER) }
  }

  /**
   * @throws NodeError CONFLICT when the document takes no further stream, and OVERLOADED when the log takes none of
   * this node: no other member would ever see writes to this one
   */
  mustHavePlace(name: string, own: StreamKey): void {
    const record = this.#deps.log.view().documents.get(name)
    if (record === undefined || this.#isKnown(name, own)) return
    const refusal = this.#refusalOf(name)
    if (refusal !== null) throw refused(name, refusal)
    if (hasPlaceFor(record, this.#deps.self)) return
    throw new NodeError(
      'CONFLICT',
      'the mesh takes no further stream of this node in the document: go on in a new document',
      {
        next: [`a2a-node doc export ${shellWord(name)}`, 'a2a-node doc set <new document>']
      }
    )
  }

  /** Submits a stream to the log until the log names it. Other members see none of it before. */
  announce(name: string, own: StreamKey): void {
    const { clock, log, telemetry } = this.#deps
    const { mesh, removedDocuments } = log.view()
    if (this.#isKnown(name, own) || mesh === null || this.#announced.has(own) || removedDocuments.has(name)) return
    this.#announced.add(own)
    const again = (error: unknown): void => {
      if (this.#isQuiet) return
      const reason = messageOf(error)
      if (asNodeError(error).code === 'OVERLOADED') this.#refusals.set(name, reason)
      telemetry.log('warn', 'a stream of a document is not in the log yet', { document: shown(name), reason })
      clock.after(LOG_TIMEOUT_MS, () => {
        this.#announced.delete(own)
        if (!this.#isQuiet) this.announce(name, own)
      })
    }
    // The log may reorder the entries later, so that this one does not count.
    const done = (): void => {
      this.#announced.delete(own)
      this.#refusals.delete(name)
    }
    log.submit({ kind: 'document-stream', mesh: mesh.id, name, coreKey: own }, LOG_TIMEOUT_MS).then(done).catch(again)
  }

  /** One for each document whose changes at this node reach no other member. */
  problems(): Problem[] {
    return [...this.#refusals.keys()].flatMap((name) => {
      const refusal = this.#refusalOf(name)
      if (refusal === null) return []
      const { code, message, next } = refused(name, refusal)
      return [{ code, message, next: next[0] ?? '' }]
    })
  }

  /** Why the log takes no stream of this node in a document; null also once no block of this node waits for that. */
  #refusalOf(name: string): string | null {
    if (!this.hasUnheard(name) || !this.#deps.log.view().documents.has(name)) this.#refusals.delete(name)
    return this.#refusals.get(name) ?? null
  }

  #seal(name: string, block: Uint8Array): Uint8Array {
    const { clock, ids, known, membership, self } = this.#deps
    return sealBlock(block, {
      document: known.idOf(name),
      self,
      ids,
      tier: membership.certificate().body.maxTier,
      at: clock.now()
    })
  }

  #isKnown(name: string, own: StreamKey): boolean {
    return this.#deps.log.view().documents.get(name)?.streams.some(isStreamOf(this.#deps.self, own)) === true
  }

  #of(name: string): LocalStream {
    return this.#own.get(name) ?? NONE
  }

  #set(name: string, own: LocalStream): Promise<void> {
    this.#put(name, own)
    return this.#store()
  }

  #put(name: string, own: LocalStream): void {
    const before = this.#of(name).stream
    if (before !== null) this.#names.delete(before)
    this.#own.set(name, own)
    if (own.stream !== null) this.#names.set(own.stream, name)
  }

  async #record(stream: StreamKey, length: string | null): Promise<void> {
    await this.#deps.ledger.commit([{ key: lengthKey(stream), value: length }], 'process').catch(this.#deps.onError)
  }

  #store(): Promise<void> {
    const done = this.#stored.then(() => this.#deps.store.write(OWN_STREAMS, Object.fromEntries(this.#own)))
    this.#stored = done.catch(() => {})
    return done
  }
}

/** The stored form of an own stream that was left for another one. */
export function leftStream({ times, unheard }: LocalStream): LocalStream {
  return { ...NONE, times: times + 1, ...(unheard === undefined ? {} : { unheard }) }
}

/** The envelope fields beside the block. */
interface BlockEnvelope {
  /** The document's id. */
  readonly document: string
  readonly self: NodeId
  readonly tier: Tier
  readonly ids: IdSource
  /** Unix milliseconds. */
  readonly at: number
}

/** Packs a block of this node's stream into the `stream-data` envelope that its core holds. */
export function sealBlock(block: Uint8Array, { document, self, tier, ids, at }: BlockEnvelope): Uint8Array {
  return encodeEnvelope({
    id: ids.next('msg'),
    schemaVersion: SCHEMA_VERSION,
    sender: addressText({ agentId: OPERATOR, nodeId: self }),
    recipient: '*',
    correlationId: document,
    type: 'stream-data',
    timestamp: at,
    payload: block,
    metadata: { tier }
  })
}

/**
 * The block of an envelope in a document's stream; null when the bytes are no such envelope. The core, not the
 * envelope, says which member the stream belongs to. The result depends on the bytes alone, so that it is the same at
 * every node. Never throws.
 */
export function openBlock(bytes: Uint8Array, document: string): Uint8Array | null {
  return openTimedBlock(bytes, document)?.block ?? null
}

/** As {@link openBlock}, with the time of the author's clock in Unix milliseconds. */
export function openTimedBlock(
  bytes: Uint8Array,
  document: string
): { readonly block: Uint8Array; readonly at: number } | null {
  const decoded = decodeEnvelope(bytes)
  if (!decoded.ok || decoded.header.type !== 'stream-data' || decoded.header.correlationId !== document) return null
  const payload = decoded.payload()
  if (!payload.ok || !(payload.value instanceof Uint8Array)) return null
  return { block: payload.value, at: decoded.header.timestamp }
}

function refused(name: string, refusal: string): NodeError {
  return new NodeError(
    'OVERLOADED',
    `changes of the document ${shown(name)} at this node reach no other member: ${refusal}`,
    {
      retryable: false,
      next: [`a2a-node doc export ${shellWord(name)}`, 'a2a-node doc ls']
    }
  )
}
