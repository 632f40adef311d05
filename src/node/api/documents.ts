import { Debounce } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { LookAlikes } from '../../kit/names/look-alikes.js'
import { refuseName } from '../../kit/names/refuse-name.js'
import { DOCUMENT_NAME, nameFault } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { shellWord } from '../../kit/text.js'
import { removalDenied, restrictDenied } from '../../domain/document/denied.js'
import type {
  DocumentCalls,
  DocumentLiveEvent,
  DocumentReading,
  DocumentRoot,
  DocumentWatches
} from '../../ports/document-api.js'
import type { HistoryChange } from '../../domain/document/history/replay.js'
import { changeInfo, inPast, mergedOf, partInfo } from '../documents/history.js'
import { accessList, knownLengths, type DocumentCaller } from '../documents/access.js'
import { awaitHere, mustBeHere, recordOf } from '../documents/initial-sync.js'
import type { IndexedDocument } from '../documents/document-index.js'
import type { Principal } from '../../ports/node-api.js'
import {
  type CallTerms,
  deniedDocument,
  documentDetail,
  documentInfo,
  type DocumentApiCaller,
  type DocumentsApiDeps,
  found,
  skippedOf,
  warned,
  writable
} from './named-document.js'
import type { WatchRow } from './watches.js'

/** Time limit for bringing a change into the log, in milliseconds. */
const LOG_TIMEOUT_MS = 10_000
/** Names that are tried for a suggestion. */
const MAX_TRIED = 100
/** Changes of a history without a limit. */
const SHOWN_CHANGES = 20
/** The shortest time between two updates of a watched list and of a watched value, in milliseconds. */
const LIST_MS = 100
const READ_MS = 20

type DocumentParams<N extends keyof DocumentCalls> = DocumentCalls[N]['params']
type Result<N extends keyof DocumentCalls> = Promise<DocumentCalls[N]['result']>

/** The calls about documents: the required scope and the function of each. */
export const DOCUMENT_CALLS: {
  readonly [N in keyof DocumentCalls]: readonly [
    Principal['scopes'][number],
    (caller: DocumentApiCaller, params: DocumentParams<N>) => DocumentCalls[N]['result'] | Result<N>
  ]
} = {
  'documents.list': ['read', ({ node, certified }) => listDocuments(node, certified)],
  'documents.show': ['read', ({ node, certified }, params) => showDocument(node, params, certified)],
  'documents.create': ['send', ({ node, ...caller }, params) => createDocument(node, params, caller)],
  'documents.read': ['read', ({ node, ...caller }, params) => readDocument(node, params, caller)],
  'documents.edit': ['send', ({ node, ...caller }, params) => editDocument(node, params, caller)],
  'documents.history': ['read', ({ node, ...caller }, params) => historyOf(node, params, caller)],
  'documents.past': ['read', ({ node, ...caller }, params) => pastOf(node, params, caller)],
  'documents.restore': ['send', ({ node, ...caller }, params) => restoreDocument(node, params, caller)],
  'documents.forget': ['admin', ({ node, certified }, params) => forgetDocument(node, params, certified)],
  'documents.remove': ['admin', ({ node, ...caller }, params) => removeDocument(node, params, caller)],
  'documents.restrict': ['admin', ({ node, ...caller }, params) => restrictDocument(node, params, caller)],
  'documents.apply': ['send', ({ node, certified }, params) => applyToDocument(node, params, certified)],
  'documents.awareness': ['send', ({ node, certified }, params) => tellPresence(node, params, certified)]
}

/** The reader of a watch. */
interface Watcher<T> {
  push(item: T): void
  /** Ends a watch that cannot go on. */
  end(error: unknown): void
}

/** The watches of documents: the required scope and the function of each, and the items for a slow reader. */
export const DOCUMENT_WATCHES: { readonly [N in keyof DocumentWatches]: WatchRow<N, DocumentApiCaller> } = {
  'documents.list': [
    'read',
    ({ node, certified }, _params, { push }) => watchDocuments(node, certified, push),
    'newest'
  ],
  'documents.read': [
    'read',
    ({ node, certified: by }, params, to) => watchDocument(node, params, { by, ...to }),
    'newest'
  ],
  'documents.live': ['read', ({ node, certified: by }, params, to) => watchLive(node, params, { by, ...to }), 'all']
}

/** `doc ls`. */
function listDocuments(node: DocumentsApiDeps, by: DocumentCaller): DocumentCalls['documents.list']['result'] {
  const warningOf = node.documents.known.nameWarnings(by)
  return {
    documents: node.documents.known
      .list(by)
      .map((known) => ({ ...documentInfo(node, known, by), ...warned(warningOf(known.record.name)) })),
    problems: [...node.deps.logState.problems(), ...node.documents.damage()]
  }
}

