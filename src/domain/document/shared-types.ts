import * as Y from 'yjs'
import { messageOf, NodeError } from '../../kit/errors.js'
import { jsonFault, writtenJson } from '../../kit/json.js'
import { editText, replaceParts } from './edit.js'
import { sequenceDiff } from './sequence-diff.js'
import {
  contentsOf,
  type TypeFields,
  isNested,
  isXml,
  isXmlTexts,
  listValue,
  mapValue,
  markup,
  mixedValue,
  textValue
} from './shared-values.js'

/** The shared types of a document that are read and edited by name. */
export type SharedType = 'text' | 'map' | 'list'

/**
 * A change of one shared type: all of it made equal to something, or a part replaced. Texts count the UTF-16 units that
 * are read of them.
 */
export type SharedEdit =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'text'
      readonly splice: { readonly at: number; readonly remove: number; readonly insert: string }
    }
  | { readonly type: 'map'; readonly map: Readonly<Record<string, unknown>> }
  | { readonly type: 'map'; readonly set: Readonly<Record<string, unknown>>; readonly remove?: readonly string[] }
  | { readonly type: 'list'; readonly list: readonly unknown[] }
  | {
      readonly type: 'list'
      readonly splice: { readonly at: number; readonly remove: number; readonly insert: readonly unknown[] }
    }

type Root = NonNullable<ReturnType<Y.Doc['share']['get']>>

const VALUES: Readonly<Record<SharedType, (fields: TypeFields) => unknown>> = {
  text: textValue,
  map: mapValue,
  list: listValue
}

/**
 * The value of a shared type: text, object or list; empty when unwritten. The document is unchanged.
 * @throws NodeError CONFLICT when the name has another type, or its content is nested too deep
 */
export function readShared(doc: Y.Doc, type: SharedType, root: string): unknown {
  const found = doc.share.get(root)
  if (found === undefined) return VALUES[type]({ _start: null, _map: new Map() })
  // A call with a type would make Yjs keep that type for good.
  if (isOpen(found)) mustHold(found, type)
  return VALUES[type](isOpen(found) ? found : sharedOf(doc, type, root))
}

/** A shared type as its content shows it: of XML the markup, of mixed content the parts in order. */
export interface SharedPart {
  readonly root: string
  readonly type: SharedType | 'xml' | 'mixed'
  readonly value: unknown
  /** Why it cannot be read; its value is null then. */
  readonly fault?: string
}

/** The non-empty shared types of a document by name, without declared types. The document is unchanged. */
export function sharedParts(doc: Y.Doc): SharedPart[] {
  const found = [...doc.share].flatMap(([root, fields]): SharedPart[] => {
    const type = kindOf(fields)
    return type === null ? [] : [partOf(root, type, fields)]
  })
  return found.sort((a, b) => (a.root < b.root ? -1 : 1))
}

/** One that cannot be read does not keep the others from being. */
function partOf(root: string, type: SharedPart['type'], fields: TypeFields): SharedPart {
  try {
    return { root, type, value: { ...VALUES, xml: markup, mixed: mixedValue }[type](fields) }
  } catch (error) {
    return { root, type, value: null, fault: messageOf(error) }
  }
}

/** The type of a shared type by its content; null when it is empty. */
function kindOf(fields: TypeFields): SharedPart['type'] | null {
  const contents = contentsOf(fields)
  if (contents.length === 0) return isMap(fields) ? 'map' : null
  if (contents.every(isXml)) return 'xml'
  const mayBe = (type: SharedType): boolean => contents.every((content) => canHold(content).includes(type))
  if (mayBe('text') && !contents.every(isNested)) return 'text'
  return mayBe('list') ? 'list' : 'mixed'
}

/**
 * Applies one change.
 * @throws NodeError CONFLICT as {@link readShared}; INVALID_INPUT for invalid values and missing positions
 */
export function editShared(doc: Y.Doc, root: string, edit: SharedEdit): void {
  const fault = faultOf(edit)
  if (fault !== null) throw invalid(fault)
  const found = doc.share.get(root)
  // Text typed beside texts of XML is no XML.
  if (edit.type === 'text' && found !== undefined && isXmlTexts(found)) throw somethingElse('text')
  if (edit.type === 'text') return textEdit(sharedOf(doc, 'text', root) as Y.Text, edit)
  if (edit.type === 'map') return mapEdit(sharedOf(doc, 'map', root) as Y.Map<unknown>, edit)
  return listEdit(sharedOf(doc, 'list', root) as Y.Array<unknown>, edit)
}

