import { NodeError } from '../../kit/errors.js'
import { parseJson, SIZED_LIMITS } from '../../kit/json.js'
import { usableCheck } from '../../kit/schema/usable-check.js'
import { faultText, shapeText } from '../../kit/schema/text.js'
import type { CompileSchema } from '../../kit/sign.js'
import { inputOf, SCHEMA_TYPE } from './content.js'
import type { Message, Part } from './message.js'

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
  const check = usableCheck(compileSchema, schema)
  if (typeof check === 'string') return null
  const readings = readingsOf(parts)
  const [first = []] = readings.map((reading) => check(reading))
  if (first.length === 0 || readings.slice(1).some((reading) => check(reading).length === 0)) return null
  return new NodeError('INVALID_INPUT', `the answer does not fit the schema of the question: ${faultText(first)}`, {
    data: { faults: first, expected: shapeText(schema) }
  })
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
