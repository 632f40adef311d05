import type { Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import { shellWord, shown } from '../../kit/text.js'
import { memberAccess, countedStreams } from './access.js'
import type { NodeDeps } from '../dependencies.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Documents } from './documents.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import type { ActiveSnapshots } from './snapshots/active.js'

/** How long no block of a document arrives before the transfer counts as still, in milliseconds. */
const HERE_MS = 3000
/** How many {@link HERE_MS} a call waits for a member to announce its blocks, and for a transfer that goes on. */
const MAX_LOOKS = 3

/** Dependencies of {@link mustBeHere}. */
export interface InitialSyncDeps {
  readonly deps: Pick<NodeDeps, 'clock' | 'documents' | 'log'>
  readonly self: NodeId
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly documents: Pick<Documents, 'arrived' | 'marks' | 'onChange' | 'snapshotBytes'>
}

/**
 * Waits until a document is complete here. A partial document must not be taken for the whole before it was complete
 * once: a member that is offline may hold blocks. Blocks that no member holds while all are online are gone: they were
 * removed before any member fetched them. `timeoutMs`: for a transfer that goes on; without it three looks of 3,000 ms.
 * @throws NodeError PEER_OFFLINE, TIMEOUT; STORE_DAMAGED for a document with blocks lost on this disk that no member
 * gives
 */
export async function mustBeHere(node: InitialSyncDeps, known: DocumentRecord, timeoutMs?: number): Promise<void> {
  const find = (): DocumentRecord => recordOf(node, known)
  let limit: Timer | null = null
  await new Promise<void>((resolve, reject) => {
    const { clock } = node.deps
    let looks = 0
    const end = (seen: Seen): void => {
      arrival.stop()
      reject(notHere(node, find(), { seen, timeoutMs: timeoutMs ?? MAX_LOOKS * HERE_MS }))
    }
    const onLook = (seen: Seen): void => {
      looks++
      if (seen !== 'silent' && (seen === 'still' || (timeoutMs === undefined && looks >= MAX_LOOKS))) end(seen)
    }
    const arrival = awaitHere(node, find, { onOver: resolve, onLook })
    if (arrival.isOver) return resolve()
    // Without any member online nothing is transferred.
    const endNow = (): void => end(onlineOf(node, find()).length > 0 ? 'moving' : 'still')
    limit = timeoutMs === undefined ? null : clock.after(timeoutMs, endNow)
  }).finally(() => limit !== null && node.deps.clock.clear(limit))
}

/** {@link mustBeHere} without a time limit. */
export interface InitialSync {
  /** True once the document is here, or its missing blocks are gone for good. Stays true. */
  readonly isOver: boolean
  stop: Unsubscribe
}

/** State of a missing document: blocks arrive, some member has not announced its blocks, or nothing more arrives. */
type Seen = 'moving' | 'silent' | 'still'

interface WaitingReader {
  /** Called once {@link mustBeHere} would not throw; never at once. */
  onOver(): void
  /** Called after each look before that. */
  onLook?(seen: Seen): void
}

/** Waits until {@link mustBeHere} would not throw. `find` returns the current record of the document. */
export function awaitHere(
  node: InitialSyncDeps,
  find: () => DocumentRecord,
  { onOver, onLook = () => {} }: WaitingReader
): InitialSync {
  const { clock } = node.deps
  if (isHere(node, find())) return { isOver: true, stop: () => {} }
  let last = progressOf(node, find())
  let unmoved = 0
  const look = (): void => {
    const record = find()
    const now = progressOf(node, record)
    // A member that connected a moment ago may be about to announce its blocks.
    unmoved = now === last ? unmoved + 1 : 0
    const seen = unmoved === 0 ? 'moving' : unmoved < MAX_LOOKS && mayBeAnnounced(node, record) ? 'silent' : 'still'
    last = now
    if (isHere(node, record) || (seen === 'still' && isGoodEnough(node, record))) return over()
    timer = clock.after(HERE_MS, look)
    onLook(seen)
  }
  let timer = clock.after(HERE_MS, look)
  const stopChanges = node.documents.onChange(() => isHere(node, find()) && over())
  const arrival = {
    isOver: false,
    stop: (): void => {
      stopChanges()
      clock.clear(timer)
    }
  }
  const over = (): void => {
    arrival.isOver = true
    arrival.stop()
    noted(node, find())
    onOver()
  }
  return arrival
}

/** The current record of a document in the log. */
export function recordOf(node: InitialSyncDeps, known: DocumentRecord): DocumentRecord {
  return node.deps.log.view().documents.get(known.name) ?? known
}

/** True when the document is complete as far as any online member knows, or was complete once. */
function isHere(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const { arrived, marks } = node.documents
  // A document that lost blocks on this disk is incomplete, whichever members are offline.
  if (marks.lost(record.name) > 0) return false
  if (othersOf(node, record).length === 0) return true
  if (arrived.isMissing(record)) return false
  if (arrived.has(record.name)) return true
  const lacking = arrived.lacking(record)
  const isMore = arrived.streams(record).some(([stream]) => node.deps.documents.extent(stream).isMore)
  const isGone =
    !isMore &&
    areAllThere(node, record) &&
    haveAllAnnounced(node, record) &&
    lacking.every((stream) => isUnknown(node, stream))
  const isWhole = isGone || (lacking.length === 0 && hasAnyAnnounced(node, record))
  if (isWhole) arrived.note(record.name)
  return isWhole
}

/** Nothing more arrives: is the local part complete, as far as the online members know? */
function isGoodEnough(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const { arrived, marks } = node.documents
  if (marks.lost(record.name) > 0) return false
  if (areAllThere(node, record)) return true
  if (arrived.isMissing(record)) return false
  const lacking = arrived.lacking(record)
  const isAsked = onlineOf(node, record).length > 0 && haveAllAnnounced(node, record)
  return lacking.length === 0 || (isAsked && lacking.every((stream) => isUnknown(node, stream)))
}

/** Records that the document is complete here: it may be read and edited from now on, even with members offline. */
function noted({ documents: { arrived } }: InitialSyncDeps, record: DocumentRecord): void {
  if (!arrived.isMissing(record)) arrived.note(record.name)
}

/** True when a block is missing and some online member has not announced whether it has it. */
function mayBeAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  return node.documents.arrived.lacking(record).length > 0 && !haveAllAnnounced(node, record)
}

