import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'
import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { inputOf } from '../../../domain/gateway/content.js'
import type { Part } from '../../../domain/gateway/message.js'
import type { Gateway, OutputRules, OutputViolation } from '../../../ports/gateway.js'

/** Direction of a content: to an agent, or from it. */
export type GuardedSide = 'input' | 'output'

/** Limits of a text: its length, and denied patterns (RE2 syntax, checked with the config). */
export interface GuardrailRules {
  readonly maxLength: number
  readonly deny: readonly string[]
}

/** A broken rule, without the content; a pattern is given by its index in the config. */
export type Violation =
  | { readonly on: GuardedSide; readonly rule: 'maxLength'; readonly limit: number; readonly length: number }
  | { readonly on: GuardedSide; readonly rule: 'deny'; readonly place: number }

interface CompiledGuardrail {
  readonly maxLength: number
  readonly deny: readonly RE2JS[]
}

/** The compiled rules of a config. A check takes linear time in the length of the text. */
export class Guardrails {
  readonly #rules: Readonly<Record<GuardedSide, CompiledGuardrail>>

  constructor({ input, output }: Readonly<Record<GuardedSide, GuardrailRules>>) {
    this.#rules = { input: compiled(input), output: compiled(output) }
  }

  /** Must output be held back until it is complete? Only then a pattern is known to be absent. */
  get holdsOutputBack(): boolean {
    return this.#rules.output.deny.length > 0
  }

  /** The first rule that the texts of a JSON value break; null: none. Never throws. */
  violation(on: GuardedSide, value: unknown): Violation | null {
    const text = guardedText(value)
    return this.lengthViolation(on, text.length) ?? this.#denied(on, text)
  }

  #denied(on: GuardedSide, text: string): Violation | null {
    const place = this.#rules[on].deny.findIndex((pattern) => pattern.test(text))
    return place === -1 ? null : { on, rule: 'deny', place }
  }

  /** The rules of output, for the tasks of the gateway. */
  get output(): OutputRules {
    const reported = (broken: Violation | null): OutputViolation | null =>
      broken === null ? null : { words: violationText(broken), details: broken }
    return {
      holdsBack: this.holdsOutputBack,
      lengthOf: (value) => guardedText(value).length,
      tooLong: (length) => reported(this.lengthViolation('output', length)),
      denied: (value) => reported(this.#denied('output', guardedText(value))),
      violation: (value) => reported(this.violation('output', value))
    }
  }

  /** The first rule that a message breaks, as sent or, when its text is JSON, in the form for the agent. */
  inputViolation(parts: readonly Part[]): Violation | null {
    const whole = parts.map((part) => part.text ?? guardedText([part.data, part.url, part.filename])).join('\n')
    const texts = parts.filter(({ text }) => text !== undefined)
    const input = texts.length === 0 ? null : inputOf(texts)
    const stated = texts.length === parts.length ? whole : texts.map(({ text }) => text).join('\n')
    const isRead = isRecord(input) && input['text'] !== stated
    return this.violation('input', whole) ?? (isRead ? this.violation('input', input) : null)
  }

  /** The violation of a length beyond the limit; null: none. */
  lengthViolation(on: GuardedSide, length: number): Violation | null {
    const { maxLength } = this.#rules[on]
    return length > maxLength ? { on, rule: 'maxLength', limit: maxLength, length } : null
  }
}

/** Wraps a gateway; refuses messages whose content breaks a rule. */
export function guardedGateway(gateway: Gateway, guardrails: Guardrails): Gateway {
  return {
    push: gateway.push,
    send: (by, request) => {
      const broken = guardrails.inputViolation(request.message.parts)
      if (broken === null) return gateway.send(by, request)
      return Promise.reject(new NodeError('INVALID_INPUT', violationText(broken), { data: broken }))
    },
    get: (by, id, options) => gateway.get(by, id, options),
    isOf: (by, id, agentName) => gateway.isOf(by, id, agentName),
    list: (by, filter, page) => gateway.list(by, filter, page),
    cancel: (by, id, options) => gateway.cancel(by, id, options),
    follow: (by, id, options) => gateway.follow(by, id, options)
  }
}

/** Describes a violation. */
export function violationText(broken: Violation): string {
  const what = broken.on === 'input' ? 'what is sent' : 'what the agent gave'
  if (broken.rule === 'maxLength')
    return `${what} has ${broken.length} characters, more than the ${broken.limit} that are allowed`
  return `${what} has a text that is denied (a2a.guardrails.${broken.on}.deny, pattern ${broken.place + 1})`
}

/**
 * All texts, numbers and member names of a JSON value, one a line, without JSON escapes, as an agent sees them. Byte
 * arrays are ignored.
 */
export function guardedText(value: unknown): string {
  if (typeof value === 'string') return value
  const lines: string[] = []
  const open: unknown[] = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one === 'string') lines.push(one)
    else if (typeof one === 'number' || typeof one === 'boolean') lines.push(String(one))
    else if (Array.isArray(one)) for (let i = one.length - 1; i >= 0; i--) open.push(one[i])
    else if (typeof one === 'object' && one !== null && !ArrayBuffer.isView(one))
      for (const [name, member] of Object.entries(one).reverse()) open.push(member, name)
  }
  return lines.join('\n')
}

function compiled({ maxLength, deny }: GuardrailRules): CompiledGuardrail {
  if (deny.length === 0) return { maxLength, deny: [] }
  // Most nodes have no pattern, and its tables stay in memory.
  const { RE2JS: Engine } = createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }
  return { maxLength, deny: deny.map((pattern) => Engine.compile(pattern)) }
}
