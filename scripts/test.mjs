#!/usr/bin/env node
// Compiles src/ and test/ into build/ and runs the test files, several processes at once. `--prove` runs the slow
// proofs instead (`*.prove.test.ts`). Arguments are parts of file names, of both tiers: `npm test -- kit e2e/join`.
// `--build` also builds dist/, which tests run as programs. `--budget SECONDS` sets the budget of files without one of
// their own.
// A file over its time budget runs once more, alone; when it is over it again, it counts as one failed test.
// Last line: `N passed, N failed`, counted in tests.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { removed } from './testing/leaks.mjs'
import { BUDGET_S, loadFactor, machineFactor, overBudget } from './testing/budget.mjs'
import { bundle } from './testing/bundle.mjs'
import { compile, OUT } from './testing/compile.mjs'
import { groupsOf } from './testing/plan.mjs'
import { killAll, runFile, runFiles } from './testing/run-file.mjs'
import { scratchPlace } from './testing/scratch.mjs'
import { gist, withoutPassing } from './testing/tap.mjs'

/** Files that are shown as the slowest. */
const SLOWEST = 20

/**
 * Runs the groups, each in a process of its own. Twice as many as there are cores run at once: tests of nodes wait more
 * than half of their time.
 */
async function runAll(groups, { root, budget }) {
  const machine = machineFactor()
  const results = []
  const slow = []
  const queue = groups.map((group, at) =>
    group.map((file, index) => ({ file, dir: path.join(root, `${at}.${index}`) }))
  )
  async function work() {
    for (let jobs = queue.shift(); jobs !== undefined; jobs = queue.shift()) {
      const before = loadFactor()
      const done = await runFiles(jobs)
      const load = Math.max(before, loadFactor())
      for (const result of done) {
        if (isGood(result) && slowFault(result, { machine, load, budget }) !== null) slow.push(result)
        else results.push(report(result, []))
      }
    }
  }
  await Promise.all(Array.from({ length: os.availableParallelism() * 2 }, work))
  // Other files slowed it down, perhaps.
  for (const { file } of slow) {
    const result = await runFile({ file, dir: path.join(root, `again.${path.basename(file)}`) })
    const fault = slowFault(result, { machine, load: loadFactor(), budget })
    results.push(report(result, fault === null ? [] : [fault]))
  }
  return results
}

function isGood({ tap, faults }) {
  return tap.failed.length === 0 && faults.length === 0
}

function nameOf(file) {
  return path.relative(OUT, file).replace(/\.js$/, '.ts')
}

function slowFault({ file, ms, cpuMs }, factors) {
  return overBudget({ name: nameOf(file), ms, cpuMs }, factors)
}

/** Prints one file's line (and its output when it failed). A fault, of the file or of `more`, is one failed test. */
function report({ file, tap, faults, output, ms, cpuMs }, more) {
  const name = nameOf(file)
  const all = [...tap.failed.map((title) => `failed: ${title}`), ...faults, ...more]
  const shown = all.length === 0 ? '' : withoutPassing(output).trim()
  if (all.length > 0) console.log(`\n${shown}\n`)
  const skipped = tap.skipped.length > 0 ? `, ${tap.skipped.length} skipped` : ''
  const counts = `${tap.passed.length} tests, ${tap.assertions} assertions${skipped}, ${seconds(ms)} s, ${seconds(cpuMs)} s CPU`
  const lines = [`${all.length === 0 ? 'ok    ' : 'FAILED'} ${name}  ${counts}`, ...all.map((one) => `       ${one}`)]
  console.log(lines.join('\n'))
  return { name, tap, failed: all.length, again: [gist(shown), ...lines].join('\n'), ms, cpuMs }
}

function seconds(ms) {
  return (ms / 1000).toFixed(1)
}

/** Prints the slowest files and the sums. */
function summarize(results, startedAt) {
  const slowest = results.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)
  console.log(`\nthe ${slowest.length} slowest files (seconds, CPU seconds):`)
  for (const { name, ms, cpuMs } of slowest)
    console.log(`${seconds(ms).padStart(7)} ${seconds(cpuMs).padStart(7)}  ${name}`)
  const failed = results.filter((result) => result.failed > 0)
  if (failed.length > 0) console.log(['\nthe failed files:', ...failed.map(({ again }) => again)].join('\n'))
  const sum = (count) => results.reduce((total, result) => total + count(result), 0)
  const passed = sum(({ tap }) => tap.passed.length)
  const counts = `${passed} tests, ${sum(({ tap }) => tap.assertions)} assertions, ${sum(({ tap }) => tap.skipped.length)} skipped`
  const time = `${seconds(performance.now() - startedAt)} s, ${seconds(sum(({ cpuMs }) => cpuMs))} s CPU`
  console.log(`\n${results.length} files, ${counts}, ${time}`)
  finish({ passed, failed: sum((result) => result.failed) })
}

async function main() {
  const startedAt = performance.now()
  const { values, positionals: filters } = parseArgs({
    allowPositionals: true,
    options: {
      build: { type: 'boolean', default: false },
      prove: { type: 'boolean', default: false },
      budget: { type: 'string', default: String(BUDGET_S) }
    }
  })
  if (!compile() || (values.build && !(await bundle()))) return finish({ passed: 0, failed: 1 })
  const groups = groupsOf(path.join(OUT, 'test'), { filters, isProof: values.prove })
  if (groups.length === 0) {
    console.error('no test file has that name')
    return finish({ passed: 0, failed: 1 })
  }
  const root = fs.mkdtempSync(path.join(scratchPlace(), 'a2at-'))
  process.on('exit', () => {
    const fault = removed(root)
    if (fault !== null) console.error(fault)
  })
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      killAll()
      process.exit(1)
    })
  }
  summarize(await runAll(groups, { root, budget: Number(values.budget) }), startedAt)
}

function finish({ passed, failed }) {
  process.exitCode = failed === 0 ? 0 : 1
  console.log(`${passed} passed, ${failed} failed`)
}

await main()
