import test from 'brittle'
import fc from 'fast-check'
import { REDACT_KEYS, REDACTED, redactor, sanitized } from '../../../src/adapters/telemetry/redact.js'
import { holds } from '../../support/holds.js'

/** A key as somebody may write it. */
const arbSecretKey = fc
  .tuple(
    fc.constantFrom(...REDACT_KEYS),
    fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
    fc.constantFrom('', '-', '_')
  )
  .map(([key, upper, between]) => {
    const cased = [...key].map((char, i) => (upper[i] ? char.toUpperCase() : char.toLowerCase())).join('')
    return cased.slice(0, 3) + between + cased.slice(3)
  })

test('values of secret keys are redacted, in any case and at every depth, and the original is not changed', async (t) => {
  const redact = redactor()
  const secret = 'hunter2-hunter2'
  const wrap = fc.array(fc.constantFrom('object', 'list'), { maxLength: 4 })
  const property = fc.property(
    arbSecretKey,
    wrap,
    fc.oneof(fc.constant(secret), fc.constant({ deep: [secret] })),
    (key, wraps, value) => {
      let given: unknown = { before: 1, [key]: value }
      for (const kind of wraps) given = kind === 'object' ? { in: given, beside: 'x' } : [given, 'x']
      const before = JSON.stringify(given)
      deepFreeze(given)
      const text = JSON.stringify(redact(given))
      return !text.includes('hunter2') && text.includes(REDACTED) && JSON.stringify(given) === before
    }
  )
  await holds(t, property, 300)
})

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  for (const one of Object.values(value)) deepFreeze(one)
}

test('a value without a secret key that fits is logged unchanged', async (t) => {
  const word = fc.stringMatching(/^[a-z ]{1,20}$/)
  const key = fc.constantFrom('peer', 'code', 'reason', 'tries')
  const leaf = fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null))
  const value = fc.dictionary(key, fc.oneof(leaf, fc.array(leaf, { maxLength: 5 }), fc.dictionary(key, leaf)))
  const property = fc.property(value, (given) => JSON.stringify(redactor()(given)) === JSON.stringify(given))
  await holds(t, property)
})

test('control characters become escapes, everything else stays', async (t) => {
  t.is(sanitized('a\n\tb\u0000\u001b[31m\u202e'), 'a\\u000a\\u0009b\\u0000\\u001b[31m\\u202e')
  const property = fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
    const clean = sanitized(text)
    const isWhole = text.length > 256 || clean.length === 256 || unescaped(clean) === text || text.includes('\\u')
    return clean.length <= 256 && isWhole && !/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(clean)
  })
  await holds(t, property, 500)
})

function unescaped(text: string): string {
  return text.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

test('the copy of any value is small, flat enough to print, and nothing is thrown', async (t) => {
  const redact = redactor()
  const property = fc.property(
    fc.anything({ maxDepth: 12, maxKeys: 80, withBigInt: true, withDate: true, withTypedArray: true }),
    (given) => {
      const copy = redact(given)
      return (JSON.stringify(copy) ?? '').length < 500 * (256 + 64 + 20) && depthOf(copy) <= 7
    }
  )
  await holds(t, property, 300)
})

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

test('loops, getters that throw, huge and deep values are bounded', (t) => {
  const redact = redactor()
  const loop: Record<string, unknown> = { a: 1 }
  loop['self'] = loop
  t.alike(redact(loop), { a: 1, self: '[circular]' })
  const trap = {
    get poison(): string {
      throw new Error('no\nway')
    }
  }
  t.is(redact(trap), '[unreadable: no\\u000away]')
  t.is((redact(Array.from({ length: 1e5 }, () => 'x')) as unknown[]).length, 51)
  t.is((redact('x'.repeat(1e6)) as string).length, 256)
  const twice = { one: 1 }
  t.alike(redact([twice, twice]), [{ one: 1 }, { one: 1 }], 'the same value twice is no loop')
})

test('further keys can be named', (t) => {
  t.alike(redactor(['pin-code'])({ PIN_CODE: 1, password: 'p' }), { PIN_CODE: REDACTED, password: 'p' })
})
