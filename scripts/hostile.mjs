#!/usr/bin/env node
// What a hostile member costs honest nodes: `npm run hostile [-- part of a name]... [--calls N] [--rounds N]`. Each
// attack in its full size beside N honest calls (2,000), and as many without it, in turn. `-- --minutes N`: the attacks
// in turn by one member for so long beside honest calls, then she is revoked. `-- --inputs N`: each channel that a peer
// reaches gets N random messages; parts of names choose channels. Exit code 1 when a node takes too much, answers too
// late, ends, loses a call, or what honest nodes have changes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { compile, compileTests } from './testing/compile.mjs'

function whole(text, name) {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} takes a whole number from 1`)
  return number
}

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      calls: { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '4' },
      minutes: { type: 'string' },
      inputs: { type: 'string' }
    }
  })
  const some = (name) => (values[name] === undefined ? null : whole(values[name], name))
  const [minutes, inputs] = [some('minutes'), some('inputs')]
  return {
    parts: positionals,
    calls: whole(values.calls, 'calls'),
    rounds: whole(values.rounds, 'rounds'),
    minutes,
    inputs
  }
}

function timesText({ calls, p50, p99, max }) {
  return `p50 ${p50} ms, p99 ${p99} ms, at most ${max} ms (${calls} calls)`
}

function takenText({ memory, disk }) {
  return `${memory} MiB of memory, ${disk} MiB of disk`
}

/** Prints what an attack cost; true: no fault. */
function tell({ name, quiet, busy, before, after, returned, cut, revokedSeconds, faults }) {
  console.log(
    `${name}\n  without: ${timesText(quiet)}, ${takenText(before)}\n  with:    ${timesText(busy)}, ${takenText(after)}`
  )
  console.log(`  ${cut}; revoked in ${revokedSeconds} s`)
  if (returned) console.log(`  returned: ${takenText(returned)}`)
  for (const fault of faults) console.log(`  FAULT: ${fault}`)
  return faults.length === 0
}

/** @throws Error when none has such a name */
function chosenOf(attacks, parts) {
  const chosen = attacks.filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)))
  if (chosen.length > 0) return chosen
  throw new Error(`no such attack; there are\n${attacks.map(({ name }) => `  ${name}`).join('\n')}`)
}

async function each(fullRun, attacks, { calls, rounds }) {
  let isGood = true
  for (const attack of attacks) {
    try {
      const report = await fullRun(attack, { calls, rounds })
      const cut = report.cutSeconds === null ? 'not cut' : `cut after ${report.cutSeconds} s`
      isGood = tell({ ...report, cut }) && isGood
    } catch (error) {
      isGood = false
      console.log(`${attack.name}\n  FAULT: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  return isGood
}

async function together(siege, attacks, minutes) {
  const report = await siege({ minutes, attacks, say: (line) => console.log(line) })
  return tell({
    ...report,
    name: `${attacks.length} attacks in turn, ${minutes} minutes`,
    cut: `cut ${report.cuts} times`
  })
}

/**
 * Tests with random messages, by the channel: documents, hints about the log, cores, pairing, and the multiplexer
 * itself.
 */
const CHANNELS = [
  'node/documents/documents.hostile-bytes',
  'adapters/mesh/log/hostile-hints',
  'adapters/mesh/cores/hostile-replication',
  'adapters/mesh/pairing/hostile-pairing',
  'adapters/mesh/links/hostile-frames'
]
const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')

/** Runs a file of tests with so many random messages; false when one fails. */
async function messagesTo(file, inputs) {
  const started = performance.now()
  const test = path.join(ROOT, 'build', 'test', `${file}.test.js`)
  const env = { ...process.env, HOSTILE_INPUTS: String(inputs) }
  const [code] = await once(spawn(process.execPath, [test], { env, stdio: 'inherit' }), 'exit')
  console.log(`${file}: ${code === 0 ? 'ok' : 'FAILED'}, ${((performance.now() - started) / 1000).toFixed(1)} s`)
  return code === 0
}

async function random({ parts, inputs }) {
  const files = CHANNELS.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
  if (files.length === 0)
    throw new Error(`no such channel; there are\n${CHANNELS.map((file) => `  ${file}`).join('\n')}`)
  if (!compile()) return false
  let isGood = true
  for (const file of files) isGood = (await messagesTo(file, inputs)) && isGood
  return isGood
}

async function main(chosen) {
  if (chosen.inputs !== null) return random(chosen)
  const { fullRun, siege, attacks } = await compileTests('test/support/hostile/full.js')
  const some = chosenOf(attacks, chosen.parts)
  return chosen.minutes === null ? each(fullRun, some, chosen) : together(siege, some, chosen.minutes)
}

process.exit((await main(options())) ? 0 : 1)
