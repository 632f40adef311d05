import { isDeepStrictEqual } from 'node:util'
import { type Document, isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'
import { NodeError } from '../../kit/errors.js'
import { checkEdit, type EditCheck, type EntryValues, notUnderstood, type ServerFormat, stateOf } from './entry.js'
import { edited, eolOf, type TextEdit } from './json-text.js'
import type { EntryShape } from './shapes.js'

/** Spaces of a level in a file without any. */
const INDENT = '  '

/**
 * Servers in a mapping of a YAML file, edited as text: comments, order and quotes stay. Mappings in braces are not
 * edited.
 */
export function yamlFormat(container: string, shape: EntryShape): ServerFormat {
  const found = (text: string, name: string): unknown => serversOf(valuesOf(text), container)[name]
  const checked = (before: string, edits: readonly TextEdit[], check: Omit<EditCheck, 'container'>): string => {
    const after = edited(before, edits)
    checkEdit(valuesOf(before), valuesOf(after), { container, ...check })
    return after
  }
  return {
    find: (text, name) => shape.read(found(text, name)),
    put(text, name, entry) {
      const [old, wanted] = [found(text, name), shape.write(entry, name)]
      if (old === undefined) return checked(text, addition(text, container, [name, wanted]), { name, entry: wanted })
      if (stateOf(shape.read(old), entry) === 'foreign')
        return checked(text, replacement(text, container, [name, wanted]), { name, entry: wanted })
      // Whether it is on, and further keys, are the user's.
      const { cmd, args } = wanted
      const changed = Object.entries({ cmd, args }).filter(
        ([key, value]) => !isDeepStrictEqual((old as EntryValues)[key], value)
      )
      const edits = changed.map(([key, value]) => newValue(text, [container, name, key], value))
      return checked(text, edits, { name, entry: { ...(old as EntryValues), cmd, args } })
    },
    remove: (text, name) =>
      found(text, name) === undefined
        ? text
        : checked(text, [removal(text, container, name)], { name, entry: undefined })
  }
}

/** Lines behind the last server, or a container at the end of the file. */
function addition(text: string, container: string, named: NamedEntry): TextEdit[] {
  const eol = eolOf(text)
  const servers = pairOf(documentOf(text), [container])
  if (servers === null) {
    const start = text === '' || text.endsWith('\n') ? '' : eol
    const lines = [`${container}:`, ...linesOf(named, INDENT)]
    return [{ start: text.length, end: text.length, text: `${start}${lines.join(eol)}${eol}` }]
  }
  const { items } = mapOf(servers, container)
  const last = items.at(-1) as Pair
  const end = lineEnd(text, endOf(last))
  const lines = linesOf(named, indentOf(text, items[0] as Pair)).join(eol)
  return [{ start: end, end, text: text[end - 1] === '\n' ? `${lines}${eol}` : `${eol}${lines}` }]
}

type NamedEntry = readonly [name: string, entry: Readonly<Record<string, unknown>>]

function linesOf([name, entry]: NamedEntry, indent: string): string[] {
  return [
    `${indent}${name}:`,
    ...Object.entries(entry).map(([key, value]) => `${indent}${INDENT}${key}: ${rendered(value)}`)
  ]
}

/** JSON is YAML, except for DEL. */
function rendered(value: unknown): string {
  return JSON.stringify(value).replaceAll('\u007f', '\\u007f')
}

function replacement(text: string, container: string, named: NamedEntry): TextEdit[] {
  const pair = pairOf(documentOf(text), [container, named[0]]) as Pair
  const [start, end] = [lineStart(text, startOf(pair)), lineEnd(text, endOf(pair))]
  const eol = eolOf(text)
  const lines = linesOf(named, indentOf(text, pair)).join(eol)
  return [{ start, end, text: text[end - 1] === '\n' ? `${lines}${eol}` : lines }]
}

/** @throws NodeError CONFIG_INVALID for a value that is written another way */
function newValue(text: string, keys: readonly string[], value: unknown): TextEdit {
  const pair = pairOf(documentOf(text), keys)
  const range = (pair?.value as { range?: readonly [number, number, number] } | null)?.range
  if (pair === null || range === undefined)
    throw notUnderstood(`${keys.join('.')} is written in a way that is not edited`)
  return { start: range[0], end: range[1], text: rendered(value) + (text[range[1] - 1] === '\n' ? '\n' : '') }
}

/** The lines of a server; with the container when it is the only one. */
function removal(text: string, container: string, name: string): TextEdit {
  const document = documentOf(text)
  const servers = pairOf(document, [container]) as Pair
  const isOnly = mapOf(servers, container).items.length === 1
  const pair = isOnly ? servers : (pairOf(document, [container, name]) as Pair)
  return { start: lineStart(text, startOf(pair)), end: lineEnd(text, endOf(pair)), text: '' }
}

/** The pair of a path of keys; null: there is none. @throws NodeError CONFIG_INVALID */
function pairOf(document: Document, keys: readonly string[]): Pair | null {
  let map: YAMLMap | null = document.contents === null ? null : blockMap(document.contents, 'the file')
  let pair: Pair | null = null
  for (const key of keys) {
    pair = map?.items.find((one) => isScalar(one.key) && one.key.value === key) ?? null
    if (pair === null) return null
    if (key !== keys.at(-1)) map = mapOf(pair, key)
  }
  return pair
}

function mapOf({ value }: Pair, name: string): YAMLMap {
  const map = blockMap(value, name)
  if (map.items.length === 0) throw notUnderstood(`${name} is empty`)
  return map
}

/** @throws NodeError CONFIG_INVALID for anything but a mapping on lines of its own */
function blockMap(value: unknown, name: string): YAMLMap {
  if (!isMap(value)) throw notUnderstood(`${name} is no mapping`)
  if (value.flow === true) throw notUnderstood(`${name} is written in braces, which are not edited`)
  return value
}

function startOf({ key }: Pair): number {
  return (key as { range: readonly [number, number, number] }).range[0]
}

/** The end of its value, or of its key without one. */
function endOf({ key, value }: Pair): number {
  const ranged = (value ?? key) as { range: readonly [number, number, number] }
  return ranged.range[1]
}

function indentOf(text: string, pair: Pair): string {
  return text.slice(lineStart(text, startOf(pair)), startOf(pair))
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

/** Behind the line break after a position, which may itself be behind one. */
function lineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === '\n') return at
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end + 1
}

function serversOf(values: EntryValues, container: string): EntryValues {
  const { [container]: servers = null } = values
  if (servers === null) return {}
  if (typeof servers !== 'object' || Array.isArray(servers)) throw notUnderstood(`${container} is no mapping`)
  return servers as EntryValues
}

function documentOf(text: string): Document {
  const document = parseDocument(text)
  const [error] = document.errors
  if (error !== undefined) throw notUnderstood(error.message.split('\n', 1)[0] ?? 'it is no YAML')
  return document
}

function valuesOf(text: string): EntryValues {
  try {
    const values = documentOf(text).toJS({ maxAliasCount: 100 }) as unknown
    if (values === null || values === undefined) return {}
    if (typeof values !== 'object' || Array.isArray(values)) throw notUnderstood('it is no mapping')
    return JSON.parse(JSON.stringify(values)) as EntryValues
  } catch (error) {
    if (error instanceof NodeError) throw error
    throw notUnderstood('its aliases or levels are too many')
  }
}
