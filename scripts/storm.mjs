#!/usr/bin/env node
// Shows what the node promises, on whole nodes that are killed (SIGKILL) at random moments under load, directly linked
// and over relays: `npm run storm -- [part]... [--kills N] [--requests N] [--seed N] [--json]`. N are those of all
// layouts together.
// Exit code 0 when everything accepted came to an end that it may have, nothing was run twice that may not be, and all
// homes open.
import { parseArgs } from 'node:util'
import { runProgram } from './bench/lab.mjs'
import { chanceOf } from './storm/chance.mjs'
import { LAYOUTS } from './storm/fleet.mjs'
import { killFirstStarts, storm } from './storm/storm.mjs'

const FIRST_STARTS = 'first-starts'
const PARTS = [FIRST_STARTS, ...Object.keys(LAYOUTS)]
/** Of the kills, one in so many is of a first start. */
const FIRST_EVERY = 10

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      kills: { type: 'string', default: '220' },
      requests: { type: 'string', default: '50000' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
      json: { type: 'boolean', default: false }
    }
  })
  const [kills, requests, seed] = [values.kills, values.requests, values.seed].map(Number)
  if (![kills, requests, seed].every((one) => Number.isSafeInteger(one) && one >= 0))
    throw new Error('--kills, --requests and --seed take whole numbers')
  const unknown = positionals.find((part) => !PARTS.includes(part))
  if (unknown !== undefined) throw new Error(`no such part: ${unknown}; there are ${PARTS.join(', ')}`)
  return { kills, requests, seed, json: values.json, parts: positionals.length === 0 ? PARTS : positionals }
}

async function main({ kills, requests, seed, json, parts }) {
  const chance = chanceOf(seed)
  const layouts = parts.filter((part) => part !== FIRST_STARTS)
  const firsts = parts.includes(FIRST_STARTS) ? Math.ceil(kills / FIRST_EVERY) : 0
  const share = { kills: Math.ceil((kills - firsts) / layouts.length), requests: Math.ceil(requests / layouts.length) }
  const reports = []
  if (firsts > 0) reports.push(await killFirstStarts(firsts, chance))
  for (const layout of layouts) {
    console.error(`${layout}: seed ${seed}`)
    reports.push(await storm(layout, { ...share, chance, say: (line) => console.error(`${layout}: ${line}`) }))
  }
  const faults = reports.flatMap((report) => report.faults.map((fault) => `${report.layout}: ${fault}`))
  for (const fault of faults.slice(0, 30)) console.error(fault)
  const shown = reports.map((report) => ({ ...report, faults: report.faults.length }))
  if (json) console.log(JSON.stringify({ seed, faults: faults.length, reports: shown }))
  else for (const { layout, ...report } of shown) console.log(`${layout}: ${JSON.stringify(report)}`)
  if (faults.length > 0) process.exitCode = 1
}

await runProgram('storm', options, main)
