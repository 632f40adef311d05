import { NodeError } from '../kit/errors.js'
import type { Unsubscribe } from '../kit/events.js'
import type { NodeId } from '../kit/ids.js'
import { shellWord, shown } from '../kit/text.js'
import { memberAccess } from './document-access.js'
import type { KnownDocument } from './known-documents.js'
import type { NodeCore } from './node.js'

/** How long somebody waits for the first of a document that others wrote, in milliseconds. */
const HERE_MS = 3000

type DocumentRecord = KnownDocument['record']

/**
 * Of what was written something comes in a moment, or somebody is away who may have it. What none of all others has, who are there,
 * is gone: it was removed here before anybody got it. @throws NodeError PEER_OFFLINE
 */
export async function mustBeHere(node: NodeCore, record: DocumentRecord): Promise<void> {
  const { clock } = node.parts
  if (isHere(node, record)) return
  await new Promise<void>((resolve) => {
    const stop = node.documents.onChange(() => isHere(node, record) && done())
    const timer = clock.after(HERE_MS, () => done())
    const done = (): void => {
      stop()
      clock.clear(timer)
      resolve()
    }
  })
  if (isHere(node, record) || areAllThere(node, record)) return
  const name = shown(record.name)
  throw new NodeError('PEER_OFFLINE', `the document ${name} was written, nothing of it is here, and whoever has it is away`, {
    next: [`a2a-node doc show ${shellWord(record.name)}`, 'a2a-node peers']
  })
}

/** The same for who waits for as long as it takes. */
export interface Arrival {
  /** Is something of the document here, or gone for good? Stays true. */
  readonly isOver: boolean
  stop: Unsubscribe
}

/** Waits until {@link mustBeHere} would not throw; `onOver` is called then, never at once. `find` gives the document as it is known now. */
export function awaitHere(node: NodeCore, find: () => DocumentRecord, onOver: () => void): Arrival {
  const { clock } = node.parts
  if (isHere(node, find())) return { isOver: true, stop: () => {} }
  let wereAllThere = areAllThere(node, find())
  const look = (): void => {
    const record = find()
    const areThere = areAllThere(node, record)
    // Who came a moment ago may be about to give it.
    if (isHere(node, record) || (areThere && wereAllThere)) return over()
    wereAllThere = areThere
    timer = clock.after(HERE_MS, look)
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
    onOver()
  }
  return arrival
}

function isHere(node: NodeCore, record: DocumentRecord): boolean {
  return othersOf(node, record).length === 0 || !node.documents.isMissing(record)
}

function areAllThere(node: NodeCore, record: DocumentRecord): boolean {
  return othersOf(node, record).every((one) => node.peers.isOnline(one))
}

function othersOf(node: NodeCore, record: DocumentRecord): NodeId[] {
  const view = node.parts.log.view()
  return [...view.members.keys()].filter((one) => one !== node.self && memberAccess(view, record, one).maySee)
}
