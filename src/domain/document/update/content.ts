import { JSON_LIMITS, parseJson } from '../../../kit/json.js'
import { type UpdateCursor, UpdateFault } from './bytes.js'

/** Kinds of shared types, by number: list, map, text, XML element, fragment, hook, XML text. */
const TYPE_COUNT = 7
const NAMED_TYPES = new Set([3, 5])
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

/** Reads content of one kind; how many clocks it takes. */
type ContentReader = (cursor: UpdateCursor) => number

/**
 * By the lower five bits of an item's first byte, as Yjs numbers them. 0 and 10 are no items; 9 would be a document in
 * a document.
 */
const READERS: Readonly<Record<number, ContentReader>> = {
  1: (cursor) => cursor.uint(),
  2: (cursor) => repeat(cursor, (each) => readElement(each, 2)),
  3: (cursor) => one(cursor.take(cursor.uint())),
  4: (cursor) => cursor.text().length,
  5: (cursor) => one(json(cursor.text())),
  6: (cursor) => one(cursor.text(), json(cursor.text())),
  7: (cursor) => one(sharedType(cursor)),
  8: (cursor) => repeat(cursor, (each) => readElement(each, 8))
}

/**
 * Reads the content of an item, as Yjs will read it again once it is known to be harmless.
 * Returns the clocks that it takes. @throws UpdateFault for content that Yjs does not know, or would throw at
 */
export function readContent(cursor: UpdateCursor, kind: number): number {
  const reader = READERS[kind]
  if (reader === undefined)
    throw new UpdateFault(kind === 9 ? 'a document inside of a document' : 'content of an unknown kind')
  return reader(cursor)
}

/** Reads one value of content that is a list of values, of the same kind as {@link readContent}. @throws UpdateFault */
export function readElement(cursor: UpdateCursor, kind: number): void {
  if (kind === 2) jsonOrUndefined(cursor)
  else anyValue(cursor, 0)
}

function one(..._read: readonly unknown[]): number {
  return 1
}

function repeat(cursor: UpdateCursor, read: (cursor: UpdateCursor) => void): number {
  const count = cursor.count(1)
  for (let i = 0; i < count; i++) read(cursor)
  return count
}

function json(text: string): void {
  const parsed = parseJson(text)
  if (!parsed.ok) throw new UpdateFault(`a JSON value: ${parsed.reason}`)
}

function jsonOrUndefined(cursor: UpdateCursor): void {
  const text = cursor.text()
  if (text !== 'undefined') json(text)
}

function sharedType(cursor: UpdateCursor): void {
  const type = cursor.uint()
  if (type >= TYPE_COUNT) throw new UpdateFault('a shared type of an unknown kind')
  if (NAMED_TYPES.has(type)) cursor.text()
}

/**
 * A value as lib0 writes it: 127 undefined, 126 null, 125 to 123 numbers, booleans, text, object, list, bytes. Not 122,
 * a bigint: it has no JSON form.
 */
function anyValue(cursor: UpdateCursor, depth: number): void {
  switch (cursor.byte()) {
    case 127:
    case 126:
    case 121:
    case 120:
      return
    case 125:
      return cursor.skipInt()
    case 124:
      return void cursor.take(4)
    case 123:
      return void cursor.take(8)
    case 119:
      return void cursor.text()
    case 118:
      return members(cursor, inner(depth))
    case 117:
      return void repeat(cursor, (each) => anyValue(each, inner(depth)))
    case 116:
      return void cursor.take(cursor.uint())
    default:
      throw new UpdateFault('a value of an unknown kind')
  }
}

function inner(depth: number): number {
  if (depth >= JSON_LIMITS.maxDepth) throw new UpdateFault(`nested deeper than ${JSON_LIMITS.maxDepth}`)
  return depth + 1
}

function members(cursor: UpdateCursor, depth: number): void {
  const count = cursor.count(2)
  if (count > JSON_LIMITS.maxKeys) throw new UpdateFault(`an object with more than ${JSON_LIMITS.maxKeys} keys`)
  for (let i = 0; i < count; i++) {
    const key = cursor.text()
    if (FORBIDDEN.has(key)) throw new UpdateFault(`the key ${key} is not allowed`)
    anyValue(cursor, depth)
  }
}
