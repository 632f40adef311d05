import { isRecord, jsonFault, parseJson } from '../../../kit/json.js'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { AgentDefinition, AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { failure } from '../files/hosted-agent.js'

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

/** The last answer of the model as the result of a capability: its text, or its JSON where the capability gives no text. */
export function answerOf(text: string, capability: CapabilityDescriptor | undefined): AgentOutcome {
  if (capability === undefined || !wantsJson(capability)) return { ok: true, result: text }
  // Many models put it in a fence, against their instructions.
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text.trim())
  const parsed = parseJson(fenced?.[1] ?? text)
  if (!parsed.ok) return failure('INVALID_OUTPUT', `the answer of the model is no JSON: ${parsed.reason}`)
  const fault = jsonFault(parsed.value)
  return fault === null ? { ok: true, result: parsed.value } : failure('INVALID_OUTPUT', `the answer of the model: ${fault}`)
}

/** Does a capability give something that cannot be a text? */
function wantsJson({ outputSchema }: CapabilityDescriptor): boolean {
  if (!isRecord(outputSchema) || outputSchema['type'] === undefined) return false
  return ![outputSchema['type']].flat().includes('string')
}
