import { isRecord } from '../../../kit/json.js'
import { A2A_NULLS } from '../../../kit/schema/nulls.js'
import { invalid } from './read-params.js'

const SNAKE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$/

/** The lowerCamelCase form of a field name of ProtoJSON: `page_size` is `pageSize`; other names stay. */
export function fieldName(name: string): string {
  return SNAKE.test(name) ? name.replaceAll(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase()) : name
}

/**
 * Parameters of bounded depth with field names in lowerCamelCase. Readers of ProtoJSON accept the names of the proto
 * file as well (https://protobuf.dev/programming-guides/json/). Data of the client keeps its names. Returns the value
 * itself when nothing changes.
 * @throws A2AFault INVALID_PARAMS for a field that has both forms
 */
export function withFieldNames(value: unknown): unknown {
  return named(value, '')
}

function named(value: unknown, place: string): unknown {
  if (Array.isArray(value)) return namedList(value, place)
  if (!isRecord(value)) return value
  let copy: Record<string, unknown> | null = null
  for (const name of Object.keys(value)) {
    const field = fieldName(name)
    if (field !== name && Object.hasOwn(value, field)) throw invalid(`${place}${name}`, `is given as ${field} too`)
    const member = value[name]
    const next = A2A_NULLS.data.has(field) ? member : named(member, `${place}${field}.`)
    if (field === name && next === member) continue
    copy ??= { ...value }
    if (field !== name) delete copy[name]
    copy[field] = next
  }
  return copy ?? value
}

function namedList(list: readonly unknown[], place: string): readonly unknown[] {
  let copy: unknown[] | null = null
  for (let at = 0; at < list.length; at++) {
    const next = named(list[at], place)
    if (next === list[at]) continue
    copy ??= [...list]
    copy[at] = next
  }
  return copy ?? list
}