/** `doc show`. @throws NodeError DOCUMENT_NOT_FOUND; STORE_DAMAGED when the stored part of it is unknown */
async function showDocument(
  node: DocumentsApiDeps,
  { document }: DocumentParams<'documents.show'>,
  by: DocumentCaller
): Result<'documents.show'> {
  const { fault: damage } = node.deps.documents
  if (damage !== null) throw damage
  return documentDetail(node, await found(node, document, by), by)
}

/**
 * Creates a document, or finds the one of that name. @throws NodeError INVALID_INPUT for an invalid name,
 * AMBIGUOUS_NAME for one that looks like the name of another document, CONFLICT for the name of a removed one,
 * OVERLOADED at a limit, FORBIDDEN, TIMEOUT
 */
async function createDocument(
  node: DocumentsApiDeps,
  { name, see, write }: DocumentParams<'documents.create'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.create'> {
  const { log, clock } = node.deps
  refuseRemoved(node, name)
  if (!log.view().documents.has(name)) refuseDocumentName(node, name, by)
  await node.swarmDocuments.ensure(name)
  const isThere = log.view().documents.has(name)
  if (!isThere) {
    mustBeWhole(node, by)
    const access =
      see === undefined && write === undefined ? null : accessList(node.directory, see ?? {}, write ?? {}, 1)
    await log.submit(
      { kind: 'document', mesh: node.deps.membership.meshId, name, access, at: clock.now() },
      timeoutMs ?? LOG_TIMEOUT_MS
    )
  }
  // Another member may have removed it meanwhile.
  refuseRemoved(node, name)
  const known = node.documents.known.find(name, by)
  return { ...documentDetail(node, known, by), created: !isThere && known.record.creator === node.self }
}

/** @throws NodeError CONFLICT */
function refuseRemoved(node: DocumentsApiDeps, name: string): void {
  const view = node.deps.log.view()
  const record = view.removedDocuments.get(name)
  if (record === undefined) return
  const { by } = record.removed
  const state = `the document ${safeName(name, DOCUMENT_NAME)} was removed from the mesh by ${node.directory.ref(by).name}`
  const cause = 'its name stays taken, as late entries and blocks of members belong to it by name alone'
  const free = Array.from({ length: MAX_TRIED }, (_, i) => `${name}-${i + 2}`).find(
    (one) => !view.removedDocuments.has(one) && !view.documents.has(one) && nameFault(one, DOCUMENT_NAME) === null
  )
  const next = [...(free === undefined ? [] : [`a2a-node doc set ${shellWord(free)} -`]), 'a2a-node doc ls']
  throw new NodeError('CONFLICT', `${state}: ${cause}`, { next })
}

/** Compares only names that the caller may see, so that nobody learns the names of other documents. */
function refuseDocumentName(node: DocumentsApiDeps, name: string, by: DocumentCaller): void {
  const command = (better: string): string => `a2a-node doc open ${better}`
  refuseName(name, DOCUMENT_NAME, { code: 'INVALID_INPUT', label: 'the name of the document', command })
  const like = new LookAlikes(node.documents.known.list(by).map(({ record }) => record.name)).find(name)
  if (like === null) return
  const { id } = node.documents.known.find(like, by)
  const message = `the name ${name} looks like that of the document ${safeName(like, DOCUMENT_NAME)}; another name tells them apart`
  throw new NodeError('AMBIGUOUS_NAME', message, {
    data: { candidates: [like] },
    next: [`a2a-node doc show ${shellWord(id)}`]
  })
}

/**
 * Sets the members with the rights to see and write.
 * @throws NodeError DOCUMENT_NOT_FOUND, FORBIDDEN, CONFLICT, TIMEOUT, PEER_NOT_FOUND
 */
async function restrictDocument(
  node: DocumentsApiDeps,
  { document, see, write }: DocumentParams<'documents.restrict'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.restrict'> {
  const { log, documents } = node.deps
  const { record } = await found(node, document, by)
  if (!node.documents.known.access(record, by).mayRestrict) throw restrictDenied(deniedDocument(node, record))
  const access = accessList(node.directory, see, write, (record.access?.access.serial ?? 0) + 1)
  await node.swarmDocuments.handOver(record.name)
  const lengths = await knownLengths(documents, record)
  const fault = node.documents.marks.fault(record.name)
  // Too short lengths would remove blocks lost on this disk from every node.
  if (fault !== null) throw fault
  const ends = await node.documents.snapshots.wrongOf(record)
  await log.submit(
    {
      kind: 'document-access',
      mesh: node.deps.membership.meshId,
      name: record.name,
      access,
      lengths,
      ...(ends === undefined ? {} : { ends })
    },
    timeoutMs ?? LOG_TIMEOUT_MS
  )
  return documentDetail(node, node.documents.known.find(record.name, by), by)
}

