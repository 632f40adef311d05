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

/** How long nothing more of a document comes before it is taken that nothing does, in milliseconds. */
const HERE_MS = 3000
/** So many times as long is waited for who is slow to say what it has; and by a call for what comes and comes. */
const MAX_LOOKS = 3

/** What waiting for a document needs. */
export interface InitialSyncDeps {
  readonly deps: Pick<NodeDeps, 'clock' | 'documents' | 'log'>
  readonly self: NodeId
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly documents: Pick<Documents, 'arrived' | 'marks' | 'onChange' | 'snapshotBytes'>
}

/**
 * What others wrote comes in a moment, or somebody is away who may have it: before it was whole here once, a part of a document
 * must not be taken for all of it. What none of all others has, who are there, is gone: it was removed before anybody got it.
 * @throws NodeError PEER_OFFLINE, TIMEOUT; STORE_DAMAGED for one of which this disk lost a part that nobody gives
 */
export async function mustBeHere(node: InitialSyncDeps, known: DocumentRecord): Promise<void> {
  const find = (): DocumentRecord => recordOf(node, known)
  await new Promise<void>((resolve, reject) => {
    let looks = 0
    const onLook = (seen: Seen): void => {
      looks++
      if (seen === 'silent' || (seen === 'moving' && looks < MAX_LOOKS)) return
      arrival.stop()
      reject(notHere(node, find(), seen))
    }
    const arrival = awaitHere(node, find, { onOver: resolve, onLook })
    if (arrival.isOver) resolve()
  })
}

/** The same for who waits for as long as it takes. */
export interface InitialSync {
  /** Is the document here, or what is missing gone for good? Stays true. */
  readonly isOver: boolean
  stop: Unsubscribe
}

/** What was seen of a document that is not here: it comes, not everybody said what it has, or nothing more comes as things are. */
type Seen = 'moving' | 'silent' | 'still'

interface WaitingReader {
  /** Once {@link mustBeHere} would not throw; never at once. */
  onOver(): void
  /** Again and again before. */
  onLook?(seen: Seen): void
}

/** Waits until {@link mustBeHere} would not throw. `find` gives the document as it is known now. */
export function awaitHere(node: InitialSyncDeps, find: () => DocumentRecord, { onOver, onLook = () => {} }: WaitingReader): InitialSync {
  const { clock } = node.deps
  if (isHere(node, find())) return { isOver: true, stop: () => {} }
  let last = progressOf(node, find())
  let unmoved = 0
  const look = (): void => {
    const record = find()
    const now = progressOf(node, record)
    // Who came a moment ago may be about to give it.
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

/** As the log has it now. */
export function recordOf(node: InitialSyncDeps, known: DocumentRecord): DocumentRecord {
  return node.deps.log.view().documents.get(known.name) ?? known
}

/** Is it whole, as far as anybody who is there knows, or was it so once? */
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
    !isMore && areAllThere(node, record) && haveAllAnnounced(node, record) && lacking.every((stream) => isUnknown(node, stream))
  const isWhole = isGone || (lacking.length === 0 && hasAnyAnnounced(node, record))
  if (isWhole) arrived.note(record.name)
  return isWhole
}

/** Nothing more comes: is what is here all there is, as far as anybody can say who is there? */
function isGoodEnough(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const { arrived, marks } = node.documents
  if (marks.lost(record.name) > 0) return false
  if (areAllThere(node, record)) return true
  if (arrived.isMissing(record)) return false
  const lacking = arrived.lacking(record)
  const isAsked = onlineOf(node, record).length > 0 && haveAllAnnounced(node, record)
  return lacking.length === 0 || (isAsked && lacking.every((stream) => isUnknown(node, stream)))
}

/** From now on what is here is read and edited, whoever is away. */
function noted({ documents: { arrived } }: InitialSyncDeps, record: DocumentRecord): void {
  if (!arrived.isMissing(record)) arrived.note(record.name)
}

/** Something is missing, and somebody who is there did not say yet whether it has it. */
function mayBeAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  return node.documents.arrived.lacking(record).length > 0 && !haveAllAnnounced(node, record)
}

/** Did nobody of those who are there ever hear of a block of a stream? */
function isUnknown(node: InitialSyncDeps, stream: string): boolean {
  const { blocks, isMore } = node.deps.documents.extent(stream)
  return blocks === 0 && !isMore
}

