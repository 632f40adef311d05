import * as Y from 'yjs'
import { NodeError } from '../../../kit/errors.js'
import { writtenJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { type SharedEdit, type SharedPart, type SharedType, sharedParts } from '../shared-types.js'
import { contentsOf, type TypeFields } from '../shared-values.js'

/** The edit of one part that gives it back a former content. */
export interface RestoredPart {
  readonly root: string
  readonly edit: SharedEdit
}

/** A copy of a document that outlives it. */
export function copyOf(doc: Y.Doc): Y.Doc {
  const copy = new Y.Doc()
  Y.applyUpdate(copy, Y.encodeStateAsUpdate(doc))
  return copy
}

const NOTHING: TypeFields = { _start: null, _map: new Map() }

/**
 * The edits that make the content of a document equal to that of a former state of it. Parts with equal content have
 * none. `only`: of the part with this name alone. Both documents are unchanged.
 * @throws NodeError CONFLICT for a changed part that these edits cannot restore: XML, formatted text, and shared types
 * inside of each other
 */
export function restoringEdits(doc: Y.Doc, former: Y.Doc, only?: string): RestoredPart[] {
  const [now, then] = [doc, former].map((one) => new Map(sharedParts(one).map((part) => [part.root, part])))
  if (now === undefined || then === undefined) return []
  const roots = [...new Set([...now.keys(), ...then.keys()])].sort()
  const meant = only === undefined ? roots : roots.filter((root) => root === only)
  return meant.flatMap((root): RestoredPart[] => {
    const [fields, old] = [fieldsOf(doc, root), fieldsOf(former, root)]
    if (isSameContent([now.get(root), fields], [then.get(root), old])) return []
    const type = typeOf(root, now.get(root), then.get(root))
    if (!isPlain(fields, type) || !isPlain(old, type)) throw unrestorable(root, RICH)
    return [{ root, edit: editOf(type, then.get(root)?.value) }]
  })
}

const RICH = 'it has formatted text, or shared types inside of each other'

function fieldsOf(doc: Y.Doc, root: string): TypeFields {
  return doc.share.get(root) ?? NOTHING
}

type PartContent = readonly [part: SharedPart | undefined, fields: TypeFields]

/** Values do not show formats: these are compared on their own. */
function isSameContent([one, fields]: PartContent, [other, former]: PartContent): boolean {
  if (one === undefined || other === undefined) return one === other
  if (one.fault !== undefined || other.fault !== undefined || one.type !== other.type) return false
  return (
    writtenJson(one.value) === writtenJson(other.value) && writtenJson(marks(fields)) === writtenJson(marks(former))
  )
}

/** Formats and embedded objects with their places in the text. */
function marks(fields: TypeFields): unknown[] {
  const found: unknown[] = []
  let at = 0
  for (const content of contentsOf(fields)) {
    if (content instanceof Y.ContentFormat) found.push([at, content.key, content.value])
    else if (content instanceof Y.ContentEmbed) found.push([at, content.embed])
    if (content.isCountable()) at += content.getLength()
  }
  return found
}

function typeOf(root: string, now: SharedPart | undefined, then: SharedPart | undefined): SharedType {
  const types = [now, then].flatMap((part) => (part === undefined ? [] : [part.type]))
  const [type, other = type] = types
  if (type === undefined || type !== other)
    throw unrestorable(root, `it was a ${other ?? 'text'} and is a ${type ?? 'text'}`)
  if (type === 'xml' || type === 'mixed')
    throw unrestorable(root, type === 'xml' ? 'it is XML' : 'it has mixed content')
  return type
}

/** Has it content of that type alone, such as the edits of a command write? */
function isPlain({ _start, _map }: TypeFields, type: SharedType): boolean {
  const contents = contentsOf({ _start, _map })
  const values = [..._map.values()].filter(({ deleted }) => !deleted).map(({ content }) => content)
  if (type === 'map') return contents.length === 0 && values.every(isValue)
  return (
    values.length === 0 &&
    contents.every((content) => (type === 'text' ? content instanceof Y.ContentString : isValue(content)))
  )
}

function isValue(content: Y.Item['content']): boolean {
  return content instanceof Y.ContentAny || content instanceof Y.ContentJSON || content instanceof Y.ContentBinary
}

function editOf(type: SharedType, value: unknown): SharedEdit {
  if (type === 'text') return { type, text: typeof value === 'string' ? value : '' }
  if (type === 'list') return { type, list: Array.isArray(value) ? value : [] }
  return { type, map: { ...(value as Readonly<Record<string, unknown>> | undefined) } }
}

function unrestorable(root: string, reason: string): NodeError {
  return new NodeError('CONFLICT', `the part ${shown(root)} changed and cannot be restored: ${reason}`, {
    next: ['a2a-node doc show --help', 'a2a-node doc export --help']
  })
}
