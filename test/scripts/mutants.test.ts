import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'

interface Mutant {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly put: string
  readonly test: string
  readonly title: string
}

test('every fault of `npm run mutants` can be made, and the test that must notice it is there', async (t) => {
  const list = (await load('list')) as { readonly MUTANTS: readonly Mutant[] }
  const placeOf = await findsPlaces()
  t.ok(list.MUTANTS.length > 20)
  for (const { name, file, find, put, test: where, title } of list.MUTANTS) {
    const source = fs.readFileSync(file, 'utf8')
    if (placeOf(source, find) === null || find === put) t.fail(`${name}: its place is not to be found once in ${file}`)
    for (const unknown of unknownNames(put, source)) t.fail(`${name}: ${file} has no ${unknown}`)
    const tests = fs.readFileSync(`test/${where}.test.ts`, 'utf8')
    if (title === '' || tests.split(`test('${title.replaceAll("'", String.raw`\'`)}`).length !== 2)
      t.fail(`${name}: no test "${title}"`)
  }
})

test('the text of a fault is found across breaks of lines, and not when it stands twice', async (t) => {
  const placeOf = await findsPlaces()
  const found = (source: string, text: string): string | null => {
    const place = placeOf(source, text)
    return place === null ? null : source.slice(...place)
  }
  t.is(found('a = b.c(d, e)', 'b.c(d, e)'), 'b.c(d, e)')
  t.is(found('a = b\n  .c(\n    d,\n    e\n  )', 'b.c(d, e)'), 'b\n  .c(\n    d,\n    e\n  )')
  t.is(found('a = b.c(d, e)', 'b\n  .c(d,\n e)'), 'b.c(d, e)')
  t.is(found('const isA = ab(c)', 'is A'), null, 'a space between words counts')
  t.is(found('f(a); f( a )', 'f(a)'), null)
  t.is(found('f(b)', 'f(a)'), null)
})

function load(name: string): Promise<unknown> {
  return import(pathToFileURL(path.resolve(`scripts/mutants/${name}.mjs`)).href)
}

async function findsPlaces(): Promise<(source: string, text: string) => [number, number] | null> {
  return ((await load('place')) as { readonly placeOf: (source: string, text: string) => [number, number] | null })
    .placeOf
}

/** Words of JavaScript that a fault may use where its file does not. */
const WORDS = 'true false null undefined return if else const void await new Number Math Promise Infinity'.split(' ')

/**
 * Names in a fault that neither it nor its file has: such a fault fails every test, or none. Members of objects may be
 * new.
 */
function unknownNames(put: string, source: string): readonly string[] {
  const code = put.replaceAll(/'[^']*'|`[^`]*`|\/\*.*?\*\//g, "''").replaceAll('...', ' ')
  const used = [...code.matchAll(/(?<![\w$.#])(?:this\.)?(#?[A-Za-z_$][\w$]*)(?!\w|:)/g)].map(([, name = '']) => name)
  const declared = [...code.matchAll(/(?:const |\[, ?)(\w+)/g)].map(([, name = '']) => name)
  const known = new Set([...WORDS, ...declared, ...(source.match(/#?[A-Za-z_$][\w$]*/g) ?? [])])
  return used.filter((name) => !known.has(name))
}