/** Did each member that is there say how much it has of each stream? */
function haveAllAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const online = onlineOf(node, record)
  return node.documents.arrived.streams(record).every(([stream]) => {
    const { announced } = node.deps.documents.extent(stream)
    return online.every((one) => announced.has(one))
  })
}

/** Did one of them say it of each stream, and none that it has more? Where nobody is there, nobody has to. */
function hasAnyAnnounced(node: InitialSyncDeps, record: DocumentRecord): boolean {
  const isAlone = onlineOf(node, record).length === 0
  return node.documents.arrived.streams(record).every(([stream]) => {
    const { announced, isMore } = node.deps.documents.extent(stream)
    return !isMore && (isAlone || announced.size > 0)
  })
}

/** Changes as long as something comes. */
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

function notHere(node: InitialSyncDeps, record: DocumentRecord, seen: Seen): NodeError {
  const name = shown(record.name)
  const next = [`a2a-node doc show ${shellWord(record.name)}`, 'a2a-node peers']
  if (seen === 'moving') return new NodeError('TIMEOUT', `the document ${name} is still being transferred to this node: try again`, { next })
  const fault = node.deps.documents.fault ?? node.documents.marks.fault(record.name)
  if (fault !== null) return fault
  const part = node.documents.arrived.isMissing(record) ? 'nothing' : 'only a part'
  return new NodeError('PEER_OFFLINE', `this node has ${part} of the document ${name}, and every node that has it is offline`, { next })
}

/** Name of the stored document of what arrived. */
export const DOCUMENTS_ARRIVED = 'documents-arrived'

/** It as stored: names of documents. */
export interface StoredArrivals {
  readonly names: readonly string[]
}

/** What {@link ArrivedDocuments} needs. */
interface ArrivedDocumentsDeps {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly documents: Pick<DocumentStreams, 'size' | 'extent'>
  readonly used: Pick<ActiveSnapshots, 'of' | 'isBegun'>
  /** Has this node written into a document what the mesh has not heard of yet? */
  hasUnheard(name: string): boolean
  /** Does nothing of a stream count, as it has two branches? */
  isForked(stream: StreamKey): boolean
  onError(error: unknown): void
}

/**
 * Which documents were whole here once. From then on this node reads and edits what it has of them, whoever is away; before, a part
 * of one must not be taken for all of it.
 */
export class ArrivedDocuments {
  readonly #deps: ArrivedDocumentsDeps
  readonly #names = new Set<string>()
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: ArrivedDocumentsDeps) {
    this.#deps = deps
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    const stored = await this.#deps.store.read<StoredArrivals>(DOCUMENTS_ARRIVED)
    for (const name of stored?.names ?? []) this.#names.add(name)
  }

  /** Once all is stored. */
  async close(): Promise<void> {
    await this.#writing
  }

  /** Was it whole here once? */
  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** It is whole here. */
  note(name: string): void {
    if (this.#names.has(name)) return
    this.#names.add(name)
    this.#store()
  }

  /** It is kept here no longer. */
  forget(name: string): void {
    if (this.#names.delete(name)) this.#store()
  }

  /** Is nothing here of a document into which somebody wrote? */
  isMissing(record: DocumentRecord): boolean {
    const { documents, used, hasUnheard } = this.#deps
    if (used.of(record.name) !== null) return !used.isBegun(record.name)
    // What others wrote behind a snapshot that is not here waits for it.
    const stored = Object.entries(record.snapshot?.lengths ?? {}).filter(([, length]) => length > 0)
    if (stored.some(([stream]) => documents.size(stream).blocks === 0)) return true
    const sizes = this.#counted(record).map(([stream]) => documents.size(stream))
    if (hasUnheard(record.name)) return false
    // Those that begin behind a snapshot that is not here say nothing.
    return sizes.length > 0 && sizes.every(({ blocks, from }) => blocks === 0 || from > 0)
  }

  /** Its streams of which something is not here. The log names a stream once it has a block, so none is empty. */
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

  /** Its streams of which something counts, and how many blocks. */
  streams(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return this.#counted(record).filter(([stream]) => !this.#deps.isForked(stream))
  }

  #counted(record: DocumentRecord): (readonly [StreamKey, number])[] {
    return [...countedStreams(this.#deps.log.view(), record)].filter(([, blocks]) => blocks > 0)
  }

  #store(): void {
    const { store, log, onError } = this.#deps
    this.#writing = this.#writing
      .then(() => store.write(DOCUMENTS_ARRIVED, { names: [...this.#names].filter((name) => log.view().documents.has(name)) }))
      .catch(onError)
  }
}