/** True when no online member announced a block of a stream. */
function isUnknown(node: InitialSyncDeps, stream: string): boolean {
  const { blocks, isMore } = node.deps.documents.extent(stream)
  return blocks === 0 && !isMore
}

/** True when each online member announced its length of each stream. */
function haveAllAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const online = onlineOf(node, record)
  return node.documents.arrived.streams(record).every(([stream]) => {
    const { announced } = node.deps.documents.extent(stream)
    return online.every((one) => announced.has(one))
  })
}

/**
 * True when some member announced each stream, and none has more blocks. With no member online, no announcement is
 * needed.
 */
function hasAnyAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const isAlone = onlineOf(node, record).length === 0
  return node.documents.arrived.streams(record).every(([stream]) => {
    const { announced, isMore } = node.deps.documents.extent(stream)
    return !isMore && (isAlone || announced.size > 0)
  })
}

/** A text that changes as long as blocks arrive. */
function progressOf(node: InitialSyncDeps, record: DocumentRecord): string {
  const { documents } = node.deps
  const cores = node.documents.arrived.streams(record).map(([stream]) => stream)
  if (record.snapshot !== undefined) cores.push(record.snapshot.coreKey)
  const moved = cores.map((core) => `${documents.size(core).blocks}/${documents.extent(core).fetched}`)
  return [node.documents.snapshotBytes(record.name), ...onlineOf(node, record), ...moved].join(' ')
}

function areAllThere(node: InitialSyncDeps, record: DocumentRecord): boolean {
  return othersOf(node, record).every((one) => node.peers.isOnline(one))
}

function onlineOf(node: InitialSyncDeps, record: DocumentRecord): NodeId[] {
  return othersOf(node, record).filter((one) => node.peers.isOnline(one))
}

function othersOf(node: InitialSyncDeps, record: DocumentRecord): NodeId[] {
  const view = node.deps.log.view()
  return [...view.members.keys()].filter((one) => one !== node.self && memberAccess(view, record, one).maySee)
}

