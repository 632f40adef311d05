import test from 'brittle'
import fc from 'fast-check'
import { matchesGlob } from '../../../../src/adapters/agents/files/glob.js'

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

test('a path fits itself, and itself with parts put behind stars', (t) => {
  const segment = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(fc.array(segment, { minLength: 2, maxLength: 5 }), fc.nat(), (segments, pick) => {
      const path = segments.join('/')
      const i = pick % segments.length
      const starred = segments.map((one, at) => (at === i ? `${one[0]}*` : one)).join('/')
      const spanned = ['**', ...segments.slice(i)].join('/')
      return matchesGlob(path, path) && matchesGlob(starred, path) && (spanned === `**/${path}` || matchesGlob(spanned, path))
    })
  )
  t.pass()
})

test('a hostile pattern takes no time that grows by powers', (t) => {
  t.absent(matchesGlob(`${'*a'.repeat(120)}b`, 'a'.repeat(4000)))
  t.absent(matchesGlob(`${'**/'.repeat(80)}b`, 'a/'.repeat(2000)))
})
