import type { z } from 'zod'
import { isRecord, JSON_LIMITS, jsonFault } from '../../../src/kit/json.js'
import { shown } from '../../../src/kit/text.js'
import { brokenRules } from './card-rules.js'
import { cardV03Schema, cardV1Schema } from './card-schema.js'

/** Errors that are told of one card. */
export const CARD_MAX_ERRORS = 256

/** Values in one card, at any depth: each may be an error. */
export const CARD_MAX_VALUES = 200_000

/** One thing that is wrong with a card. */
export interface CardError {
  /** JSON pointer into the card; '' is the card. */
  readonly path: string
  readonly message: string
}

/** What {@link validateCard} finds. */
export interface CardValidation {
  readonly valid: boolean
  /** Everything that is wrong, at once; at most {@link CARD_MAX_ERRORS}. */
  readonly errors: readonly CardError[]
  /** The versions that the card has the members of. A card of both must be right in both. */
  readonly versions: readonly ('1.0' | '0.3')[]
}

/** Checks a card that anybody wrote against the versions it claims to be of; one that claims none is checked as 1.0. Never throws. */
export function validateCard(value: unknown): CardValidation {
  try {
    return validated(value)
  } catch {
    return { valid: false, errors: [{ path: '', message: 'cannot be read' }], versions: [] }
  }
}

function validated(value: unknown): CardValidation {
  const fault = isRecord(value) ? (jsonFault(value, JSON_LIMITS) ?? countFault(value)) : 'must be an object'
  if (fault !== null || !isRecord(value)) return { valid: false, errors: [{ path: '', message: fault ?? '' }], versions: [] }
  const isOld = 'url' in value || 'protocolVersion' in value
  const versions = [...('supportedInterfaces' in value || !isOld ? (['1.0'] as const) : []), ...(isOld ? (['0.3'] as const) : [])]
  // What both versions say alike is told once.
  const found = new Map<string, CardError>()
  for (const version of versions) {
    const { error } = (version === '1.0' ? cardV1Schema : cardV03Schema).safeParse(value)
    const broken = [...(error?.issues ?? []).slice(0, CARD_MAX_ERRORS), ...brokenRules(value, version)]
    for (const one of broken.map(errorOf)) found.set(`${one.path} ${one.message}`, one)
  }
  const errors = [...found.values()].slice(0, CARD_MAX_ERRORS)
  return { valid: errors.length === 0, errors, versions }
}

function countFault(card: object): string | null {
  const stack: object[] = [card]
  let count = 0
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const items: readonly unknown[] = Object.values(top)
    count += items.length
    if (count > CARD_MAX_VALUES) return `has more than ${CARD_MAX_VALUES} values`
    for (const item of items) if (typeof item === 'object' && item !== null) stack.push(item)
  }
  return null
}

function errorOf({ path, message, code }: Pick<z.core.$ZodIssue, 'path' | 'message'> & { readonly code?: string }): CardError {
  const pointer = path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
  const isMissing = code === 'invalid_type' && message.endsWith('received undefined')
  return { path: shown(pointer), message: isMissing ? 'is missing' : shown(message) }
}
