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
  const list = (await import(pathToFileURL(path.resolve('scripts/mutants/list.mjs')).href)) as { readonly MUTANTS: readonly Mutant[] }
  t.ok(list.MUTANTS.length > 20)
  for (const { name, file, find, put, test: where, title } of list.MUTANTS) {
    const source = fs.readFileSync(file, 'utf8')
    if (source.split(find).length !== 2 || find === put) t.fail(`${name}: its place is not to be found once in ${file}`)
    for (const unknown of unknownNames(put, source)) t.fail(`${name}: ${file} has no ${unknown}`)
    const tests = fs.readFileSync(`test/${where}.test.ts`, 'utf8')
    if (title === '' || tests.split(`test('${title.replaceAll("'", String.raw`\'`)}`).length !== 2) t.fail(`${name}: no test "${title}"`)
  }
})

/** Words of JavaScript that a fault may use where its file does not. */
const WORDS = 'true false null undefined return if else const void await new Number Math Promise Infinity'.split(' ')

/** Names in a fault that neither it nor its file has: such a fault fails every test, or none. Members of objects may be new. */
function unknownNames(put: string, source: string): readonly string[] {
  const code = put.replaceAll(/'[^']*'|`[^`]*`|\/\*.*?\*\//g, "''").replaceAll('...', ' ')
  const used = [...code.matchAll(/(?<![\w$.#])(?:this\.)?(#?[A-Za-z_$][\w$]*)(?!\w|:)/g)].map(([, name = '']) => name)
  const declared = [...code.matchAll(/(?:const |\[, ?)(\w+)/g)].map(([, name = '']) => name)
  const known = new Set([...WORDS, ...declared, ...(source.match(/#?[A-Za-z_$][\w$]*/g) ?? [])])
  return used.filter((name) => !known.has(name))
}
