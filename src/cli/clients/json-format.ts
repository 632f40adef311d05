import { isDeepStrictEqual } from 'node:util'
import { getNodeValue, type Node, parse, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { checkEdit, type EditCheck, notUnderstood, type ServerFormat, stateOf, type EntryValues } from './entry.js'
import { type EntryShape, USUAL_SHAPE } from './shapes.js'
import { added, type TextEdit, edited, type Indent, lineIndent, removed, styleOf, type TextStyle } from './json-text.js'

/** As most clients read. */
const LENIENT = { allowTrailingComma: true, disallowComments: false, allowEmptyContent: true }
const STRICT = { allowTrailingComma: false, disallowComments: true, allowEmptyContent: true }

/**
 * Servers in an object of a JSON file, edited as text: comments, indents, order, trailing commas and line breaks stay.
 * A file without a value is one with `{}`. `isStrict`: its client reads no comments and no trailing commas.
 */
export function jsonFormat(
  container: string,
  { isStrict = false, shape = USUAL_SHAPE }: { readonly isStrict?: boolean; readonly shape?: EntryShape } = {}
): ServerFormat {
  return {
    find(text, name) {
      const property = entryOf(rootOf(text), container, name)
      if (isStrict) checkStrict(text)
      return property === null ? undefined : shape.read(valueOf(property))
    },
    put(text, name, entry) {
      const found = shape.read(entryValue(text, container, name))
      const isOurs = found !== undefined && stateOf(found, entry) !== 'foreign'
      return put(text, { container, name, entry: shape.write(entry, name) }, isOurs)
    },
    remove: (text, name) => remove(text, container, name)
  }
}

interface WantedFormat {
  readonly container: string
  readonly name: string
  readonly entry: EntryValues
}

function put(text: string, wanted: WantedFormat, isOurs: boolean): string {
  const { container, name, entry } = wanted
  const root = rootOf(text)
  if (root === null) return checked(text, text + newFile(text, wanted), { container, name, entry })
  const property = entryOf(root, container, name)
  if (property === null) return checked(text, edited(text, addition(text, root, wanted)), { container, name, entry })
  if (isOurs) return updated(text, wanted, valueOf(property) as EntryValues)
  const node = property.children?.[1] as Node
  const indent = hasBreak(text, node) ? lineIndent(text, property.offset) : null
  const result = edited(text, [replacement(node, rendered(entry, indent, styleOf(text, root)))])
  return checked(text, result, { container, name, entry })
}

/** Brings the keys of an entry of ours up to date one by one; further ones, and comments, are the user's. */
function updated(text: string, { container, name, entry }: WantedFormat, found: EntryValues): string {
  let result = text
  for (const [key, value] of Object.entries(entry)) {
    if (isDeepStrictEqual(found[key], value)) continue
    const root = rootOf(result)
    const object = entryOf(root, container, name)?.children?.[1] as Node
    const style = styleOf(result, root)
    const old = propertyOf(object, key)?.children?.[1]
    if (old === undefined)
      result = edited(
        result,
        added(result, object, () => `"${key}": ${JSON.stringify(value)}`)
      )
    else
      result = edited(result, [
        replacement(old, rendered(value, hasBreak(result, old) ? lineIndent(result, old.offset) : null, style))
      ])
  }
  return checked(text, result, { container, name, entry: { ...found, ...entry } })
}

/** The entry in its container, which is made where there is none. */
function addition(text: string, root: Node, { container, name, entry }: WantedFormat): TextEdit[] {
  const style = styleOf(text, root)
  const property = propertyOf(root, container)
  if (property !== null) {
    const servers = property.children?.[1] as Node
    const isEmpty = (servers.children ?? []).length === 0
    // In the user's own empty container the entry is one line: `isMadeHere` then does not remove that container.
    return added(text, servers, (indent) => `"${name}": ${rendered(entry, isEmpty ? null : indent, style)}`)
  }
  return added(text, root, (indent) => newContainer({ container, name, entry }, indent ?? '', style))
}

function newContainer({ container, name, entry }: WantedFormat, indent: string, style: TextStyle): string {
  const inner = indent + style.unit
  return `"${container}": {${style.eol}${inner}"${name}": ${rendered(entry, inner, style)}${style.eol}${indent}}`
}

function newFile(text: string, wanted: WantedFormat): string {
  const style = styleOf(text, null)
  const start = text === '' || text.endsWith('\n') ? '' : style.eol
  return `${start}{${style.eol}${style.unit}${newContainer(wanted, style.unit, style)}${style.eol}}${style.eol}`
}

function remove(text: string, container: string, name: string): string {
  const root = rootOf(text)
  if (root === null || entryOf(root, container, name) === null) return text
  const outer = propertyOf(root, container) as Node
  const servers = outer.children?.[1] as Node
  const property = propertyOf(servers, name) as Node
  const edits = isMadeHere(text, servers, property) ? removed(text, root, outer) : removed(text, servers, property)
  return checked(text, edited(text, edits), { container, name, entry: undefined })
}

/** Was the container made for this entry? Then nothing else is in it, and the entry stands on several lines. */
function isMadeHere(text: string, servers: Node, property: Node): boolean {
  if (servers.children?.length !== 1 || !hasBreak(text, property)) return false
  const before = text.slice(servers.offset + 1, property.offset)
  const behind = text.slice(property.offset + property.length, servers.offset + servers.length - 1)
  return `${before}${behind}`.trim() === ''
}

/** A value as text; on several lines from an indent on. */
function rendered(value: unknown, indent: Indent, { eol, unit }: TextStyle): string {
  return indent === null ? JSON.stringify(value) : JSON.stringify(value, null, unit).replaceAll('\n', eol + indent)
}

function replacement(node: Node, text: string): TextEdit {
  return { start: node.offset, end: node.offset + node.length, text }
}

function hasBreak(text: string, node: Node): boolean {
  return /[\r\n]/.test(text.slice(node.offset, node.offset + node.length))
}

/** The property of an entry, a node of the tree that is given; null for none. @throws NodeError CONFIG_INVALID */
function entryOf(root: Node | null, container: string, name: string): Node | null {
  const outer = root === null ? null : propertyOf(root, container)
  const servers = outer?.children?.[1]
  if (servers === undefined) return null
  if (servers.type !== 'object') throw notUnderstood(`${container} is no object`)
  return propertyOf(servers, name)
}

/** @throws NodeError CONFIG_INVALID for a text that only others would read */
function checkStrict(text: string): void {
  const errors: ParseError[] = []
  parsed(() => parseTree(text, errors, STRICT))
  const [error] = errors
  if (error === undefined) return
  const line = text.slice(0, error.offset).split('\n').length
  throw notUnderstood(`line ${line} has a comment or a trailing comma, so its client cannot read this file at all`)
}

/** The object of a text; null when there is no value in it at all. @throws NodeError CONFIG_INVALID */
function rootOf(text: string): Node | null {
  const errors: ParseError[] = []
  const root = parsed(() => parseTree(text, errors, LENIENT))
  const [error] = errors
  if (error !== undefined) {
    const line = text.slice(0, error.offset).split('\n').length
    throw notUnderstood(`line ${line} is no JSON: ${printParseErrorCode(error.error)}`)
  }
  if (root === undefined) return null
  if (root.type !== 'object') throw notUnderstood('it holds no object')
  return root
}

function propertyOf(object: Node, key: string): Node | null {
  const found = (object.children ?? []).filter((one) => one.children?.[0]?.value === key)
  // Which one a client takes is its own affair.
  if (found.length > 1) throw notUnderstood(`${key} is there ${found.length} times`)
  return found[0] ?? null
}

function entryValue(text: string, container: string, name: string): unknown {
  const property = entryOf(rootOf(text), container, name)
  return property === null ? undefined : valueOf(property)
}

function valueOf(property: Node): unknown {
  return plain(getNodeValue(property.children?.[1] as Node))
}

/** The edited text, when it says what the first one says but for the entry. @throws NodeError INTERNAL */
function checked(before: string, after: string, check: EditCheck): string {
  parsed(() => checkEdit(valuesOf(before), valuesOf(after), check))
  return after
}

function valuesOf(text: string): EntryValues {
  return plain(parsed(() => parse(text, [], LENIENT) as unknown) ?? {}) as EntryValues
}

/** Without what a member `__proto__` does to the objects that the parser makes. */
function plain(value: unknown): unknown {
  return parsed(() => JSON.parse(JSON.stringify(value)) as unknown)
}

function parsed<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    // The parser calls itself for each level, and so does whoever compares.
    if (error instanceof RangeError) throw notUnderstood('it is nested too deep')
    throw error
  }
}