function notHere(
  node: InitialSyncDeps,
  record: DocumentRecord,
  { seen, timeoutMs }: { seen: Seen; timeoutMs: number }
): NodeError {
  const name = shown(record.name)
  const next = [`a2a-node doc show ${shellWord(record.name)}`, 'a2a-node peers']
  if (seen === 'moving')
    return new NodeError('TIMEOUT', `the document ${name} is still being transferred to this node: try again`, {
      data: { timeoutMs },
      next
    })
  const fault = node.deps.documents.fault ?? node.documents.marks.fault(record.name)
  if (fault !== null) return fault
  const part = node.documents.arrived.isMissing(record) ? 'nothing' : 'only a part'
  return new NodeError(
    'PEER_OFFLINE',
    `this node has ${part} of the document ${name}, and every node that has it is offline`,
    { next }
  )
}

/** Name of the stored list of complete documents. */
export const DOCUMENTS_ARRIVED = 'documents-arrived'

/** The stored form: names of documents. */
export interface StoredArrivals {
  readonly names: readonly string[]
}

/** Dependencies of {@link ArrivedDocuments}. */
interface ArrivedDocumentsDeps {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'size' | 'extent'>
  readonly used: Pick<ActiveSnapshots, 'of' | 'isBegun'>
  /** True when this node wrote blocks into a document that the mesh does not know yet. */
  hasUnheard(name: string): boolean
  /** True when no block of a stream counts, as it has two branches. */
  isForked(stream: StreamKey): boolean
  onError(error: unknown): void
}

/**
 * The documents that were complete here once. From then on this node reads and edits its local part, even with members
 * offline. Before, a partial document must not be taken for the whole.
 */
export class ArrivedDocuments {
  readonly #deps: ArrivedDocumentsDeps
  readonly #names = new Set<string>()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ArrivedDocumentsDeps) {
    this.#deps = deps
  }

  /** Reads the stored names. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredArrivals>(DOCUMENTS_ARRIVED)
    for (const name of stored?.names ?? []) this.#names.add(name)
  }

  /** Resolves once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** True when the document was complete here once. */
  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Records that a document is complete here. */
  note(name: string): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    this.#store()
  }

  /** Forgets a document that is no longer kept here. */
  forget(name: string): void {
    if (this.#names.delete(name)) this.#store()
  }

  /** True when a document has blocks of members and none of them is here. */
  isMissing(record: DocumentRecord): boolean {
    const { documents, used, hasUnheard } = this.#deps
    if (used.of(record.name) !== null) return !used.isBegun(record.name)
    // Blocks behind a snapshot that is not here cannot be used before it arrives.
    const stored = Object.entries(record.snapshot?.lengths ?? {}).filter(([, length]) => length > 0)
    if (stored.some(([stream]) => documents.size(stream).blocks === 0)) return true
    const sizes = this.#counted(record).map(([stream]) => documents.size(stream))
    if (hasUnheard(record.name)) return false
    // Streams that begin behind a snapshot that is not here do not count.
    return sizes.length > 0 && sizes.every(({ blocks, from }) => blocks === 0 || from > 0)
  }

  /** The streams with missing blocks. The log names a stream once it has a block, so none is empty. */
  lacking(record: DocumentRecord): StreamKey[] {
    const { documents } = this.#deps
    const isLacking = ([stream, counted]: readonly [StreamKey, number]): boolean => {
      const { blocks, from } = documents.size(stream)
      const known = documents.extent(stream).blocks
      return Math.max(blocks, from) < Math.min(counted, Math.max(known, 1))
    }
    return this.streams(record)
      .filter(isLacking)
      .map(([stream]) => stream)
  }

  /** The streams with counted blocks, and the number of these. */
  streams(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return this.#counted(record).filter(([stream]) => !this.#deps.isForked(stream))
  }

  #counted(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return [...countedStreams(this.#deps.log.view(), record)].filter(([, blocks]) => blocks > 0)
  }

  #store(): void {
    const { store, log, onError } = this.#deps
    this.#writing = this.#writing
      .then(() =>
        store.write(DOCUMENTS_ARRIVED, { names: [...this.#names].filter((name) => log.view().documents.has(name)) })
      )
      .catch(onError)
  }
}
