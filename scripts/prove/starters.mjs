#!/usr/bin/env node
// Lets several processes claim one home at the same moment, round after round, and counts the holders:
// `node scripts/prove/starters.mjs [--rounds N] [--starters N] [--load N] [--seed N] [--code DIR] [--json]`.
// Each round first leaves a pid file in the home: that of a holder that was killed, of a dead pid, of a pid that another process
// got since, a damaged one, or none. The holder then ends by SIGKILL, in every fourth round while the next starters are at work.
// Exit code 0 when every round had exactly one holder.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const FILE = fileURLToPath(import.meta.url)
const ROOT = path.resolve(path.dirname(FILE), '../..')
/** A pid that no process has: the largest one is never given to the first processes of a system. */
const DEAD_PID = 4_194_303
/** What a round finds in the home, in turns. */
const LEFT = ['killed', 'dead', 'recycled', 'damaged', 'none']
/** One round in so many begins while the holder of the round before is killed. */
const KILL_EVERY = 4

function options() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '200' },
      starters: { type: 'string', default: '8' },
      load: { type: 'string', default: '2' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
      code: { type: 'string', default: path.join(ROOT, 'dist') },
      json: { type: 'boolean', default: false }
    }
  })
  const [rounds, starters, load, seed] = [values.rounds, values.starters, values.load, values.seed].map(Number)
  if (![rounds, starters, load, seed].every(Number.isSafeInteger))
    throw new Error('--rounds, --starters, --load and --seed take whole numbers')
  return { rounds, starters, load, seed, code: path.resolve(values.code), json: values.json }
}

/** Numbers in [0, 1) that a seed gives again. */
function chanceOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A process that claims a home whenever it is asked to, and holds it until it is killed. */
async function serve([home, code]) {
  const load = (name) => import(pathToFileURL(path.join(code, name)).href)
  const [{ claimHome }, { Unwind }, { resolveHome }] = await Promise.all(['open-home.js', 'unwind.js', 'config/paths.js'].map(load))
  process.on('message', async ({ round, waitMs }) => {
    const until = performance.now() + waitMs
    while (performance.now() < until);
    const unwind = new Unwind(() => {})
    try {
      await claimHome({ options: { home: resolveHome({ home }) }, unwind }, Date.now())
      process.send({ round, isHolder: true })
    } catch (error) {
      process.send({ round, isHolder: false, code: error.code, pid: error.data?.pid ?? null, text: error.message })
    }
  })
  process.on('disconnect', () => process.exit())
  process.send({ isReady: true })
}

class Starter {
  constructor(home, code) {
    this.child = fork(FILE, [home, code], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.exited = once(this.child, 'exit')
    this.ready = once(this.child, 'message')
  }

  /** Claims, and resolves with what came of it. */
  async claim(round, waitMs) {
    const answer = once(this.child, 'message')
    this.child.send({ round, waitMs })
    const [report] = await Promise.race([answer, this.exited.then(() => [{ round, isHolder: false, code: 'EXITED' }])])
    return { ...report, starter: this }
  }

  async kill() {
    this.child.kill('SIGKILL')
    await this.exited
  }
}

/** Leaves a pid file in the home as the round wants it. The one of a killed holder is there already. */
function leave(kind, pidFile, other) {
  const record = { startedAt: 1, socket: '/nowhere/control.sock' }
  if (kind === 'dead') fs.writeFileSync(pidFile, JSON.stringify({ ...record, pid: DEAD_PID, process: 'another boot/1' }))
  if (kind === 'recycled') fs.writeFileSync(pidFile, JSON.stringify({ ...record, pid: other, process: 'another boot/1' }))
  if (kind === 'damaged') fs.writeFileSync(pidFile, '{"pid":')
  if (kind === 'none') fs.rmSync(pidFile, { force: true })
}

/** Runs all rounds in one home. Resolves with a line for each round that had not exactly one holder. */
async function prove({ rounds, starters: count, seed, code }, home, note) {
  const chance = chanceOf(seed)
  const pidFile = path.join(home, 'run', 'node.pid')
  const starters = Array.from({ length: count }, () => new Starter(home, code))
  const faults = []
  try {
    let holder = null
    for (let round = 0; round < rounds; round++) {
      await Promise.all(starters.map(({ ready }) => ready))
      const isKilledMeanwhile = holder !== null && round % KILL_EVERY === 0
      const kind = isKilledMeanwhile ? 'killed meanwhile' : LEFT[round % LEFT.length]
      if (holder !== null && !isKilledMeanwhile) await holder.kill()
      if (!isKilledMeanwhile) leave(kind, pidFile, process.pid)
      const claims = starters.filter((one) => one !== holder).map((one) => one.claim(round, chance() * 2))
      const killed = isKilledMeanwhile ? holder.kill() : null
      const reports = await Promise.all(claims)
      await killed
      // Those that came before the kill found the home held: when all did, they try again.
      if (isKilledMeanwhile && !reports.some(({ isHolder }) => isHolder)) {
        const again = reports.map(({ starter }) => starter.claim(round, 0))
        reports.splice(0, reports.length, ...(await Promise.all(again)))
      }
      const holders = reports.filter(({ isHolder }) => isHolder)
      const odd = reports.filter((one) => !one.isHolder && one.code !== 'ALREADY_RUNNING' && one.code !== 'STORE_LOCKED')
      if (holders.length !== 1 || odd.length > 0)
        faults.push(
          `round ${round} (${kind}): ${holders.length} holders${odd.map(({ code: fault, text }) => `, ${fault} ${text}`).join('')}`
        )
      note(round, kind, holders.length)
      // More than one is a fault: all but one end, so that the next round begins like any other.
      await Promise.all(holders.slice(1).map(({ starter }) => starter.kill()))
      holder = holders[0]?.starter ?? null
      for (const [place, one] of starters.entries())
        if (one.child.exitCode !== null || one.child.signalCode !== null) starters[place] = new Starter(home, code)
    }
  } finally {
    await Promise.all(starters.map((one) => one.kill()))
  }
  return faults
}

async function main() {
  const given = options()
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'a2as-'))
  const busy = Array.from({ length: given.load }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  const counts = {}
  try {
    const faults = await prove(given, path.join(root, 'h'), (_round, kind, holders) => {
      counts[kind] ??= {}
      counts[kind][holders] = (counts[kind][holders] ?? 0) + 1
    })
    if (given.json) console.log(JSON.stringify({ ok: faults.length === 0, rounds: given.rounds, seed: given.seed, counts, faults }))
    else {
      for (const fault of faults) console.log(fault)
      for (const [kind, of] of Object.entries(counts))
        console.log(
          `pid file ${kind}: ${Object.entries(of)
            .map(([holders, times]) => `${times} rounds with ${holders} holders`)
            .join(', ')}`
        )
      console.log(`${given.rounds} rounds of ${given.starters} starters, seed ${given.seed}: ${faults.length} faults`)
    }
    process.exitCode = faults.length === 0 ? 0 : 1
  } finally {
    for (const one of busy) one.kill('SIGKILL')
    fs.rmSync(root, { recursive: true, force: true })
  }
}

if (process.send === undefined) await main()
else await serve(process.argv.slice(2))
