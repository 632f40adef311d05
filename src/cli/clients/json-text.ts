import type { Node } from 'jsonc-parser'

/** A range of a text and its replacement. */
export interface TextEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** How new lines look in a text. */
export interface TextStyle {
  readonly eol: string
  /** One level. */
  readonly unit: string
}

/** Where the text of a new property goes: on a line of its own, or null for the line of its object. */
export type Indent = string | null

// Between two values of a JSON text there is nothing but white space, comments and commas.
const BETWEEN = /\/\/[^\r\n]*|\/\*[\s\S]*?\*\/|,/g
const SPACE = ' \t\r\n'

/** Applies edits that do not overlap. */
export function edited(text: string, edits: readonly TextEdit[]): string {
  let result = ''
  let at = 0
  for (const { start, end, text: content } of [...edits].sort((a, b) => a.start - b.start)) {
    result += text.slice(at, start) + content
    at = end
  }
  return result + text.slice(at)
}

/** The style of a text: its first line break, the indent of the first property. */
export function styleOf(text: string, root: Node | null): TextStyle {
  const first = root?.children?.[0]
  const indent = first === undefined ? null : indentOf(text, first.offset)
  return { eol: /\r?\n/.exec(text)?.[0] ?? '\n', unit: indent === null || indent === '' ? '  ' : indent }
}

/**
 * Adds a property after the last one of an object. An object on one line stays on one line; comments behind the last
 * property stay behind it; a trailing comma gets a successor. {@link removed} undoes exactly this.
 */
export function added(text: string, object: Node, make: (indent: Indent) => string): TextEdit[] {
  const last = object.children?.at(-1)
  const style = styleOf(text, object)
  if (last === undefined) return [addedFirst(text, object, make)]
  const close = object.offset + object.length - 1
  const end = last.offset + last.length
  const { comma, commentEnd } = between(text, end, close)
  const own = indentOf(text, last.offset) ?? lineIndent(text, object.offset) + style.unit
  const indent = hasBreak(text, object.offset, close) ? own : null
  const start = indent === null ? ' ' : eolOf(text) + indent
  const at = Math.max(end, commentEnd, comma === null ? 0 : comma + 1)
  if (comma !== null) return [insert(at, `${start}${make(indent)},`)]
  return at === end
    ? [insert(end, `,${start}${make(indent)}`)]
    : [insert(end, ','), insert(at, `${start}${make(indent)}`)]
}

function addedFirst(text: string, object: Node, make: (indent: Indent) => string): TextEdit {
  const open = object.offset + 1
  if (!hasBreak(text, open, object.offset + object.length)) return insert(open, make(null))
  const indent = lineIndent(text, object.offset) + styleOf(text, null).unit
  return insert(open, `${eolOf(text)}${indent}${make(indent)}`)
}

/**
 * Takes a property out, with the comma that it no longer needs and the white space before it. Comments around it stay.
 */
export function removed(text: string, object: Node, property: Node): TextEdit[] {
  const siblings = object.children ?? []
  const i = siblings.indexOf(property)
  const [previous, next] = [siblings[i - 1], siblings[i + 1]]
  const from = previous === undefined ? object.offset + 1 : previous.offset + previous.length
  const end = property.offset + property.length
  const behind = between(text, end, next?.offset ?? object.offset + object.length - 1)
  const before = between(text, from, property.offset)
  const start = startOf(text, { from, offset: property.offset, end: behind.comma === end ? end + 1 : end })
  const own = { start, end, text: '' }
  const comma = behind.comma ?? before.comma
  return comma === null ? [own] : [own, { start: comma, end: comma + 1, text: '' }]
}

/** From where on white space before a property goes with it. */
function startOf(text: string, { from, offset, end }: { from: number; offset: number; end: number }): number {
  let start = offset
  while (start > from && SPACE.includes(text[start - 1] ?? '')) start--
  const comment = [...text.slice(from, start).matchAll(BETWEEN)].at(-1)?.[0] ?? ''
  // A comment to the end of its line must not swallow what follows.
  return comment.startsWith('//') && !/^[ \t]*(?:\r|\n|$)/.test(text.slice(end)) ? offset : start
}

/** The text between two values: the position of the comma, the end of the last comment. */
function between(
  text: string,
  start: number,
  end: number
): { readonly comma: number | null; readonly commentEnd: number } {
  let comma: number | null = null
  let commentEnd = 0
  for (const found of text.slice(start, end).matchAll(BETWEEN)) {
    if (found[0] === ',') comma = start + found.index
    else commentEnd = start + found.index + found[0].length
  }
  return { comma, commentEnd }
}

function insert(at: number, text: string): TextEdit {
  return { start: at, end: at, text }
}

function hasBreak(text: string, start: number, end: number): boolean {
  return /[\r\n]/.test(text.slice(start, end))
}

/** The line break of a text. */
export function eolOf(text: string): string {
  return styleOf(text, null).eol
}

/** The white space before the first token of a line; null for a later token. */
function indentOf(text: string, offset: number): string | null {
  const before = text.slice(lineStart(text, offset), offset)
  return /^[ \t]*$/.test(before) ? before : null
}

/** The white space at the beginning of the line of a place. */
export function lineIndent(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? ''
}

function lineStart(text: string, offset: number): number {
  return Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1
}
