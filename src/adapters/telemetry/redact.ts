import { messageOf } from '../../kit/errors.js'

/** Replacement for a secret value. */
export const REDACTED = '[REDACTED]'
const MAX_DEPTH = 6
/** Members of one object, and items of one list. */
const MAX_MEMBERS = 50
/** Values of one line in all. */
const MAX_VALUES = 500
const MAX_TEXT = 256

/** Keys whose values are never logged, ignoring case, `-` and `_`. */
export const REDACT_KEYS: readonly string[] = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'clientSecret',
  'secretKey',
  'privateKey',
  'encryptionKey',
  'seed',
  'token',
  'accessToken',
  'refreshToken',
  'idToken',
  'apiKey',
  'authorization',
  'proxyAuthorization',
  'credential',
  'credentials',
  'cookie',
  'setCookie',
  'inviteCode',
  'joinCode'
]

// C0 and C1 controls, line and paragraph separators, and the marks that turn the writing direction.
const CONTROL = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
// The first half of a surrogate pair whose second was cut off.
const HALF = /[\ud800-\udbff]$/

/**
 * A text with every control character as its escape (`\n` becomes `\u000a`), cut at 256 characters (spec mcp-runtime,
 * Sanitization).
 */
export function sanitized(text: string, max: number = MAX_TEXT): string {
  // Cut first: a text of many megabytes is not searched to its end.
  const head = text.length > max ? text.slice(0, max + 1) : text
  const clean = head.replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return clean.length > max ? `${clean.slice(0, max - 1).replace(HALF, '')}…` : clean
}

/** Makes values fit to be logged. */
export type Redact = (value: unknown) => unknown

/**
 * Makes a copy of a value for the log. Values of the given keys are `[REDACTED]` at every depth, ignoring case; texts
 * are sanitised; depth and size are bounded. The value itself is unchanged. Never throws.
 */
export function redactor(keys: readonly string[] = REDACT_KEYS): Redact {
  const hidden = new Set(keys.map(plainKey))
  return (value) => {
    try {
      return new Copy(hidden).of(value, 0)
    } catch (error) {
      // A getter or a proxy of somebody else.
      return `[unreadable: ${sanitized(messageOf(error), 64)}]`
    }
  }
}

/** `Api-Key`, `API_KEY` and `apiKey` are one. */
function plainKey(key: string): string {
  return key.toLowerCase().replace(/[-_]/g, '')
}

/** One copy under way: counts what it has taken. */
class Copy {
  readonly #hidden: ReadonlySet<string>
  readonly #above: object[] = []
  #left = MAX_VALUES

  constructor(hidden: ReadonlySet<string>) {
    this.#hidden = hidden
  }

  of(value: unknown, depth: number): unknown {
    if (this.#left-- <= 0) return '[more]'
    if (value === null || value === undefined) return null
    if (typeof value === 'boolean') return value
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
    if (typeof value === 'string') return sanitized(value)
    if (typeof value === 'bigint') return sanitized(String(value))
    if (typeof value !== 'object') return `[${typeof value}]`
    if (value instanceof Error) return sanitized(messageOf(value))
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
    if (depth >= MAX_DEPTH) return '[deeper]'
    if (this.#above.includes(value)) return '[circular]'
    this.#above.push(value)
    const copy = Array.isArray(value) ? this.#list(value, depth) : this.#object(value as Record<string, unknown>, depth)
    this.#above.pop()
    return copy
  }

  #list(values: readonly unknown[], depth: number): unknown[] {
    const copy = values.slice(0, MAX_MEMBERS).map((one) => this.of(one, depth + 1))
    return values.length > MAX_MEMBERS ? [...copy, `[${values.length - MAX_MEMBERS} more]`] : copy
  }

  #object(value: Record<string, unknown>, depth: number): unknown {
    const copy: [string, unknown][] = []
    let members = 0
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue
      if (++members > MAX_MEMBERS) break
      copy.push([sanitized(key, 64), this.#hidden.has(plainKey(key)) ? REDACTED : this.of(value[key], depth + 1)])
    }
    if (members > MAX_MEMBERS) copy.push(['...', '[more]'])
    return Object.fromEntries(copy)
  }
}
