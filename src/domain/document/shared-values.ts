import * as Y from 'yjs'
import { NodeError } from '../../kit/errors.js'

/** Shared types inside of each other that are read; others may nest them as deep as they like. */
const MAX_NESTED = 256

/** What a shared type holds, whether anybody said what it is or not. */
export type Held = Pick<Y.AbstractType<unknown>, '_start' | '_map'>

type Content = Y.Item['content']

/** What a sequence holds, in order. */
export function contentsOf({ _start }: Held): Content[] {
  const contents: Content[] = []
  for (let item = _start; item !== null; item = item.right) if (!item.deleted) contents.push(item.content)
  return contents
}

/** Is it a shared type inside of another? */
export function isNested(content: Content): content is Y.ContentType {
  return content instanceof Y.ContentType
}

/** Is it an element or a text of XML? */
export function isXml(content: Content): content is Y.ContentType {
  return isNested(content) && [Y.XmlElement, Y.XmlText, Y.XmlHook].some((kind) => content.type instanceof kind)
}

/** Has a sequence texts of XML and nothing else, so that read as a text it would be empty? */
export function isXmlTexts(held: Held): boolean {
  const contents = contentsOf(held)
  return contents.length > 0 && contents.every((content) => isNested(content) && content.type instanceof Y.XmlText)
}

/** The text of a sequence, without what is embedded in it; of one that has texts of XML alone their markup. @throws NodeError CONFLICT for what is nested too deep */
export function textValue(held: Held, depth = 0): string {
  if (isXmlTexts(held)) return markup(held, depth)
  return contentsOf(held)
    .map((content) => (content instanceof Y.ContentString ? content.str : ''))
    .join('')
}

/** The object that a map holds. @throws NodeError CONFLICT for what is nested too deep */
export function mapValue({ _map }: Held, depth = 0): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [key, item] of _map) if (!item.deleted) object[key] = valueOf(lastOf(item), depth)
  return object
}

/** The values of a list. @throws NodeError CONFLICT for what is nested too deep */
export function listValue(held: Held, depth = 0): unknown[] {
  const countable = contentsOf(held).filter((content) => content.isCountable())
  return countable.flatMap((content) => content.getContent().map((value) => valueOf(value, depth)))
}

/** All that a sequence of several kinds holds, in order: its text in as few pieces as may be. @throws NodeError CONFLICT for what is nested too deep */
export function mixedValue(held: Held): unknown[] {
  const values: unknown[] = []
  let hasText = false
  for (const content of contentsOf(held)) {
    if (!content.isCountable()) continue
    const isText = content instanceof Y.ContentString
    if (isText && hasText) values.push(String(values.pop()) + content.str)
    else values.push(...(isText ? [content.str] : content.getContent().map((value) => valueOf(value, 0))))
    hasText = isText
  }
  return values
}

/** The markup of a sequence of XML, as Yjs writes it; what is no XML in it as JSON. @throws NodeError CONFLICT for what is nested too deep */
export function markup(held: Held, depth = 0): string {
  const countable = contentsOf(held).filter((content) => content.isCountable())
  return countable.flatMap((content) => (content instanceof Y.ContentString ? [content.str] : texts(content.getContent(), depth))).join('')
}

function texts(values: readonly unknown[], depth: number): string[] {
  return values.map((value) => textOf(valueOf(value, depth)))
}

/** A shared type as it is read, and any other value as it is. */
function valueOf(value: unknown, depth: number): unknown {
  if (!(value instanceof Y.AbstractType)) return value
  if (depth >= MAX_NESTED) throw new NodeError('CONFLICT', `it is nested deeper than ${MAX_NESTED} levels`)
  const inner = depth + 1
  if (value instanceof Y.XmlText) return xmlText(value, inner)
  if (value instanceof Y.XmlElement) return xmlElement(value, inner)
  if (value instanceof Y.XmlFragment) return markup(value, inner)
  if (value instanceof Y.Text) return textValue(value, inner)
  return value instanceof Y.Map ? mapValue(value, inner) : listValue(value, inner)
}

function xmlElement(element: Y.XmlElement, depth: number): string {
  const name = element.nodeName.toLowerCase()
  return `<${name}${attributesText(mapValue(element, depth))}>${markup(element, depth)}</${name}>`
}

/** Formats are elements around what they format. */
function xmlText(text: Y.XmlText, depth: number): string {
  const pieces = text.toDelta() as { readonly insert: unknown; readonly attributes?: Readonly<Record<string, unknown>> }[]
  return pieces
    .map(({ insert, attributes = {} }) => {
      const formats = Object.entries(attributes).sort(byName)
      const open = formats.map(([name, value]) => `<${name}${attributesText(value ?? {})}>`)
      const close = formats.map(([name]) => `</${name}>`).reverse()
      return [...open, textOf(valueOf(insert, depth)), ...close].join('')
    })
    .join('')
}

function attributesText(attributes: object): string {
  const sorted = Object.entries(attributes).sort(byName)
  return sorted.map(([name, value]) => ` ${name}="${textOf(value)}"`).join('')
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Others choose what an object makes of itself as text, so it is not asked. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function lastOf({ content, length }: Y.Item): unknown {
  return content.getContent()[length - 1]
}
