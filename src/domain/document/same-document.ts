import * as Y from 'yjs'
import { sameBytes } from '../../kit/bytes.js'

type DocumentStruct = Y.Item | Y.GC
/** The shared types of a document by name. */
type Roots = ReadonlyMap<unknown, string>

/**
 * Do two documents have the same state? Clocks, deletions, forgotten parts and remaining items must be equal. Each item
 * must have the same neighbours as when it was written: later items may depend on deleted ones. The cut into items may
 * differ. Both documents must forget (`gc`). Walks over both.
 */
export function isSameDocument(one: Y.Doc, other: Y.Doc): boolean {
  const clients = new Set([...one.store.clients.keys(), ...other.store.clients.keys()])
  const compared: ComparedStruct = { roots: rootsOf(one, other), isPart: false }
  return [...clients].every((client) => isSameClient([structsOf(one, client), structsOf(other, client)], compared))
}

/** Does another document contain each item and deletion of this one? */
export function isPartOf(part: Y.Doc, whole: Y.Doc): boolean {
  const compared: ComparedStruct = { roots: rootsOf(part, whole), isPart: true }
  return [...part.store.clients.keys()].every((client) =>
    isSameClient([structsOf(part, client), structsOf(whole, client)], compared)
  )
}

function rootsOf(one: Y.Doc, other: Y.Doc): Roots {
  return new Map([...one.share, ...other.share].map(([name, type]) => [type, name]))
}

/** How two documents are compared. `isPart`: the second one may hold more. */
interface ComparedStruct {
  readonly roots: Roots
  readonly isPart: boolean
}

function structsOf({ store }: Y.Doc, client: number): readonly DocumentStruct[] {
  return store.clients.get(client) ?? []
}

/** Along both lists at once, from one place where any of them is cut to the next. */
function isSameClient(
  [one, other]: readonly [readonly DocumentStruct[], readonly DocumentStruct[]],
  compared: ComparedStruct
): boolean {
  let [at, there, clock] = [0, 0, 0]
  for (;;) {
    const [here, beside] = [one[at], other[there]]
    if (here === undefined || beside === undefined) return here === beside || (compared.isPart && here === undefined)
    const [end, endBeside] = [here.id.clock + here.length, beside.id.clock + beside.length]
    const next = Math.min(end, endBeside)
    if (!isSameStretch(here, beside, { clock, next, ...compared })) return false
    if (end === next) at++
    if (endBeside === next) there++
    clock = next
  }
}

interface Stretch extends ComparedStruct {
  readonly clock: number
  readonly next: number
}

function isSameStretch(one: DocumentStruct, other: DocumentStruct, { clock, next, roots, isPart }: Stretch): boolean {
  // The content of a deleted part is forgotten as a whole on every replica; anything else would lose its position.
  if (!(one instanceof Y.Item) || !(other instanceof Y.Item))
    return !(other instanceof Y.Item) && (isPart || !(one instanceof Y.Item))
  if (!isSamePlace(one, other, { clock, roots })) return false
  if (one.deleted || other.deleted) return other.deleted && (isPart || one.deleted)
  const [here, beside] = [one, other].map((item) => ({ from: clock - item.id.clock, to: next - item.id.clock }))
  if (here === undefined || beside === undefined) return false
  // More may stand between.
  if (!isPart && textOf(liveLeftOf(one, here.from)) !== textOf(liveLeftOf(other, beside.from))) return false
  return isSameContent(encodedPart(one, here), encodedPart(other, beside))
}

/** Were both written beside the same, into the same? Of later parts of an item the one before is what it stands on. */
function isSamePlace(one: Y.Item, other: Y.Item, { clock, roots }: Pick<Stretch, 'clock' | 'roots'>): boolean {
  const originOf = ({ id, origin }: Y.Item): string =>
    textOf(clock > id.clock ? Y.createID(id.client, clock - 1) : origin)
  if (originOf(one) !== originOf(other) || textOf(one.rightOrigin) !== textOf(other.rightOrigin)) return false
  return parentOf(one, roots) === parentOf(other, roots) && one.parentSub === other.parentSub
}

/** The nearest live item before a part of an item. Each item between two live ones is passed once. */
function liveLeftOf({ id, left }: Y.Item, from: number): Y.ID | null {
  if (from > 0) return Y.createID(id.client, id.clock + from - 1)
  let before = left
  while (before !== null && before.deleted) before = before.left
  return before === null ? null : before.lastId
}

function textOf(id: Y.ID | null): string {
  return id === null ? '' : `${id.client}/${id.clock}`
}

/** The item that holds it, or the name in the document. */
function parentOf({ parent }: Y.Item, roots: Roots): string {
  if (!(parent instanceof Y.AbstractType)) return ''
  const { _item: within } = parent
  return within === null ? `.${roots.get(parent) ?? ''}` : textOf(within.id)
}

interface DocumentPart {
  readonly from: number
  readonly to: number
}

/** A part of an item's content as Yjs writes it; the document is left as it is. */
function encodedPart(
  { content, length }: Y.Item,
  { from, to }: DocumentPart
): { readonly kind: number; readonly bytes: Uint8Array } {
  const encoder = new Y.UpdateEncoderV1()
  let part = content
  if (from > 0 || to < length) {
    part = content.copy()
    if (from > 0) part = part.splice(from)
    if (to - from < part.getLength()) part.splice(to - from)
  }
  part.write(encoder, 0)
  return { kind: part.getRef(), bytes: encoder.toUint8Array() }
}

function isSameContent(one: ReturnType<typeof encodedPart>, other: ReturnType<typeof encodedPart>): boolean {
  return one.kind === other.kind && sameBytes(one.bytes, other.bytes)
}
