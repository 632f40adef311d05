#!/usr/bin/env node
// What a hostile member costs honest nodes: `npm run hostile [-- part of a name... --calls N --inputs N]`.
// `attacks`: each attack of test/e2e/attacks.test.ts runs beside N honest calls (2,000). A line an attack: figures without and with it
// (milliseconds, MiB). The others: each channel that a peer reaches gets N random messages (100,000).
// Exit code 1 when one stops a node, or changes what honest nodes have.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { compile } from './testing/compile.mjs'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const FIGURES = /^\s*# (.*): (\{"quiet":.*\})$/
const ATTACKS = 'e2e/attacks'
/** Tests with random messages, by the channel: documents, hints about the log, cores, pairing, and the multiplexer itself. */
const CHANNELS = [
  'node/documents.hostile-bytes',
  'adapters/mesh/hostile-hints',
  'adapters/mesh/hostile-replication',
  'adapters/mesh/hostile-pairing',
  'adapters/mesh/hostile-frames'
]

/** A whole number from 1. */
function count(text, option) {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${option} takes a whole number, 1 or more`)
  return number
}

/** Runs one file of tests and prints what it found; false when a test fails. */
async function run(file, env) {
  const started = performance.now()
  const test = path.join(ROOT, 'build', 'test', `${file}.test.js`)
  const child = spawn(process.execPath, [test], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) {
    const [, what, figures] = FIGURES.exec(line) ?? []
    if (figures !== undefined) {
      const { quiet, busy } = JSON.parse(figures)
      console.log(`${what}\n  without: ${JSON.stringify(quiet)}\n  with:    ${JSON.stringify(busy)}`)
    } else if (file !== ATTACKS || line.trim().startsWith('not ok')) console.log(line)
  }
  const [code] = await ended
  console.log(`${file}: ${code === 0 ? 'ok' : 'FAILED'}, ${((performance.now() - started) / 1000).toFixed(1)} s`)
  return code === 0
}

const options = { calls: { type: 'string', default: '2000' }, inputs: { type: 'string', default: '100000' } }
const { values, positionals } = parseArgs({ allowPositionals: true, options })
const env = { HOSTILE_CALLS: String(count(values.calls, 'calls')), HOSTILE_INPUTS: String(count(values.inputs, 'inputs')) }
const isAsked = (file) => positionals.length === 0 || positionals.some((part) => file.includes(part))
const files = [ATTACKS, ...CHANNELS].filter(isAsked)
if (files.length === 0) throw new Error('no part of that name')
if (!compile()) process.exit(1)
for (const file of files) if (!(await run(file, env))) process.exitCode = 1
