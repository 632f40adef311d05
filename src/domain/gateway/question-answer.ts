import { NodeError } from '../../kit/errors.js'
import { isRecord, parseJson, SIZED_LIMITS } from '../../kit/json.js'
import { boundedCheck, schemaCost } from '../../kit/schema/cost.js'
import { faultText, shapeText } from '../../kit/schema/text.js'
import type { Check, CompileSchema, SchemaFault } from '../../kit/sign.js'
import { inputOf, SCHEMA_TYPE } from './content.js'
import type { Message, Part } from './message.js'

const TOO_MUCH: readonly SchemaFault[] = [{ path: '', message: 'has more parts than can be checked' }]

/**
 * Why a client's answer does not fit the schema beside its agent's question; null: it fits, or there is no usable
 * schema. An answer fits as its text, as the JSON of its text or data, or as the input of the agent. Bounded in time.
 */
export function answerFault(
  compileSchema: CompileSchema,
  question: Pick<Message, 'parts'> | null,
  parts: readonly Part[]
): NodeError | null {
  const schema = question?.parts.find(({ mediaType }) => mediaType === SCHEMA_TYPE)?.data
  const check = schema === undefined ? null : checkOf(compileSchema, schema)
  if (check === null) return null
  const readings = readingsOf(parts)
  const [first = []] = readings.map((reading) => check(reading))
  if (first.length === 0 || readings.slice(1).some((reading) => check(reading).length === 0)) return null
  return new NodeError('INVALID_INPUT', `the answer does not fit the schema of the question: ${faultText(first)}`, {
    data: { faults: first, expected: shapeText(schema) }
  })
}

/** null: it is no schema, or one that refers to itself: no answer could be checked in bounded time. */
function checkOf(compileSchema: CompileSchema, schema: unknown): Check | null {
  if (isRecord(schema) && schemaCost(schema) === Number.POSITIVE_INFINITY) return null
  try {
    return boundedCheck(compileSchema(schema), schema, TOO_MUCH)
  } catch {
    return null
  }
}

/** The values that an answer may stand for, the likeliest first. */
function readingsOf(parts: readonly Part[]): readonly unknown[] {
  const data = parts.flatMap((part) => (part.data === undefined ? [] : [part.data]))
  const input = inputOf(parts)
  if (data.length > 0) return [data.length === 1 ? data[0] : data, input]
  const text = parts.flatMap((part) => part.text ?? []).join('\n')
  const parsed = parseJson(text, SIZED_LIMITS)
  return parsed.ok ? [parsed.value, text, input] : [text, input]
}
