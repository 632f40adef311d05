#!/usr/bin/env node
// Gives every reader of peer bytes hostile inputs, a million in all:
// `npm run fuzz -- [part of a name]... [--inputs N]`.
// Exit code 1 when a reader throws, breaks what it promises, needs more than 100 ms for an input, or keeps memory.
import { parseArgs } from 'node:util'
import v8 from 'node:v8'
import vm from 'node:vm'
import { compileTests } from './testing/compile.mjs'

/** Milliseconds one input may take. */
const MAX_MS = 100
/** What may be held after all inputs that was not held before them, in bytes. */
const MAX_HELD = 16 * 1024 * 1024

/** Bytes on the heap once all garbage is gone. */
function held() {
  v8.setFlagsFromString('--expose-gc')
  vm.runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

/** One reader; what is wrong with it, or null. */
function run(fuzz, target, inputs) {
  const from = performance.now()
  const { taken, slowest } = fuzz(target, inputs)
  const seconds = ((performance.now() - from) / 1000).toFixed(1)
  console.log(
    `${target.name.padEnd(36)} ${inputs} inputs, ${taken} taken, slowest ${slowest.ms.toFixed(2)} ms, ${seconds} s`
  )
  if (slowest.ms <= MAX_MS) return null
  return `${target.name}: ${slowest.ms.toFixed(0)} ms for ${Buffer.from(slowest.bytes).toString('hex').slice(0, 2000)}`
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { inputs: { type: 'string', default: '1000000' } }
  })
  const total = Number(values.inputs)
  if (!Number.isInteger(total) || total < 1) throw new Error('--inputs takes a whole number from 1')
  const { fuzz, fuzzTargets } = await compileTests('test/support/fuzz.js')
  const targets = fuzzTargets().filter(
    ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part))
  )
  if (targets.length === 0) throw new Error('no reader of that name')
  const before = held()
  const faults = targets
    .map((target) => run(fuzz, target, Math.ceil(total / targets.length)))
    .filter((fault) => fault !== null)
  const more = held() - before
  if (more > MAX_HELD) faults.push(`${more} bytes more are held than before`)
  console.log(
    `${targets.length} readers, ${Math.ceil(total / targets.length) * targets.length} inputs, ${(more / 1024).toFixed(0)} KiB more held`
  )
  for (const fault of faults) console.error(`fault: ${fault}`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

await main()
