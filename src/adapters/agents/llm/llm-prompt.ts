import { isRecord, parseJson, RESULT_LIMITS } from '../../../kit/json.js'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { Part } from '../../../domain/gateway/message.js'
import type { AgentDefinition, AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { failure } from '../files/hosted-agent.js'

/** The system prompt: the text of the agent file, then the node's facts of the task. */
export function systemPrompt(definition: AgentDefinition, instructions: string, capabilityId: string): string {
  const capability = definition.capabilities.find(({ id }) => id === capabilityId)
  const parts = [instructions.trim()]
  if (capability !== undefined && definition.capabilities.length > 1)
    parts.push(
      `You are asked for ${capability.id}${capability.description === '' ? '' : `: ${capability.description}`}`
    )
  if (capability !== undefined && wantsJson(capability))
    parts.push(
      `Answer with JSON alone, without any other text. It must fit this JSON Schema: ${JSON.stringify(capability.outputSchema)}`
    )
  return parts.filter((part) => part !== '').join('\n\n')
}

/**
 * The user message: the goal, if any, and the input. Text, `{text}` and `{prompt}` stay as they are, other inputs
 * become JSON.
 */
export function userPrompt({ description, input }: Pick<AgentTask, 'description' | 'input'>): string {
  return [description, inputText(input)].filter((part) => part !== '').join('\n\n')
}

/** A message for a model. */
interface PromptMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/**
 * The question of a task and, before it, what its client and the agent said: the newest within `maxBytes` (UTF-8). The
 * first is of the user, and two in a row never have one role: many models demand that.
 */
export function promptMessages(task: AgentTask, maxBytes: number): readonly PromptMessage[] {
  const messages: PromptMessage[] = [{ role: 'user', content: userPrompt(task) }]
  let left = maxBytes
  for (const { role: speaker, parts } of [...(task.conversation?.history ?? [])].reverse()) {
    const content = parts.map(partText).join('\n')
    left -= Buffer.byteLength(content)
    if (left < 0) break
    const role = speaker === 'user' ? 'user' : 'assistant'
    const [next] = messages
    if (next?.role === role) messages[0] = { role, content: `${content}\n\n${next.content}` }
    else messages.unshift({ role, content })
  }
  return messages[0]?.role === 'assistant' ? messages.slice(1) : messages
}

/** A part as text. Of a file a model gets the name alone. */
function partText({ text, data, url, filename, mediaType }: Part): string {
  if (text !== undefined && text !== '') return text
  if (data !== undefined) return JSON.stringify(data)
  return `[file ${filename ?? url ?? ''} ${mediaType ?? ''}]`.replaceAll(/ +(?=\])/g, '')
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
 * The last answer of the model as the result of a capability: its text, or its JSON where the capability gives no text.
 * Many models write around it, against their instructions: then the only fence counts, or the only object or array.
 */
export function answerOf(text: string, capability: CapabilityDescriptor | undefined): AgentOutcome {
  if (capability === undefined || !wantsJson(capability)) return { ok: true, result: text }
  const whole = parseJson(text, RESULT_LIMITS)
  if (whole.ok) return { ok: true, result: whole.value }
  const inFence = parseJson(fenced(text), RESULT_LIMITS)
  if (inFence.ok) return { ok: true, result: inFence.value }
  const values = jsonWithin(text, typesOf(capability))
  const [value] = values
  if (values.length === 1) return { ok: true, result: value }
  const reason = values.length === 0 ? `is no JSON: ${whole.reason}` : 'has more than one JSON value'
  return failure('INVALID_OUTPUT', `the answer of the model ${reason}`)
}

/** The content of the only fence in a text; empty for none, or several. */
function fenced(text: string): string {
  const lines = text.split('\n')
  const marks = lines.flatMap((line, at) => (line.trimStart().startsWith('```') ? [at] : []))
  return marks.length === 2 ? lines.slice((marks[0] ?? 0) + 1, marks[1]).join('\n') : ''
}

/**
 * The objects and arrays in a text, as far as a capability may give them. The content of brackets is one value or none:
 * a part of a broken value is no answer.
 */
function jsonWithin(text: string, types: ReadonlySet<unknown>): readonly unknown[] {
  const values: unknown[] = []
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== '{' && text[at] !== '[') continue
    const end = endOfBrackets(text, at)
    const parsed = parseJson(text.slice(at, end), RESULT_LIMITS)
    if (parsed.ok && types.has(text[at] === '{' ? 'object' : 'array')) values.push(parsed.value)
    at = end - 1
  }
  return values
}

/** Where the brackets that open at a place are all closed; the end of the text when they are not. */
function endOfBrackets(text: string, from: number): number {
  let [depth, isText] = [0, false]
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (isText && char === '\\') at++
    else if (char === '"') isText = !isText
    else if (!isText && (char === '{' || char === '[')) depth++
    else if (!isText && (char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return text.length
}

function typesOf({ outputSchema }: CapabilityDescriptor): ReadonlySet<unknown> {
  return new Set(isRecord(outputSchema) ? [outputSchema['type']].flat() : [undefined])
}

/** Does a capability give something that cannot be a text? */
function wantsJson(capability: CapabilityDescriptor): boolean {
  const types = typesOf(capability)
  return !types.has(undefined) && !types.has('string')
}
