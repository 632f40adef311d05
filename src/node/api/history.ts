import type { Doc } from 'yjs'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { HistoryChange } from '../../domain/document/history/replay.js'
import type {
  DocumentCalls,
  DocumentChange,
  DocumentHistory,
  DocumentPart,
  FormerDocument
} from '../../ports/document-api.js'
import type { IndexedDocument } from '../documents/document-index.js'
import { mustBeHere, recordOf } from '../documents/initial-sync.js'
import type { OpenDocument } from '../documents/open-document.js'
import { type CallTerms, type DocumentsApiDeps, found, skippedOf, writable } from './named-document.js'

/** Changes of a history without a limit. */
const SHOWN_CHANGES = 20
/** Characters of a stream's key in the name of a change. */
const KEY_CHARACTERS = 8
/** Characters of a part's name. */
const NAME_CHARACTERS = 64
/** Largest time of a Date, in milliseconds. */
const MAX_TIME = 8.64e15
const ISO = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}(?:Z|[+-]\d\d:\d\d)$/
const ENTRY = /^([a-z0-9]{8,64})\/([1-9]\d{0,9})$/

type HistoryCall<N extends 'documents.history' | 'documents.past' | 'documents.restore'> = DocumentCalls[N]

/**
 * `doc history`.
 * @throws NodeError DOCUMENT_NOT_FOUND, OVERLOADED, CONFLICT, PEER_OFFLINE, TIMEOUT
 */
export async function historyOf(
  node: DocumentsApiDeps,
  { document, limit = SHOWN_CHANGES }: HistoryCall<'documents.history'>['params'],
  { certified: by, timeoutMs }: CallTerms
): Promise<HistoryCall<'documents.history'>['result']> {
  const { id, record } = await found(node, document, by)
  const { name } = record
  const last: HistoryChange[] = []
  let total = 0
  await node.documents.with(name, async (open) => {
    await mustBeHere(node, record, timeoutMs)
    const note = (change: HistoryChange): boolean => {
      total++
      if (last.push(change) > limit) last.shift()
      return false
    }
    await node.documents.history.replay({ name, open }, note, () => null)
  })
  const changes = last.reverse().map((change) => changeInfo(node, name, change))
  return { id, name, changes, total, merged: mergedOf(node, name), ...skippedOf(node, recordOf(node, record)) }
}

/**
 * `doc show --at`.
 * @throws NodeError as {@link historyOf}; INVALID_INPUT when no change is named
 */
export async function pastOf(
  node: DocumentsApiDeps,
  { document, at }: HistoryCall<'documents.past'>['params'],
  { certified: by, timeoutMs }: CallTerms
): Promise<FormerDocument> {
  const { id, record } = await found(node, document, by)
  const { sharedParts } = await import('../../domain/document/shared-types.js')
  return await node.documents.with(record.name, async (open) => {
    await mustBeHere(node, record, timeoutMs)
    return await inPast(node, { record, open, at }, (doc, change) => ({
      id,
      name: record.name,
      change,
      parts: sharedParts(doc)
    }))
  })
}

/**
 * `doc restore`.
 * @throws NodeError as {@link pastOf}; FORBIDDEN, and CONFLICT for a part that cannot be restored
 */
export async function restoreDocument(
  node: DocumentsApiDeps,
  { document, at, root }: HistoryCall<'documents.restore'>['params'],
  { certified: by, timeoutMs }: CallTerms
): Promise<HistoryCall<'documents.restore'>['result']> {
  const { id, record } = writable(node, await found(node, document, by), by)
  const [{ Doc: YDoc, applyUpdate, encodeStateAsUpdate }, { restoringEdits }, { editShared }] = await Promise.all([
    import('yjs'),
    import('../../domain/document/history/restore.js'),
    import('../../domain/document/shared-types.js')
  ])
  return await node.documents.with(record.name, async (open) => {
    await mustBeHere(node, record, timeoutMs)
    const { update, change } = await inPast(node, { record, open, at }, (doc, one) => ({
      update: encodeStateAsUpdate(doc),
      change: one
    }))
    const former = new YDoc()
    applyUpdate(former, update)
    const restored = await open.edit((doc) => {
      const edits = restoringEdits(doc, former, root)
      for (const one of edits) editShared(doc, one.root, one.edit)
      return edits.map(({ root: name, edit }) => partInfo({ root: name, type: edit.type }))
    })
    return { id, name: record.name, change, restored }
  })
}

