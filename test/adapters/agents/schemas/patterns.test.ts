import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { isQuickPattern } from '../../../../src/adapters/agents/schemas/patterns.js'
import { holds } from '../../../support/holds.js'

/** A part of a pattern: what one character of it may be, and how often. */
interface Part {
  readonly of: string
  readonly least: number
  readonly most: number
}

const atoms = fc.constantFrom(
  { text: 'a', of: 'a' },
  { text: 'b', of: 'b' },
  { text: '[ab]', of: 'ab' },
  { text: '.', of: 'abc' }
)
const times = fc.constantFrom(
  { text: '', least: 1, most: 1 },
  { text: '?', least: 0, most: 1 },
  { text: '*', least: 0, most: 1e9 },
  { text: '+', least: 1, most: 1e9 },
  { text: '{2}', least: 2, most: 2 },
  { text: '{1,}', least: 1, most: 1e9 },
  { text: '{1,3}', least: 1, most: 3 }
)
const parts = fc.array(
  fc
    .tuple(atoms, times)
    .map(([atom, { text, ...bounds }]) => ({ text: `${atom.text}${text}`, part: { of: atom.of, ...bounds } })),
  { maxLength: 7 }
)

/**
 * Steps of a matcher that goes back at each wrong way and tries the next, as that of JavaScript does, until no way is
 * left.
 */
function stepsOf(pattern: readonly Part[], text: string, isAnchored: boolean): number {
  let steps = 0
  const tryFrom = (index: number, from: number): void => {
    steps++
    const part = pattern[index]
    if (part === undefined || steps > 1e6) return
    let at = from
    while (at - from < part.most && at < text.length && part.of.includes(text[at] ?? '')) at++
    steps += at - from
    for (; at - from >= part.least; at--) tryFrom(index + 1, at)
  }
  for (let from = 0; from <= (isAnchored ? 0 : text.length); from++) tryFrom(0, from)
  return steps
}

test('all paths through a quick pattern together take steps linear to the text, for any pattern and text', async (t: Assert) => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 40 }),
    fc.nat(300).map((n) => 'a'.repeat(n))
  )
  let quick = 0
  const property = fc.property(parts, fc.boolean(), text, (made, isAnchored, value) => {
    const pattern = `${isAnchored ? '^' : ''}${made.map((one) => one.text).join('')}`
    if (!isQuickPattern(pattern)) return true
    quick++
    const one = made.map(({ part }) => part)
    return stepsOf(one, value, isAnchored) <= 16 * 40 * (value.length + 1)
  })
  await holds(t, property, 2000)
  t.ok(quick > 200, `${quick} of 2,000`)
})

test('usual patterns are quick; those with groups, ways or several repetitions are not', (t: Assert) => {
  for (const pattern of [
    '^[a-z0-9-]+$',
    String.raw`^\d{4}-\d{2}-\d{2}$`,
    '^[A-Za-z0-9+/]*={0,2}$',
    '^[0-9a-f]{8}-[0-9a-f]{4}$',
    String.raw`^[a-z\]\-]{2,}`,
    'abc',
    '^$',
    '',
    String.raw`^a\$`
  ])
    t.ok(isQuickPattern(pattern), pattern)
  for (const pattern of [
    '^(a+)+$',
    '^a|b',
    '(?:ab)?',
    'a*',
    '^a*b*$',
    String.raw`(a)\1`,
    String.raw`^\p{L}+$`,
    String.raw`^a\b`,
    'a?a?a?a?a?',
    '^a{1,99}',
    'a{999}b',
    '^[a',
    '^a{',
    '*',
    '^a**'
  ])
    t.absent(isQuickPattern(pattern), pattern)
})
