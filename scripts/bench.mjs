#!/usr/bin/env node
// Measures what the node promises (docs/BENCH.md): `npm run bench -- [part]... [--runs N] [--json] [--strict]`.
// Exit code 0 unless something broke, or, with --strict, a goal was missed.
import os from 'node:os'
import { parseArgs } from 'node:util'
import { summary, tableLines } from './bench/figures.mjs'
import { runProgram } from './bench/lab.mjs'

/** Parts in the order they run; each is a module with `figures({ runs, say })`. */
const PARTS = [
  'start',
  'join',
  'cli',
  'card',
  'messages',
  'relays',
  'flood',
  'hostile',
  'swarm',
  'map',
  'documents',
  'memory',
  'rules',
  'ledger',
  'mcp',
  'gateway',
  'lost',
  'link',
  'idle'
]

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      runs: { type: 'string', default: '5' },
      json: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false }
    }
  })
  const runs = Number(values.runs)
  if (!Number.isInteger(runs) || runs < 1 || runs > 1000) throw new Error('--runs takes a whole number from 1 to 1000')
  const parts = PARTS.filter((part) => positionals.length === 0 || positionals.some((filter) => part.includes(filter)))
  if (parts.length === 0) throw new Error(`no such part; there are ${PARTS.join(', ')}`)
  return { ...values, runs, parts }
}

/** The class of machine, without its name: what the numbers depend on. */
function machine() {
  const [cpu] = os.cpus()
  return {
    node: process.version,
    platform: `${os.platform()} ${os.arch()}`,
    cores: os.availableParallelism(),
    cpu: cpu?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(os.totalmem() / 1024 ** 3)
  }
}

function loadText() {
  return os.loadavg()[0].toFixed(2)
}

async function runPart(part, { runs, say }) {
  const { figures } = await import(`./bench/suites/${part}.mjs`)
  const [loadBefore, start] = [loadText(), performance.now()]
  say(`${part} ...`)
  const measured = await figures({ runs, say: (line) => say(`  ${line}`) })
  say(`  ${((performance.now() - start) / 1000).toFixed(0)} s, load ${loadBefore} before, ${loadText()} after`)
  return measured.map((figure) => summary({ part, ...figure }))
}

async function main({ parts, runs, json, strict, help }) {
  if (help) return console.log(`npm run bench -- [part]... [--runs N] [--json] [--strict]\nparts: ${PARTS.join(', ')}`)
  const say = (line) => console.error(line)
  const about = machine()
  say(
    `${about.platform}, ${about.cores} cores (${about.cpu}), ${about.memoryGiB} GiB, Node ${about.node}, load ${loadText()}`
  )
  const figures = []
  for (const part of parts) {
    try {
      figures.push(...(await runPart(part, { runs, say })))
    } catch (error) {
      process.exitCode = 1
      say(`  ${part} broke: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  if (json) console.log(JSON.stringify({ schema: 'a2a-node/bench@1', machine: about, runs, figures }, null, 2))
  else for (const line of tableLines(figures)) console.log(line)
  if (strict && figures.some(({ verdict }) => verdict === 'over')) process.exitCode = 1
}

await runProgram('bench', options, main)