interface PastDocument {
  readonly record: IndexedDocument['record']
  readonly open: OpenDocument
  readonly at: string
}

/** Names one block: a stream, and the place in it from 0 on. */
type ChangePlace = Pick<HistoryChange, 'stream' | 'index'>

/** Gives `use` the document as it was at a change, and the change. */
async function inPast<T>(
  node: DocumentsApiDeps,
  past: PastDocument,
  use: (doc: Doc, change: DocumentChange) => T
): Promise<T> {
  const { name } = past.record
  const place = await placeOf(node, past)
  let change: HistoryChange | null = null
  const see = (one: HistoryChange): boolean => {
    if (one.stream !== place.stream || one.index !== place.index) return false
    change = one
    return true
  }
  return await node.documents.history.replay({ name, open: past.open }, see, (doc) => {
    if (change === null) throw missing(node, past, 'is no change that is here')
    return use(doc, changeInfo(node, name, change))
  })
}

/** The change that `at` names. @throws NodeError INVALID_INPUT, AMBIGUOUS_NAME */
async function placeOf(node: DocumentsApiDeps, past: PastDocument): Promise<ChangePlace> {
  const { at, open, record } = past
  const [, key, number] = ENTRY.exec(at) ?? []
  if (key !== undefined) return { stream: streamOf(node, past, key), index: Number(number) - 1 }
  const time = ISO.test(at) ? Date.parse(at) : Number.NaN
  if (Number.isNaN(time)) throw missing(node, past, 'is neither an entry of the history nor a time')
  let last: ChangePlace | null = null
  const see = (change: HistoryChange): boolean => {
    if (change.latest > time) return true
    last = change
    return false
  }
  await node.documents.history.replay({ name: record.name, open }, see, () => null)
  if (last === null) throw missing(node, past, 'is before the first change that is here')
  return last
}

/** The stream whose key begins so. The log may not name a stream of this node yet. */
function streamOf(node: DocumentsApiDeps, past: PastDocument, key: string): string {
  const { name } = past.record
  const streams = recordOf(node, past.record).streams.map(({ coreKey }) => coreKey)
  const matching = [...new Set([...streams, ...node.documents.ownStreams(name)])].filter((one) => one.startsWith(key))
  const [stream, second] = matching
  if (second !== undefined) {
    const candidates = matching.map((one) => one + past.at.slice(key.length))
    throw new NodeError('AMBIGUOUS_NAME', 'several streams of the document have a key that begins so', {
      data: { candidates },
      next: candidates.map((one) => `a2a-node doc show ${shellWord(name)} --at ${one}`)
    })
  }
  if (stream === undefined) throw missing(node, past, 'is no change that is here')
  return stream
}

function missing(node: DocumentsApiDeps, { at, record: { name } }: PastDocument, reason: string): NodeError {
  const merged = mergedOf(node, name) === null ? '' : '; older changes are merged in a snapshot'
  return new NodeError('INVALID_INPUT', `${shown(at)} ${reason}${merged}`, {
    next: [`a2a-node doc history ${shellWord(name)}`]
  })
}

function mergedOf({ documents }: DocumentsApiDeps, name: string): DocumentHistory['merged'] {
  const used = documents.snapshots.used.of(name)
  if (used === null) return null
  const since = documents.snapshots.used.sinceOf(name)
  return {
    blocks: Object.values(used.lengths).reduce((sum, length) => sum + length, 0),
    since: since === null ? null : new Date(since).toISOString()
  }
}

function changeInfo(node: DocumentsApiDeps, name: string, change: HistoryChange): DocumentChange {
  const { stream, index, at, added, removed, bytes, parts } = change
  const writer = node.deps.log
    .view()
    .documents.get(name)
    ?.streams.find(({ coreKey }) => coreKey === stream)
  return {
    entry: `${stream.slice(0, KEY_CHARACTERS)}/${index + 1}`,
    stream,
    // The log names every stream of another member before its blocks count.
    by: node.directory.ref(writer?.nodeKey ?? node.self),
    at: timeText(at),
    ...{ added, removed, bytes },
    parts: parts.map(partInfo)
  }
}

/** Peers choose the times: one beyond those of a date is the last one. */
function timeText(at: number): string {
  return new Date(Math.min(at, MAX_TIME)).toISOString()
}

function partInfo({ root, type }: DocumentPart): DocumentPart {
  return { root: root.slice(0, NAME_CHARACTERS), type }
}
