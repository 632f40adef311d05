import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { allowedNames, matchesGlob, nameGlob } from '../../src/kit/glob.js'
import { holds } from '../support/holds.js'

test('stars and question marks stay inside a segment, two stars span segments', (t) => {
  const cases: [string, string, boolean][] = [
    ['*.ts', 'src/a/b.ts', true],
    ['*.ts', 'src/a/b.tsx', false],
    ['src/*.ts', 'src/b.ts', true],
    ['src/*.ts', 'src/a/b.ts', false],
    ['src/**/*.ts', 'src/b.ts', true],
    ['src/**/*.ts', 'src/a/b/c.ts', true],
    ['**/b.ts', 'b.ts', true],
    ['**', 'a/b', true],
    ['**/*', 'a/b', true],
    ['a/**', 'a/b/c', true],
    ['a/**/c/**/e', 'a/b/c/d/c/e', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['./src/*', 'src/x', true],
    ['[a].+', '[a].+', true],
    ['a*b*c', 'aXbXbXc', true],
    ['a*b*c', 'aXbX', false]
  ]
  for (const [pattern, path, expected] of cases) t.is(matchesGlob(pattern, path), expected, `${pattern} ${path}`)
})

test('a path fits itself, and itself with parts put behind stars', async (t) => {
  const segment = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 5 })
  await holds(
    t,
    fc.property(fc.array(segment, { minLength: 2, maxLength: 5 }), fc.nat(), (segments, pick) => {
      const path = segments.join('/')
      const i = pick % segments.length
      const starred = segments.map((one, at) => (at === i ? `${one[0]}*` : one)).join('/')
      const spanned = ['**', ...segments.slice(i)].join('/')
      return (
        matchesGlob(path, path) &&
        matchesGlob(starred, path) &&
        (spanned === `**/${path}` || matchesGlob(spanned, path))
      )
    }),
    100
  )
})

test('a hostile pattern takes no time that grows by powers', (t) => {
  t.absent(matchesGlob(`${'*a'.repeat(120)}b`, 'a'.repeat(4000)))
  t.absent(matchesGlob(`${'**/'.repeat(80)}b`, 'a/'.repeat(2000)))
})

/** What a pattern means, as a regular expression that no hostile pattern may be given to. */
function expressionOf(steps: readonly (readonly [pattern: string, source: string])[]): RegExp {
  return new RegExp(`^${steps.map(([, source]) => source).join('')}$`, 'u')
}

const CHARS = ['a', 'b', 'c', '-', '.', '+', '(', '{', '𝄞'] as const
const literal = fc
  .constantFrom(...CHARS)
  .map((char): [string, string] => [char, `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`])
const star = fc.constant<[string, string]>(['*', '.*'])
const one = fc.constant<[string, string]>(['?', '.'])
const set = fc.constantFrom<[string, string]>(
  ['[ab]', '[ab]'],
  ['[!a]', '[^a]'],
  ['[^bc]', '[^bc]'],
  ['[a-c]', '[a-c]'],
  ['[]]', '\\]']
)
const name = fc.string({ unit: fc.constantFrom(...CHARS, ']'), maxLength: 8 })

test('globs of names match as regular expressions would, and know a star alone', async (t: Assert) => {
  const globs = fc.array(
    fc.array(fc.oneof(literal, star, fc.constant<[string, string]>(['?', '\\?'])), { maxLength: 6 }),
    { maxLength: 3 }
  )
  await holds(
    t,
    fc.property(globs, name, (all, text) => {
      const expected = all.some((steps) => expressionOf(steps).test(text))
      return allowedNames(all.map((steps) => steps.map(([pattern]) => pattern).join('')))(text) === expected
    }),
    2000
  )
  t.ok(allowedNames(null)('') && !allowedNames([])(''), 'no globs allow every name, an empty list none')
})

test('stars, question marks and classes of a file name match as a regular expression would', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(fc.oneof(literal, star, one, set), { maxLength: 6 }), name, (steps, text) => {
      return nameGlob(steps.map(([pattern]) => pattern).join(''))(text) === expressionOf(steps).test(text)
    }),
    2000
  )
  t.ok(nameGlob('[a')('[a') && nameGlob('[]')('[]'), 'a bracket without its end is itself')
})

test('a hostile glob of names or of a file name takes no time that grows by powers', (t) => {
  t.absent(allowedNames([`${'*a'.repeat(120)}b`])('a'.repeat(4000)))
  t.absent(nameGlob(`${'*[a-c]?'.repeat(60)}b`)('a'.repeat(4000)))
})
