#!/usr/bin/env node
// What a hostile member costs honest nodes: `npm run hostile [-- part of a name]... [--calls N] [--rounds N]`. Each attack in its full
// size beside N honest calls (2,000), and as many without it, in turn. `-- --minutes N`: all attacks in turn by one member for so long
// beside honest calls, then she is revoked. Exit code 1 when a node takes too much, answers too late, ends, or loses a call.
import { parseArgs } from 'node:util'
import { compileTests } from './testing/compile.mjs'

function whole(text, name) {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} takes a whole number from 1`)
  return number
}

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { calls: { type: 'string', default: '2000' }, rounds: { type: 'string', default: '4' }, minutes: { type: 'string' } }
  })
  const minutes = values.minutes === undefined ? null : whole(values.minutes, 'minutes')
  return { parts: positionals, calls: whole(values.calls, 'calls'), rounds: whole(values.rounds, 'rounds'), minutes }
}

function timesText({ calls, p50, p99, max }) {
  return `p50 ${p50} ms, p99 ${p99} ms, at most ${max} ms (${calls} calls)`
}

function takenText({ memory, disk }) {
  return `${memory} MiB of memory, ${disk} MiB of disk`
}

/** Prints what an attack cost; true: no fault. */
function tell({ name, quiet, busy, before, after, returned, cut, revokedSeconds, faults }) {
  console.log(`${name}\n  without: ${timesText(quiet)}, ${takenText(before)}\n  with:    ${timesText(busy)}, ${takenText(after)}`)
  console.log(`  ${cut}; revoked in ${revokedSeconds} s`)
  if (returned) console.log(`  returned: ${takenText(returned)}`)
  for (const fault of faults) console.log(`  FAULT: ${fault}`)
  return faults.length === 0
}

async function each({ fullRun, attacks }, { parts, calls, rounds }) {
  const chosen = attacks.filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)))
  if (chosen.length === 0) throw new Error(`no such attack; there are\n${attacks.map(({ name }) => `  ${name}`).join('\n')}`)
  let isGood = true
  for (const attack of chosen) {
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

async function together({ siege }, minutes) {
  const report = await siege({ minutes, say: (line) => console.log(line) })
  return tell({ ...report, name: `all attacks in turn, ${minutes} minutes`, cut: `cut ${report.cuts} times` })
}

const chosen = options()
const { fullRun, siege, attacks } = await compileTests('test/support/hostile/full.js')
const isGood = chosen.minutes === null ? await each({ fullRun, attacks }, chosen) : await together({ siege }, chosen.minutes)
process.exit(isGood ? 0 : 1)
