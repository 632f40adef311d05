#!/usr/bin/env node
// Everything that can be said of the code without running it. All steps run, also after one failed.
// Last line: `N passed, N failed`, counted in steps. Exit code: 0 when none failed.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** The script of a package's command. Read from the directory: not every package exports its manifest. */
function bin(name, command = name) {
  const dir = path.join('node_modules', name)
  const { bin: commands } = JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8'))
  return path.join(dir, typeof commands === 'string' ? commands : commands[command])
}

const tsc = bin('typescript', 'tsc')

/** Makes the program and the declarations of the package, which checks the types of src/. */
const BUILD = ['build', 'scripts/build.mjs']
/** The package is checked as it would be published: after the build. */
const PACKAGE = ['package', bin('publint'), '--strict']

/** Name and arguments of Node, in the order to start. */
const STEPS = [
  BUILD,
  ['types of tests', tsc, '-p', 'tsconfig.test.json', '--noEmit'],
  ['types of pure layers', tsc, '-p', 'tsconfig.pure.json'],
  ['lint', bin('oxlint'), '--type-aware', '--deny-warnings', '--report-unused-disable-directives', '--format=unix'],
  ['format', bin('@biomejs/biome', 'biome'), 'format', '--reporter=summary', '.'],
  ['layers', 'scripts/check-layers.mjs'],
  ['structure', 'scripts/structure.mjs'],
  ['dead code', bin('knip'), '--no-progress'],
  ['doc comments', 'scripts/check-docs.mjs'],
  ['install scripts', 'scripts/check-install-scripts.mjs'],
  PACKAGE
]

/** Runs one step. Resolves with what it printed and whether it failed. */
function run([name, ...args]) {
  const start = performance.now()
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' }
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('close', (code) => resolve({ name, isGood: code === 0, output, ms: performance.now() - start }))
  })
}

function report({ name, isGood, output, ms }) {
  if (!isGood) console.log(`\n${output.trim()}\n`)
  console.log(`${isGood ? 'ok    ' : 'FAILED'} ${name}  ${(ms / 1000).toFixed(1)} s`)
}

async function main() {
  const queue = [...STEPS]
  const running = new Map()
  let failed = 0
  async function work() {
    for (let step = queue.shift(); step !== undefined; step = queue.shift()) {
      if (step === PACKAGE) await running.get(BUILD)
      running.set(step, run(step))
      const result = await running.get(step)
      if (!result.isGood) failed++
      report(result)
    }
  }
  await Promise.all(Array.from({ length: os.availableParallelism() }, work))
  process.exitCode = failed === 0 ? 0 : 1
  console.log(`${STEPS.length - failed} passed, ${failed} failed`)
}

await main()
