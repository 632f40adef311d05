import { isRecord, jsonFault, parseJson } from '../../../kit/json.js'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { AgentDefinition, AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { failure } from '../files/hosted-agent.js'

/** Characters of an answer that are searched for JSON, all attempts together. */
const MAX_SEARCH = 4_194_304

/** The system prompt: the text of the agent file, then the node's facts of the task. */
export function systemPrompt(definition: AgentDefinition, instructions: string, capabilityId: string): string {
  const capability = definition.capabilities.find(({ id }) => id === capabilityId)
  const parts = [instructions.trim()]
  if (capability !== undefined && definition.capabilities.length > 1)
    parts.push(`You are asked for ${capability.id}${capability.description === '' ? '' : `: ${capability.description}`}`)
  if (capability !== undefined && wantsJson(capability))
    parts.push(`Answer with JSON alone, without any other text. It must fit this JSON Schema: ${JSON.stringify(capability.outputSchema)}`)
  return parts.filter((part) => part !== '').join('\n\n')
}

/** The user message: the goal, if any, and the input. Text, `{text}` and `{prompt}` stay as they are, other inputs become JSON. */
export function userPrompt({ description, input }: Pick<AgentTask, 'description' | 'input'>): string {
  return [description, inputText(input)].filter((part) => part !== '').join('\n\n')
}

function inputText(input: unknown): string {
  if (typeof input === 'string') return input
  if (isRecord(input) && Object.keys(input).length === 1) {
    const { text, prompt } = input
    if (typeof text === 'string') return text
    if (typeof prompt === 'string') return prompt
  }
  return JSON.stringify(input) ?? ''
}

/**
 * The last answer of the model as the result of a capability: its text, or its JSON where the capability gives no text. Many models write
 * around it, against their instructions: then the only JSON value in it counts.
 */
export function answerOf(text: string, capability: CapabilityDescriptor | undefined): AgentOutcome {
  if (capability === undefined || !wantsJson(capability)) return { ok: true, result: text }
  const parsed = parseJson(text)
  if (parsed.ok) return checked(parsed.value)
  const values = jsonWithin(text, typesOf(capability))
  if (values.length === 1) return checked(values[0])
  const reason = values.length === 0 ? `is no JSON: ${parsed.reason}` : 'has more than one JSON value'
  return failure('INVALID_OUTPUT', `the answer of the model ${reason}`)
}

function checked(value: unknown): AgentOutcome {
  const fault = jsonFault(value)
  return fault === null ? { ok: true, result: value } : failure('INVALID_OUTPUT', `the answer of the model: ${fault}`)
}

/** The objects and arrays in a text, as far as a capability may give them; at most two. */
function jsonWithin(text: string, types: ReadonlySet<unknown>): readonly unknown[] {
  const opens = [...(types.has('object') ? ['{'] : []), ...(types.has('array') ? ['['] : [])]
  const values: unknown[] = []
  let left = MAX_SEARCH
  for (let at = 0; at < text.length && left > 0 && values.length < 2; at++) {
    if (!opens.includes(text[at] ?? '')) continue
    const end = endOfValue(text, at, left)
    left -= end - at
    const parsed = parseJson(text.slice(at, end))
    if (!parsed.ok) continue
    values.push(parsed.value)
    at = end - 1
  }
  return values
}

/** Where the brackets that open at a place are all closed; else the place after `most` characters. */
function endOfValue(text: string, from: number, most: number): number {
  const last = Math.min(text.length, from + most)
  let [depth, isText] = [0, false]
  for (let at = from; at < last; at++) {
    const char = text[at]
    if (isText && char === '\\') at++
    else if (char === '"') isText = !isText
    else if (!isText && (char === '{' || char === '[')) depth++
    else if (!isText && (char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return last
}

function typesOf({ outputSchema }: CapabilityDescriptor): ReadonlySet<unknown> {
  return new Set(isRecord(outputSchema) ? [outputSchema['type']].flat() : [undefined])
}

/** Does a capability give something that cannot be a text? */
function wantsJson(capability: CapabilityDescriptor): boolean {
  const types = typesOf(capability)
  return !types.has(undefined) && !types.has('string')
}
