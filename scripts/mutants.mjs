#!/usr/bin/env node
// Makes one-line faults in the built rules, one at a time, and shows which test notices each:
// `npm run mutants -- [part of a name]...`. Exit code 1 when a fault goes unnoticed.
import fs from 'node:fs'
import path from 'node:path'
import { MUTANTS } from './mutants/list.mjs'
import { placeOf } from './mutants/place.mjs'
import { bundle } from './testing/bundle.mjs'
import { compile, OUT, transpile } from './testing/compile.mjs'
import { runFile } from './testing/run-file.mjs'

/** The source with the fault, as JavaScript. */
function mutated({ name, file, find, put }) {
  const text = fs.readFileSync(file, 'utf8')
  const place = placeOf(text, find)
  if (place === null) throw new Error(`${name}: the text to replace is not exactly once in ${file}`)
  const [start, end] = place
  return transpile(file, text.slice(0, start) + put + text.slice(end)).text
}

/** Runs one test of a file alone; why it failed, or null. A property that fails throws, which ends its file. */
async function failureOf({ test, title }, dir) {
  const file = path.join(OUT, 'test', `${test}.test.js`)
  const text = fs.readFileSync(file, 'utf8')
  // As the compiler quotes it; the title may go on.
  const call = `test(${JSON.stringify(title).slice(0, -1)}`
  if (text.split(call).length !== 2) throw new Error(`${file} has not one test whose title begins "${title}"`)
  const alone = file.replace(/\.test\.js$/, '.alone.test.js')
  fs.writeFileSync(alone, text.replace(call, call.replace('test(', 'test.solo(')))
  try {
    const { tap, faults, output } = await runFile({ file: alone, dir })
    // A file that does not load fails every test, whatever the fault is.
    if (output.includes('SyntaxError')) throw new Error(`"${title}" does not load: ${output.slice(0, 1000)}`)
    return tap.failed[0] ?? faults[0] ?? null
  } finally {
    fs.rmSync(alone)
  }
}

const startsPrograms = ({ test }) => test.startsWith('e2e/')

/** Replaces a compiled file; for a test that starts programs also the program. */
async function replaceWith(text, mutant) {
  fs.writeFileSync(compiledOf(mutant), text)
  if (startsPrograms(mutant) && !(await bundle())) throw new Error(`${mutant.name}: the program is not built`)
}

function compiledOf({ file }) {
  return path.join(OUT, file.replace(/\.ts$/, '.js'))
}

/** True when the test notices the fault. */
async function isNoticed(mutant, dir) {
  const good = fs.readFileSync(compiledOf(mutant))
  try {
    await replaceWith(mutated(mutant), mutant)
    const failure = await failureOf(mutant, dir)
    console.log(
      `${failure === null ? 'LIVES ' : 'caught'} ${mutant.name}\n       ${mutant.title} (test/${mutant.test}.test.ts)`
    )
    return failure !== null
  } finally {
    await replaceWith(good, mutant)
  }
}

async function main(filters) {
  const chosen = MUTANTS.filter(({ name }) => filters.length === 0 || filters.some((part) => name.includes(part)))
  if (chosen.length === 0) throw new Error('no fault of that name')
  if (!compile()) throw new Error('the sources do not compile')
  if (chosen.some(startsPrograms) && !(await bundle())) throw new Error('the program is not built')
  const root = fs.mkdtempSync('/tmp/a2am-')
  process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }))
  for (const mutant of chosen) {
    const failure = await failureOf(mutant, path.join(root, 'good'))
    if (failure !== null) throw new Error(`without any fault "${mutant.title}" fails: ${failure}`)
  }
  let lives = 0
  for (const [place, mutant] of chosen.entries())
    if (!(await isNoticed(mutant, path.join(root, String(place))))) lives++
  console.log(`${chosen.length - lives} caught, ${lives} not`)
  process.exitCode = lives === 0 ? 0 : 1
}

await main(process.argv.slice(2))
