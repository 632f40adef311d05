import { canonicalJson } from '../../kit/json.js'
import { type Lookup, type Reference, referenceOf } from '../../kit/template/fill.js'

/** Characters of a condition, at most. */
export const CONDITION_MAX = 1024
/** Levels of brackets and negations. */
const DEPTH_MAX = 16

/** A condition, taken apart. */
export type Condition =
  | { readonly type: 'value'; readonly value: unknown }
  | { readonly type: 'reference'; readonly reference: Reference }
  | { readonly type: 'not'; readonly of: Condition }
  | { readonly type: 'and' | 'or'; readonly left: Condition; readonly right: Condition }
  | { readonly type: 'compare'; readonly operator: Operator; readonly left: Condition; readonly right: Condition }

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>='

const TOKEN =
  /\s*(?:(\{[^{}]*\})|("(?:[^"\\]|\\.)*"|'[^']*')|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(==|!=|<=|>=|&&|\|\||[<>!()])|([A-Za-z]+))/y
const WORDS: Readonly<Record<string, string>> = { and: '&&', or: '||', not: '!' }
const LITERALS = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null]
])
const OPERATORS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])

type Token = { readonly symbol: string } | { readonly value: unknown } | { readonly reference: Reference }

/**
 * Parses a condition: references `{name/pointer}` and `{name:status}`, numbers, quoted texts, true, false and null.
 * Operators are `== != < <= > >=`, `&&`, `||`, `!` (or and, or, not) and brackets. Never throws.
 */
export function parseCondition(
  text: string
): { readonly ok: true; readonly condition: Condition } | { readonly ok: false; readonly reason: string } {
  if (text.length > CONDITION_MAX) return { ok: false, reason: `longer than ${CONDITION_MAX} characters` }
  const tokens = tokensOf(text)
  if (typeof tokens === 'string') return { ok: false, reason: tokens }
  const reader = new Reader(tokens)
  const condition = reader.either(0)
  if (condition === null || !reader.isAtEnd) return { ok: false, reason: reader.reason }
  return { ok: true, condition }
}

function tokensOf(text: string): Token[] | string {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  for (let at = 0; text.slice(at).trim() !== ''; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(text)
    if (match === null) return `it cannot be read from "${text.slice(at, at + 20).trim()}" on`
    const token = tokenOf(match)
    if (typeof token === 'string') return token
    tokens.push(token)
  }
  return tokens
}

function tokenOf([, braces, quoted, number, symbol, word = '']: RegExpExecArray): Token | string {
  if (braces !== undefined) {
    const reference = referenceOf(braces)
    return reference === null ? `${braces} names nothing` : { reference }
  }
  if (quoted !== undefined) return textOf(quoted)
  if (number !== undefined) return { value: Number(number) }
  if (symbol !== undefined) return { symbol }
  if (LITERALS.has(word)) return { value: LITERALS.get(word) }
  const known = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined
  return known === undefined ? `"${word}" is not a word of conditions; texts need quotes` : { symbol: known }
}

function textOf(quoted: string): Token | string {
  if (quoted.startsWith("'")) return { value: quoted.slice(1, -1) }
  try {
    return { value: JSON.parse(quoted) }
  } catch {
    return `${quoted} is no text`
  }
}

/** Reads tokens by the usual order: not, compare, and, or. */
class Reader {
  readonly #tokens: readonly Token[]
  #at = 0
  #reason: string | null = null

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  get isAtEnd(): boolean {
    return this.#at === this.#tokens.length
  }

  get reason(): string {
    return this.#reason ?? (this.isAtEnd ? 'something is missing at its end' : 'something is left over behind it')
  }

  either(depth: number): Condition | null {
    return this.#chain('||', () => this.#chain('&&', () => this.#comparison(depth)))
  }

  #chain(symbol: '&&' | '||', next: () => Condition | null): Condition | null {
    let left = next()
    while (left !== null && this.#take(symbol)) {
      const right = next()
      left = right === null ? null : { type: symbol === '&&' ? 'and' : 'or', left, right }
    }
    return left
  }

  #comparison(depth: number): Condition | null {
    const left = this.#operand(depth)
    const token = this.#tokens[this.#at]
    if (left === null || token === undefined || !('symbol' in token) || !OPERATORS.has(token.symbol)) return left
    this.#at++
    const right = this.#operand(depth)
    return right === null ? null : { type: 'compare', operator: token.symbol as Operator, left, right }
  }

  #operand(depth: number): Condition | null {
    if (depth > DEPTH_MAX) {
      this.#reason = 'nested too deeply'
      return null
    }
    if (this.#take('!')) {
      const of = this.#operand(depth + 1)
      return of === null ? null : { type: 'not', of }
    }
    if (this.#take('(')) {
      const inner = this.either(depth + 1)
      return inner !== null && this.#take(')') ? inner : null
    }
    const token = this.#tokens[this.#at]
    if (token === undefined || 'symbol' in token) return null
    this.#at++
    return 'reference' in token
      ? { type: 'reference', reference: token.reference }
      : { type: 'value', value: token.value }
  }

  #take(symbol: string): boolean {
    const token = this.#tokens[this.#at]
    if (token === undefined || !('symbol' in token) || token.symbol !== symbol) return false
    this.#at++
    return true
  }
}

/** Every reference of a condition. */
export function referencesOf(condition: Condition): Reference[] {
  switch (condition.type) {
    case 'value':
      return []
    case 'reference':
      return [condition.reference]
    case 'not':
      return referencesOf(condition.of)
    default:
      return [...referencesOf(condition.left), ...referencesOf(condition.right)]
  }
}

/**
 * Is a condition met? A missing value is null. null, false, 0 and '' are not met; every other value is. Values are
 * equal when their canonical JSON is. Only two numbers, or two texts, are ordered. Never throws.
 */
export function isMet(condition: Condition, lookup: Lookup): boolean {
  const value = valueOf(condition, lookup)
  return value !== null && value !== false && value !== 0 && value !== ''
}

function valueOf(condition: Condition, lookup: Lookup): unknown {
  switch (condition.type) {
    case 'value':
      return condition.value
    case 'reference':
      return lookup(condition.reference) ?? null
    case 'not':
      return !isMet(condition.of, lookup)
    case 'and':
      return isMet(condition.left, lookup) && isMet(condition.right, lookup)
    case 'or':
      return isMet(condition.left, lookup) || isMet(condition.right, lookup)
    case 'compare':
      return compares(condition.operator, valueOf(condition.left, lookup), valueOf(condition.right, lookup))
  }
}

function compares(operator: Operator, left: unknown, right: unknown): boolean {
  if (operator === '==') return isSame(left, right)
  if (operator === '!=') return !isSame(left, right)
  const areNumbers = typeof left === 'number' && typeof right === 'number'
  if (!areNumbers && !(typeof left === 'string' && typeof right === 'string')) return false
  if (operator === '<') return left < right
  if (operator === '<=') return left <= right
  return operator === '>' ? left > right : left >= right
}

function isSame(left: unknown, right: unknown): boolean {
  const text = sameText(left)
  return text !== null && text === sameText(right)
}

/**
 * Canonical JSON of a value for comparisons, bytes as their numbers. null for a value without that form: it equals
 * nothing.
 */
export function sameText(value: unknown): string | null {
  try {
    return canonicalJson(withoutBytes(value))
  } catch {
    return null
  }
}

function withoutBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: [...value] }
  if (Array.isArray(value)) return value.map(withoutBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutBytes(one)]))
}
