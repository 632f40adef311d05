import * as Y from 'yjs'
import { NodeError } from '../../kit/errors.js'

/** Shared types inside of each other that are read; others may nest them as deep as they like. */
const MAX_NESTED = 256

/** UTF-16 units of the markup of one reading. Peers choose how often formats and JSON quotes repeat in it. */
const MAX_MARKUP = 67_108_864

/** Depth of a reading, and the markup that it may still produce. */
interface ValueReading {
  readonly depth: number
  readonly budget: { left: number }
}

/** The content of a shared type, declared or not. */
export type TypeFields = Pick<Y.AbstractType<unknown>, '_start' | '_map'>

type SharedContent = Y.Item['content']

/** The content of a sequence, in order. */
export function contentsOf({ _start }: TypeFields): SharedContent[] {
  const contents: SharedContent[] = []
  for (let item = _start; item !== null; item = item.right) if (!item.deleted) contents.push(item.content)
  return contents
}

/** The content of the first `max` items of a sequence, deleted ones included. */
export function contentsFrom({ _start }: TypeFields, max: number): SharedContent[] {
  const contents: SharedContent[] = []
  for (let item = _start; item !== null && contents.length < max; item = item.right) contents.push(item.content)
  return contents
}

/** Is it a shared type inside of another? */
export function isNested(content: SharedContent): content is Y.ContentType {
  return content instanceof Y.ContentType
}

/** Is it an element or a text of XML? */
export function isXml(content: SharedContent): content is Y.ContentType {
  return isNested(content) && [Y.XmlElement, Y.XmlText, Y.XmlHook].some((kind) => content.type instanceof kind)
}

/** Has a sequence texts of XML and nothing else, so that read as a text it would be empty? */
export function isXmlTexts(fields: TypeFields): boolean {
  const contents = contentsOf(fields)
  return contents.length > 0 && contents.every((content) => isNested(content) && content.type instanceof Y.XmlText)
}

/**
 * The text of a sequence without embedded objects; of texts of XML alone their markup.
 * @throws NodeError CONFLICT when nested too deep
 */
export function textValue(fields: TypeFields, at = begun()): string {
  if (isXmlTexts(fields)) return markup(fields, at)
  return contentsOf(fields)
    .map((content) => (content instanceof Y.ContentString ? content.str : ''))
    .join('')
}

/** The object of a map. @throws NodeError CONFLICT when nested too deep */
export function mapValue({ _map }: TypeFields, at = begun()): Record<string, unknown> {
  // fromEntries defines: a key named __proto__ stays a key.
  return Object.fromEntries(
    [..._map].flatMap(([key, item]) => (item.deleted ? [] : [[key, valueOf(lastOf(item), at)]]))
  )
}

/** The values of a list. @throws NodeError CONFLICT when nested too deep */
export function listValue(fields: TypeFields, at = begun()): unknown[] {
  const countable = contentsOf(fields).filter((content) => content.isCountable())
  return countable.flatMap((content) => content.getContent().map((value) => valueOf(value, at)))
}

/**
 * The mixed content of a sequence in order, with text in as few pieces as possible.
 * @throws NodeError CONFLICT when nested too deep
 */
export function mixedValue(fields: TypeFields): unknown[] {
  const at = begun()
  const values: unknown[] = []
  let hasText = false
  for (const content of contentsOf(fields)) {
    if (!content.isCountable()) continue
    const isText = content instanceof Y.ContentString
    if (isText && hasText) values.push(String(values.pop()) + content.str)
    else if (isText) values.push(content.str)
    else for (const value of content.getContent()) values.push(valueOf(value, at))
    hasText = isText
  }
  return values
}

/**
 * The markup of a sequence of XML, as Yjs writes it; other content as JSON.
 * @throws NodeError CONFLICT when nested too deep or too long
 */
export function markup(fields: TypeFields, at = begun()): string {
  const countable = contentsOf(fields).filter((content) => content.isCountable())
  return countable
    .flatMap((content) => (content instanceof Y.ContentString ? [content.str] : texts(content.getContent(), at)))
    .join('')
}

function begun(): ValueReading {
  return { depth: 0, budget: { left: MAX_MARKUP } }
}

/** Counts markup that may occur more often than in the document. */
function counted(text: string, { budget }: ValueReading): string {
  budget.left -= text.length
  if (budget.left < 0) throw new NodeError('CONFLICT', `its markup is longer than ${MAX_MARKUP} characters`)
  return text
}

function texts(values: readonly unknown[], at: ValueReading): string[] {
  return values.map((value) => textOf(valueOf(value, at), at))
}

/** A shared type as it is read, and any other value as it is. */
function valueOf(value: unknown, at: ValueReading): unknown {
  if (!(value instanceof Y.AbstractType)) return value
  if (at.depth >= MAX_NESTED) throw new NodeError('CONFLICT', `it is nested deeper than ${MAX_NESTED} levels`)
  const inner = { ...at, depth: at.depth + 1 }
  if (value instanceof Y.XmlText) return xmlText(value, inner)
  if (value instanceof Y.XmlElement) return xmlElement(value, inner)
  if (value instanceof Y.XmlFragment) return markup(value, inner)
  if (value instanceof Y.Text) return textValue(value, inner)
  return value instanceof Y.Map ? mapValue(value, inner) : listValue(value, inner)
}

function xmlElement(element: Y.XmlElement, at: ValueReading): string {
  const name = element.nodeName.toLowerCase()
  return `<${name}${attributesText(mapValue(element, at), at)}>${markup(element, at)}</${name}>`
}

/**
 * Formats become elements around their text. The delta is not used: it repeats all formats for each piece, and takes
 * memory for them.
 */
function xmlText(text: Y.XmlText, at: ValueReading): string {
  const formats = new Map<string, unknown>()
  const pieces: string[] = []
  let plain = ''
  let around: readonly [string, string] | null = null
  const add = (piece: string): void => {
    around ??= formatsText(formats, at)
    pieces.push(counted(around[0], at), piece, counted(around[1], at))
  }
  const addPlain = (): void => {
    if (plain !== '') add(plain)
    plain = ''
  }
  for (const content of contentsOf(text)) {
    if (content instanceof Y.ContentString) plain += content.str
    else if (content instanceof Y.ContentFormat) {
      addPlain()
      around = null
      if (content.value === null) formats.delete(content.key)
      else formats.set(content.key, content.value)
    } else if (content instanceof Y.ContentEmbed || isNested(content)) {
      addPlain()
      texts(content.getContent(), at).forEach(add)
    }
  }
  addPlain()
  return pieces.join('')
}

/** The markup before and after a piece with these formats. */
function formatsText(formats: ReadonlyMap<string, unknown>, at: ValueReading): readonly [string, string] {
  const sorted = [...formats].sort(byName)
  const open = sorted.map(([name, value]) => `<${name}${attributesText(value ?? {}, at)}>`)
  const close = sorted.map(([name]) => `</${name}>`).reverse()
  return [open.join(''), close.join('')]
}

function attributesText(attributes: object, at: ValueReading): string {
  const sorted = Object.entries(attributes).sort(byName)
  return sorted.map(([name, value]) => ` ${name}="${textOf(value, at)}"`).join('')
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Does not call an object's own conversion to text, which another node may have chosen. */
function textOf(value: unknown, at: ValueReading): string {
  return typeof value === 'string' ? value : counted(JSON.stringify(value) ?? '', at)
}

function lastOf({ content, length }: Y.Item): unknown {
  return content.getContent()[length - 1]
}