/** Reads one shared type. @throws NodeError DOCUMENT_NOT_FOUND, CONFLICT, PEER_OFFLINE, TIMEOUT */
async function readDocument(
  node: DocumentsApiDeps,
  params: DocumentParams<'documents.read'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.read'> {
  const known = await found(node, params.document, by)
  const { readShared } = await import('../../domain/document/shared-types.js')
  const root = rootOf(params)
  return await node.documents.with(known.record.name, async (open) => {
    await mustBeHere(node, known.record, timeoutMs)
    const value = await open.read(({ doc }) => readShared(doc, params.type, root))
    return reading(node, known, params.type, root, value)
  })
}

/**
 * Edits one shared type.
 * @throws NodeError DOCUMENT_NOT_FOUND, FORBIDDEN, INVALID_INPUT, CONFLICT, OVERLOADED, PAYLOAD_TOO_LARGE,
 * PEER_OFFLINE, TIMEOUT
 */
async function editDocument(
  node: DocumentsApiDeps,
  { document, edit }: DocumentParams<'documents.edit'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.edit'> {
  const known = writable(node, await found(node, document, by), by)
  const { editShared, readShared } = await import('../../domain/document/shared-types.js')
  const root = rootOf(edit)
  return await node.documents.with(known.record.name, async (open) => {
    await mustBeHere(node, known.record, timeoutMs)
    let changed = false
    const stop = open.onChange(() => (changed = true))
    const value = await open
      .edit((doc) => {
        editShared(doc, root, edit)
        return readShared(doc, edit.type, root)
      })
      .finally(stop)
    return { ...reading(node, known, edit.type, root, value), changed }
  })
}

/**
 * `doc history`.
 * @throws NodeError DOCUMENT_NOT_FOUND, OVERLOADED, CONFLICT, PEER_OFFLINE, TIMEOUT
 */
