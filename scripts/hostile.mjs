#!/usr/bin/env node
// What a hostile member costs honest nodes: `npm run hostile [-- --calls N]`. Each attack of test/e2e/attacks.test.ts runs beside N honest
// calls (2,000). A line an attack: figures without and with it (milliseconds, MiB). Exit code 1 when one stops a node.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { compile } from './testing/compile.mjs'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const FIGURES = /^\s*# (.*): (\{"quiet":.*\})$/

const { values } = parseArgs({ options: { calls: { type: 'string', default: '2000' } } })
const calls = Number(values.calls)
if (!Number.isSafeInteger(calls) || calls < 1) throw new Error('--calls takes a whole number, 1 or more')
if (!compile()) process.exit(1)
const env = { ...process.env, HOSTILE_CALLS: String(calls) }
const child = spawn(process.execPath, [path.join(ROOT, 'build', 'test', 'e2e', 'attacks.test.js')], {
  env,
  stdio: ['ignore', 'pipe', 'inherit']
})
const ended = once(child, 'exit')
for await (const line of createInterface({ input: child.stdout })) {
  const [, what, figures] = FIGURES.exec(line) ?? []
  if (figures !== undefined) {
    const { quiet, busy } = JSON.parse(figures)
    console.log(`${what}\n  without: ${JSON.stringify(quiet)}\n  with:    ${JSON.stringify(busy)}`)
  } else if (line.trim().startsWith('not ok')) console.log(line)
}
const [code] = await ended
process.exitCode = code ?? 1
