import fs from 'node:fs/promises'
import { asNodeError, NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'
import type { HomePaths } from '../config/paths.js'
import type { NodeStore } from '../ports/storage.js'
import { closeStore } from '../adapters/mesh/cores/core-store.js'
import { readStreams, type StreamFacts } from '../adapters/mesh/documents/document-check.js'
import { salvageStreams } from '../adapters/mesh/documents/document-copy.js'
import { openDurableLedger } from '../adapters/storage/ledger/durable-ledger.js'
import { damageError, storeError } from '../adapters/storage/home/store-errors.js'
import { DOCUMENTS_ARRIVED, type StoredArrivals } from '../node/documents/initial-sync.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import { leftStream, OWN_STREAMS, type StoredLocalStreams, writtenLength } from '../node/documents/local-streams.js'
import { DOCUMENT_LOSSES, DOCUMENT_MARKS, type StoredLosses, type StoredMarks } from '../node/documents/marks.js'
import { type Aside, isThere, type Repair } from './doctor-documents.js'
import { ledgerMark, openDocumentStore } from '../compose/open-home.js'

/** Data that is lost with a store of documents. */
const LOST = 'changes of shared documents that no other member has; the rest is fetched from members'

/** State of the shared documents of a home. */
export interface StreamState {
  /** Blocks that were read. */
  readonly blocks: number
  /** Blocks that were here once and are not, by name of the document. */
  readonly lost: ReadonlyMap<string, number>
}

/**
 * Reads all streams of shared documents, and compares them with their recorded lengths.
 * @throws NodeError STORE_DAMAGED for a store that cannot be read, or is gone
 */
export async function readDocuments(home: HomePaths, documents: NodeStore): Promise<StreamState> {
  const marks = await marksOf(home, documents)
  const { blocks, lengths } = await readStore(home, marks.length > 0)
  const lost = new Map<string, number>()
  for (const { name, stream, marked } of marks) {
    const missing = marked - (lengths.get(stream) ?? 0)
    if (missing > 0) lost.set(name, (lost.get(name) ?? 0) + missing)
  }
  return { blocks, lost }
}

interface Mark {
  readonly name: string
  readonly stream: StreamKey
  readonly marked: number
}

/**
 * The mark of an own stream is the higher one: it is stored sooner, and not only once its blocks survive a loss of
 * power.
 */
async function marksOf(home: HomePaths, documents: NodeStore): Promise<Mark[]> {
  const marks = Object.entries((await documents.read<StoredMarks>(DOCUMENT_MARKS)) ?? {})
  const found = new Map<string, Mark>()
  const note = (name: string, stream: StreamKey, marked: number): void => {
    if (marked > (found.get(`${name} ${stream}`)?.marked ?? 0)) found.set(`${name} ${stream}`, { name, stream, marked })
  }
  for (const [name, streams] of marks)
    for (const [stream, marked] of Object.entries(streams)) note(name, stream, marked)
  for (const { name, stream, marked } of await ownMarks(home, documents)) note(name, stream, marked)
  return [...found.values()]
}

/** The lengths of own streams, as the ledger has them. Of a ledger that is damaged the doctor tells elsewhere. */
async function ownMarks(home: HomePaths, documents: NodeStore): Promise<Mark[]> {
  const own = Object.entries((await documents.read<StoredLocalStreams>(OWN_STREAMS)) ?? {})
  if (own.length === 0) return []
  const ledger = await openDurableLedger({ dir: home.ledger, durability: 'power', mark: ledgerMark(documents) }).catch(
    () => null
  )
  try {
    const marks: Mark[] = []
    for (const [name, one] of own) {
      const marked = ledger === null ? one.blocks : await writtenLength(ledger, one).catch(() => one.blocks)
      if (one.stream !== null) marks.push({ name, stream: one.stream, marked })
    }
    return marks
  } finally {
    await ledger?.close()
  }
}

/** The lost data, for people; null for none. */
export function lostText({ lost }: StreamState): string | null {
  const [first] = lost
  if (first === undefined) return null
  const blocks = [...lost.values()].reduce((all, one) => all + one, 0)
  const more = lost.size === 1 ? '' : ` and ${lost.size - 1} more`
  return `${blocks} ${blocks === 1 ? 'block' : 'blocks'} of the document ${shown(first[0])}${more} that were here are gone`
}

/**
 * Accepts lost data of shared documents, so that a home can run again. An unreadable store is moved aside. For
 * documents that lost blocks, the rest counts once the present members have sent theirs.
 * @throws NodeError DISK_FULL, NO_PERMISSION
 */
export async function repairStreams(home: HomePaths, documents: NodeStore, aside: Aside): Promise<Repair[]> {
  const found = await readDocuments(home, documents).catch((error: unknown) => asNodeError(error))
  if (found instanceof NodeError) {
    if (found.code !== 'STORE_DAMAGED') throw found
    if (await salvage(home, aside)) return [await acceptSalvaged(home, documents, found)]
    await aside(home.documents)
    for (const name of [DOCUMENT_MARKS, DOCUMENT_LOSSES, DOCUMENTS_ARRIVED, OWN_STREAMS, 'document-snapshots'])
      await documents.remove(name)
    return [
      { name: 'streams', text: `${found.message}; it is moved aside and fetched anew from other members`, lost: LOST }
    ]
  }
  const text = lostText(found)
  if (text === null) return []
  await accept(documents, found)
  return [{ name: 'streams', text: `${text}; the next start asks other members for them`, lost: LOST }]
}

/**
 * Takes over what can be read of a damaged store into a new one, which takes its place. False: the store cannot be
 * opened, or does not say what it has.
 * @throws NodeError DISK_FULL, NO_PERMISSION
 */
async function salvage(home: HomePaths, aside: Aside): Promise<boolean> {
  if (!(await isThere(home.documents))) return false
  const copy = `${home.documents}.salvaged`
  await fs.rm(copy, { recursive: true, force: true })
  const store = await openDocumentStore(home).catch(() => null)
  if (store === null) return false
  const fault = await salvageStreams(store, copy).then(
    () => null,
    (error: unknown) => storeError(error, copy)
  )
  await closeStore(store).catch(() => {})
  if (fault !== null) await fs.rm(copy, { recursive: true, force: true })
  // Nothing is moved aside while what can be read of it has no place to go to.
  if (fault !== null && fault.code !== 'STORE_DAMAGED' && fault.code !== 'INTERNAL') throw fault
  if (fault !== null) return false
  await aside(home.documents)
  await fs.rename(copy, home.documents)
  return true
}

async function acceptSalvaged(home: HomePaths, documents: NodeStore, fault: NodeError): Promise<Repair> {
  const left = await readDocuments(home, documents)
  await accept(documents, left)
  const text = `${fault.message}; it is moved aside, and its readable part is copied`
  const lost = lostText(left)
  return { name: 'streams', text, lost: lost === null ? null : `${lost}: ${LOST}` }
}

/**
 * The present blocks of these documents are no longer compared with the former length, and no longer count as complete.
 */
async function accept(documents: NodeStore, { lost }: StreamState): Promise<void> {
  const arrived = await documents.read<StoredArrivals>(DOCUMENTS_ARRIVED)
  if (arrived !== null)
    await documents.write(DOCUMENTS_ARRIVED, { names: arrived.names.filter((name) => !lost.has(name)) })
  const own = Object.entries((await documents.read<StoredLocalStreams>(OWN_STREAMS)) ?? {})
  await documents.write(
    OWN_STREAMS,
    Object.fromEntries(own.map(([name, one]) => [name, lost.has(name) ? leftStream(one) : one]))
  )
  const marks = Object.entries((await documents.read<StoredMarks>(DOCUMENT_MARKS)) ?? {})
  await documents.write(DOCUMENT_MARKS, Object.fromEntries(marks.filter(([name]) => !lost.has(name))))
  const losses = Object.entries((await documents.read<StoredLosses>(DOCUMENT_LOSSES)) ?? {})
  await documents.write(DOCUMENT_LOSSES, Object.fromEntries(losses.filter(([name]) => !lost.has(name))))
}

async function readStore(home: HomePaths, isExpected: boolean): Promise<StreamFacts> {
  // Opening it would make one.
  if (!(await isThere(home.documents))) {
    if (isExpected) throw new NodeError('STORE_DAMAGED', `the store ${home.documents} is gone`)
    return { blocks: 0, lengths: new Map() }
  }
  const store = await openDocumentStore(home)
  try {
    return await readStreams(store)
  } catch (error) {
    throw damageError(error, home.documents)
  } finally {
    // A damaged one fails once more, and is closed all the same.
    await closeStore(store).catch(() => {})
  }
}