async function historyOf(
  node: DocumentsApiDeps,
  { document, limit = SHOWN_CHANGES }: DocumentParams<'documents.history'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.history'> {
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
async function pastOf(
  node: DocumentsApiDeps,
  { document, at }: DocumentParams<'documents.past'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.past'> {
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
async function restoreDocument(
  node: DocumentsApiDeps,
  { document, at, root }: DocumentParams<'documents.restore'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.restore'> {
  const { id, record } = writable(node, await found(node, document, by), by)
  const [{ copyOf, restoringEdits }, { editShared }] = await Promise.all([
    import('../../domain/document/history/restore.js'),
    import('../../domain/document/shared-types.js')
  ])
  return await node.documents.with(record.name, async (open) => {
    await mustBeHere(node, record, timeoutMs)
    const [former, change] = await inPast(node, { record, open, at }, (doc, one) => [copyOf(doc), one] as const)
    const restored = await open.edit((doc) => {
      const edits = restoringEdits(doc, former, root)
      for (const one of edits) editShared(doc, one.root, one.edit)
      return edits.map(({ root: name, edit }) => partInfo({ root: name, type: edit.type }))
    })
    return { id, name: record.name, change, restored }
  })
}

/** `doc rm`. @throws NodeError DOCUMENT_NOT_FOUND, CONFLICT */
async function forgetDocument(
  node: DocumentsApiDeps,
  { document }: DocumentParams<'documents.forget'>,
  by: DocumentCaller
): Result<'documents.forget'> {
  const known = node.documents.known.find(document, by)
  const bytes = await node.documents.forget(known)
  return { id: known.id, name: known.record.name, bytes }
}

/** `doc rm --everywhere`. @throws NodeError DOCUMENT_NOT_FOUND, FORBIDDEN, TIMEOUT */
async function removeDocument(
  node: DocumentsApiDeps,
  { document }: DocumentParams<'documents.remove'>,
  { certified: by, timeoutMs }: CallTerms
): Result<'documents.remove'> {
  const { log, clock } = node.deps
  const { id, record } = node.documents.known.find(document, by)
  if (!node.documents.known.access(record, by).mayRestrict) throw removalDenied(deniedDocument(node, record))
  await log.submit(
    { kind: 'document-removed', mesh: node.deps.membership.meshId, name: record.name, at: clock.now() },
    timeoutMs ?? LOG_TIMEOUT_MS
  )
  return { id, name: record.name, removed: true }
}

/** Applies an update of a program with an open document. @throws NodeError as `DocumentSessions.apply` */
async function applyToDocument(
  node: DocumentsApiDeps,
  { document, session, update }: DocumentParams<'documents.apply'>,
  by: DocumentCaller
): Result<'documents.apply'> {
  await node.documentSessions.apply(
    session,
    writable(node, node.documents.known.find(document, by), by).record.name,
    update
  )
  return { applied: true }
}

/** Spreads the presence of a program with an open document. @throws NodeError as `DocumentSessions.tell` */
async function tellPresence(
  node: DocumentsApiDeps,
  { document, session, update }: DocumentParams<'documents.awareness'>,
  by: DocumentCaller
): Result<'documents.awareness'> {
  await node.documentSessions.tell(session, node.documents.known.find(document, by).record.name, update)
  return { told: true }
}

/** Pushes the list, and again at each change. */
function watchDocuments(
  node: DocumentsApiDeps,
  by: DocumentCaller,
  push: (item: DocumentWatches['documents.list']['item']) => void
): Unsubscribe {
  const pace = new Debounce(node.deps.clock, LIST_MS, () => push(listDocuments(node, by)))
  pace.run()
  const stops = [node.documents.onChange(() => pace.due()), node.deps.logState.onChange(() => pace.due())]
  return () => {
    for (const stop of stops) stop()
    pace.close()
  }
}

/** Ends a watch with the error of `check`, once a change of the mesh or the document makes it throw. */
function whileAllowed(node: DocumentsApiDeps, check: () => void, end: (error: unknown) => void): Unsubscribe {
  return node.documents.onChange(() => {
    try {
      check()
    } catch (error) {
      end(error)
    }
  })
}

/**
 * Pushes the value of one shared type, and again at each change, while the caller may see it; nothing while its blocks
 * of other members are missing. @throws NodeError DOCUMENT_NOT_FOUND, CONFLICT
 */
async function watchDocument(
  node: DocumentsApiDeps,
  params: DocumentParams<'documents.read'>,
  { by, push, end }: Watcher<DocumentReading> & { readonly by: DocumentCaller }
): Promise<Unsubscribe> {
  const known = await found(node, params.document, by)
  const { readShared } = await import('../../domain/document/shared-types.js')
  const root = rootOf(params)
  const { document, release } = await node.documents.hold(known.record.name)
  let last: string | null = null
  const tell = async (): Promise<void> => {
    if (!arrival.isOver) return
    const value = await document.read(({ doc }) => readShared(doc, params.type, root))
    const text = JSON.stringify(value)
    if (text !== last) push(reading(node, known, params.type, root, value))
    last = text
  }
  const pace = new Debounce(node.deps.clock, READ_MS, () => void tell().catch(end))
  const arrival = awaitHere(node, () => recordOf(node, known.record), { onOver: () => pace.due() })
  const stops = [
    document.onChange(() => pace.due()),
    whileAllowed(node, () => void node.documents.known.find(known.record.name, by), end),
    arrival.stop,
    () => pace.close(),
    release
  ]
  const stop = (): void => stops.forEach((one) => one())
  await tell().catch((error: unknown) => {
    stop()
    throw error
  })
  return stop
}

/**
 * Pushes the events of a live document, while the caller may see it, and may write it if it could at first.
 * @throws NodeError DOCUMENT_NOT_FOUND, OVERLOADED, PEER_OFFLINE, TIMEOUT
 */
async function watchLive(
  node: DocumentsApiDeps,
  { document, clientId }: DocumentWatches['documents.live']['params'],
  { by, ...to }: Watcher<DocumentLiveEvent> & { readonly by: DocumentCaller }
): Promise<Unsubscribe> {
  const { record } = await found(node, document, by)
  const { mayWrite } = node.documents.known.access(record, by)
  await node.documents.with(record.name, () => mustBeHere(node, record))
  const close = await node.documentSessions.open(record.name, { mayWrite, clientId: clientId ?? null, ...to })
  const check = (): void => {
    const known = node.documents.known.find(record.name, by)
    if (mayWrite) writable(node, known, by)
  }
  const stop = whileAllowed(node, check, (error) => to.end(error))
  return () => {
    stop()
    close()
  }
}

function rootOf({ type, root }: DocumentRoot): string {
  return root ?? type
}

type ReadDocument = readonly [type: DocumentRoot['type'], root: string, value: unknown]

function reading(
  node: DocumentsApiDeps,
  { id, record }: IndexedDocument,
  ...[type, root, value]: ReadDocument
): DocumentReading {
  return { id, name: record.name, type, root, value, ...skippedOf(node, recordOf(node, record)) }
}

/** The log knows nodes only: a caller weaker than its node cannot create a document for itself. */
function mustBeWhole(node: DocumentsApiDeps, by: DocumentCaller): void {
  const { maxTier, sandboxId = null } = node.deps.membership.certificate().body
  if (by.maxTier > maxTier || (by.sandboxId !== null && by.sandboxId !== sandboxId))
    throw new NodeError('FORBIDDEN', 'this caller may not create documents')
}
