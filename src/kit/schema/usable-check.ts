import { messageOf } from '../errors.js'
import { isRecord } from '../json.js'
import type { Check, CompileSchema, SchemaFault } from '../sign.js'
import { boundedCheck, schemaCost } from './cost.js'

const TOO_MUCH: readonly SchemaFault[] = [{ path: '', message: 'has more parts than can be checked' }]

/** The check by a foreign schema, bounded in time; or why there is none. Never throws. */
export function usableCheck(compileSchema: CompileSchema, schema: unknown): Check | string {
  if (!isRecord(schema)) return 'it is no object'
  // No value with parts could be checked in bounded time.
  if (schemaCost(schema) === Number.POSITIVE_INFINITY) return 'it refers to itself, or is too large'
  try {
    return boundedCheck(compileSchema(schema), schema, TOO_MUCH)
  } catch (error) {
    return messageOf(error)
  }
}