function sharedOf(doc: Y.Doc, type: SharedType, root: string): Y.Text | Y.Map<unknown> | Y.Array<unknown> {
  const found = doc.share.get(root)
  if (found !== undefined && isOpen(found)) mustHold(found, type)
  try {
    if (type === 'text') return doc.getText(root)
    return type === 'map' ? doc.getMap(root) : doc.getArray(root)
  } catch (cause) {
    throw somethingElse(type, cause)
  }
}

function isOpen(found: Root): boolean {
  return found.constructor === Y.AbstractType
}

/** An empty type may become any type. */
function mustHold(root: Root, type: SharedType): void {
  const fields = new Set<SharedType | 'xml'>()
  if (isMap(root)) fields.add('map')
  for (const content of contentsOf(root)) for (const one of canHold(content)) fields.add(one)
  if (fields.size > 0 && !fields.has(type)) throw somethingElse(type)
}

function isMap({ _map }: TypeFields): boolean {
  return [..._map.values()].some(({ deleted }) => !deleted)
}

function canHold(content: Y.Item['content']): readonly (SharedType | 'xml')[] {
  // Texts of XML lie in other ones, and elements in fragments alone.
  if (isXml(content) && !(content.type instanceof Y.XmlText)) return ['xml']
  if (isNested(content)) return ['text', 'list']
  const isOfText =
    content instanceof Y.ContentString || content instanceof Y.ContentEmbed || content instanceof Y.ContentFormat
  return isOfText ? ['text'] : ['list']
}

function somethingElse(type: SharedType, cause?: unknown): NodeError {
  return new NodeError('CONFLICT', `the document has something else than a ${type} under this name`, { cause })
}

function faultOf(edit: SharedEdit): string | null {
  const texts = edit.type === 'text' ? [textOf(edit)] : []
  if (texts.some((text) => !text.isWellFormed())) return 'a text with half of a character'
  if (edit.type === 'text') return null
  return edit.type === 'list'
    ? jsonFault('list' in edit ? edit.list : edit.splice.insert)
    : mapFault('map' in edit ? edit.map : edit.set)
}

/** How many keys the map itself has is bounded by the size of the document alone: each is a piece of its own. */
function mapFault(map: Readonly<Record<string, unknown>>): string | null {
  for (const [key, value] of Object.entries(map)) {
    const fault = jsonFault({ [key]: value })
    if (fault !== null) return fault
  }
  return null
}

function invalid(reason: string): NodeError {
  return new NodeError('INVALID_INPUT', reason, { next: ['a2a-node doc set --help'] })
}

function textOf(edit: SharedEdit & { readonly type: 'text' }): string {
  return 'text' in edit ? edit.text : edit.splice.insert
}

function textEdit(text: Y.Text, edit: SharedEdit & { readonly type: 'text' }): void {
  if ('text' in edit) return editText(text, edit.text)
  mustFit(edit.splice.at, edit.splice.remove, text.toJSON().length)
  replaceParts(text, [edit.splice])
}

function mapEdit(map: Y.Map<unknown>, edit: SharedEdit & { readonly type: 'map' }): void {
  const set = 'map' in edit ? edit.map : edit.set
  const removed = 'map' in edit ? [...map.keys()].filter((key) => !Object.hasOwn(set, key)) : (edit.remove ?? [])
  for (const key of removed) map.delete(key)
  const old = mapValue(map)
  for (const [key, value] of Object.entries(set))
    if (!Object.hasOwn(old, key) || !isSame(old[key], value)) map.set(key, value)
}

function listEdit(list: Y.Array<unknown>, edit: SharedEdit & { readonly type: 'list' }): void {
  if ('splice' in edit) {
    const { at, remove, insert } = edit.splice
    mustFit(at, remove, list.length)
    return replace(list, at, remove, insert)
  }
  const hunks = sequenceDiff(listValue(list).map(writtenJson), edit.list.map(writtenJson))
  // From the end on, so that places before stay as they are.
  for (const { at, remove, from, to } of hunks.reverse()) replace(list, at, remove, edit.list.slice(from, to))
}

function replace(list: Y.Array<unknown>, ...[at, remove, insert]: [number, number, readonly unknown[]]): void {
  list.delete(at, remove)
  list.insert(at, [...insert])
}

function mustFit(at: number, remove: number, length: number): void {
  if (at + remove > length) throw invalid(`there are ${length} places, and the change goes to ${at + remove}`)
}

/** Compares values as the editor reads them: programs write values without a JSON form, such as NaN. */
function isSame(one: unknown, other: unknown): boolean {
  return writtenJson(one) === writtenJson(other)
}
