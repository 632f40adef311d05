#!/usr/bin/env node
// Compiles src/ and test/ into build/ and runs every test file, each in a process of its own, several at once.
// Arguments are parts of file names: `npm test -- kit e2e/join`. Last line: `N passed, N failed`, counted in tests.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { compile, OUT } from './testing/compile.mjs'
import { killAll, runFile } from './testing/run-file.mjs'
import { withoutPassing } from './testing/tap.mjs'

/** Directories whose files take longest, in the order to start them. */
const SLOW = ['e2e', 'simulation', 'contracts']

/** The test files that the filters name (all without filters), those that take longest first. */
function testFiles(filters) {
  const root = path.join(OUT, 'test')
  return fs
    .readdirSync(root, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => path.join(root, name))
    .filter((file) => filters.length === 0 || filters.some((part) => file.includes(part)))
    .map((file) => ({ file, rank: rankOf(file), size: fs.statSync(file).size }))
    .sort((a, b) => a.rank - b.rank || b.size - a.size)
    .map(({ file }) => file)
}

function rankOf(file) {
  const rank = SLOW.indexOf(file.split(path.sep)[2])
  return rank === -1 ? SLOW.length : rank
}

/** Runs the files, as many at once as there are cores. */
async function runAll(files, root) {
  const totals = { passed: 0, failed: 0, skipped: 0, assertions: 0 }
  const queue = files.map((file, index) => ({ file, dir: path.join(root, String(index)) }))
  async function work() {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) add(totals, job.file, await runFile(job))
  }
  await Promise.all(Array.from({ length: Math.max(2, os.availableParallelism()) }, work))
  return totals
}

/** Prints one file's line (and what it said, when it failed) and counts it. A fault counts as one failed test. */
function add(totals, file, { tap, faults, output, ms }) {
  const name = path.relative(OUT, file).replace(/\.js$/, '.ts')
  const isGood = tap.failed.length === 0 && faults.length === 0
  if (!isGood) console.log(`\n${withoutPassing(output).trim()}\n`)
  const skipped = tap.skipped.length > 0 ? `, ${tap.skipped.length} skipped` : ''
  console.log(
    `${isGood ? 'ok    ' : 'FAILED'} ${name}  ${tap.passed.length} tests, ${tap.assertions} assertions${skipped}, ${(ms / 1000).toFixed(1)} s`
  )
  for (const title of tap.failed) console.log(`       failed: ${title}`)
  for (const fault of faults) console.log(`       ${fault}`)
  totals.passed += tap.passed.length
  totals.failed += tap.failed.length + faults.length
  totals.skipped += tap.skipped.length
  totals.assertions += tap.assertions
}

async function main() {
  const start = performance.now()
  if (!compile()) return finish({ passed: 0, failed: 1 })
  const files = testFiles(process.argv.slice(2))
  if (files.length === 0) {
    console.error('no test file of that name')
    return finish({ passed: 0, failed: 1 })
  }
  // Short, since unix sockets made below it may have paths of at most 103 bytes.
  const root = fs.mkdtempSync(path.join(fs.existsSync('/tmp') ? '/tmp' : os.tmpdir(), 'a2at-'))
  process.on('exit', () => fs.rmSync(root, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      killAll()
      process.exit(1)
    })
  }
  const totals = await runAll(files, root)
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  console.log(`\n${files.length} files, ${totals.passed} tests, ${totals.assertions} assertions, ${totals.skipped} skipped, ${seconds} s`)
  finish(totals)
}

function finish({ passed, failed }) {
  process.exitCode = failed === 0 ? 0 : 1
  console.log(`${passed} passed, ${failed} failed`)
}

await main()
