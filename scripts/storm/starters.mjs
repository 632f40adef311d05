#!/usr/bin/env node
// Lets several processes claim one home at the same moment, round after round, and counts the holders:
// `node scripts/storm/starters.mjs [--rounds N] [--starters N] [--load N] [--seed N] [--code DIR] [--nodes] [--json]`.
// Each round finds a pid file in the home: of a holder that was killed, of a dead pid, of a pid that another process
// got since, a damaged one, or none. The holder ends by SIGKILL, in every fourth round while the next starters are at
// work.
// `--load`: busy loops beside. `--code`: the compiled modules. `--nodes`: each starter is a whole `a2a-node start`.
// Exit code 0 when every round had exactly one holder.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { chanceOf } from './chance.mjs'

const FILE = fileURLToPath(import.meta.url)
const ROOT = path.resolve(path.dirname(FILE), '../..')
/** The largest pid of Linux: no process of a system that runs for days has it. */
const DEAD_PID = 4_194_303
/** What a round finds in the home, in turns. */
const LEFT = ['killed', 'dead', 'recycled', 'damaged', 'none']
/** One round in so many begins while the holder of the round before is killed. */
const KILL_EVERY = 4
/** Starters begin within so many milliseconds of each other. */
const SPREAD_MS = 2
/** What a starter says that did not get the home. */
const REFUSALS = new Set(['ALREADY_RUNNING', 'STORE_LOCKED'])

function options() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '200' },
      starters: { type: 'string', default: '8' },
      load: { type: 'string', default: '2' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
      code: { type: 'string', default: path.join(ROOT, 'build', 'src') },
      nodes: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false }
    }
  })
  const [rounds, starters, load, seed] = [values.rounds, values.starters, values.load, values.seed].map(Number)
  if (![rounds, starters, load, seed].every(Number.isSafeInteger))
    throw new Error('--rounds, --starters, --load and --seed take whole numbers')
  return { rounds, starters, load, seed, code: path.resolve(values.code), nodes: values.nodes, json: values.json }
}

/** A process that claims a home whenever it is asked to, and holds it until it is killed. */
async function serve([home, code]) {
  const load = (name) => import(pathToFileURL(path.join(code, name)).href)
  const [{ claimHome }, { Unwind }, { resolveHome }] = await Promise.all(
    ['compose/open-home.js', 'compose/unwind.js', 'config/paths.js'].map(load)
  )
  process.on('message', ({ waitMs }) => {
    // A timer would be too coarse.
    const until = performance.now() + waitMs
    while (performance.now() < until);
    claimHome({ options: { home: resolveHome({ home }) }, unwind: new Unwind(() => {}) }, Date.now()).then(
      () => process.send({ isHolder: true }),
      (error) => process.send({ isHolder: false, code: error.code ?? 'UNKNOWN', text: error.message })
    )
  })
  process.on('disconnect', () => process.exit())
  process.send({ isReady: true })
}

/** Runs {@link serve} in a process of its own. */
class Claimer {
  constructor({ home, code }) {
    this.child = fork(FILE, [home, code], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.exited = once(this.child, 'exit')
    this.ready = once(this.child, 'message')
  }

  /** Claims the home in so many milliseconds. Resolves with what came of it. */
  async claim(waitMs) {
    const answer = once(this.child, 'message')
    this.child.send({ waitMs })
    const [report] = await Promise.race([answer, this.exited.then(() => [{ isHolder: false, code: 'ENDED' }])])
    return { ...report, starter: this }
  }

  async kill() {
    this.child.kill('SIGKILL')
    await this.exited
  }
}

/** A whole `a2a-node start` for each claim. */
class NodeStarter {
  ready = Promise.resolve()
  #child = null
  #exited = Promise.resolve()
  #given

  constructor(given) {
    this.#given = given
  }

  async claim() {
    const { home, port } = this.#given
    const env = { ...process.env, A2A_NODE_LOCAL_PORT: String(port), A2A_NODE_HOME: '', NO_COLOR: '1' }
    const args = [path.join(ROOT, 'bin', 'a2a-node.js'), '--home', home, 'start', '--json', '--network', 'local']
    this.#child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    // Not 'exit': what it printed may come after that.
    this.#exited = once(this.#child, 'close')
    const [out, errors] = [this.#child.stdout, this.#child.stderr].map(collected)
    // A node prints itself and stays; all others end.
    await Promise.race([once(this.#child.stdout, 'data'), this.#exited])
    const { pid } = /"pid":(?<pid>\d+)/.exec(out())?.groups ?? {}
    if (Number(pid) === this.#child.pid) return { isHolder: true, starter: this }
    await this.#exited
    if (pid !== undefined) return { isHolder: false, code: 'ALREADY_RUNNING', starter: this }
    const { code } = /"error":\{"code":"(?<code>[A-Z_]+)"/.exec(errors())?.groups ?? {}
    return {
      isHolder: false,
      code: code ?? 'UNKNOWN',
      text: `exit ${this.#child.exitCode} ${errors().slice(-500)}`,
      starter: this
    }
  }

  async kill() {
    this.#child?.kill('SIGKILL')
    await this.#exited
  }
}

function collected(stream) {
  let text = ''
  stream.setEncoding('utf8').on('data', (more) => {
    text += more
  })
  return () => text
}

/** Leaves a pid file in the home as the round wants it. The one of a killed holder is there already. */
function leave(kind, pidFile) {
  const record = { startedAt: 1, socket: '/nowhere/control.sock', process: 'another boot/1' }
  if (kind === 'none') fs.rmSync(pidFile, { force: true })
  if (kind === 'killed' || kind === 'none' || !fs.existsSync(path.dirname(pidFile))) return
  const texts = {
    dead: JSON.stringify({ ...record, pid: DEAD_PID }),
    recycled: JSON.stringify({ ...record, pid: process.pid }),
    damaged: '{"pid":'
  }
  fs.writeFileSync(pidFile, texts[kind])
}

/** All starters of one home, and the one that holds it. */
class Rounds {
  #given
  #chance
  /** All that claim in the next round: the holder is none of them. */
  #starters = []
  #holder = null

  constructor(given) {
    this.#given = given
    this.#chance = chanceOf(given.seed)
  }

  /** Resolves with what the starters found, how many hold the home, and what none of them should say. */
  async run(round) {
    const Kind = this.#given.nodes ? NodeStarter : Claimer
    while (this.#starters.length < this.#given.starters) this.#starters.push(new Kind(this.#given))
    await Promise.all(this.#starters.map(({ ready }) => ready))
    const isMeanwhile = this.#holder !== null && round % KILL_EVERY === 0
    const kind = isMeanwhile ? 'killed meanwhile' : LEFT[round % LEFT.length]
    const reports = isMeanwhile ? await this.#claimDuringKill() : await this.#claimAfterKill(kind)
    const holders = reports.filter(({ isHolder }) => isHolder).map(({ starter }) => starter)
    const others = reports.filter(({ isHolder, code }) => !isHolder && !REFUSALS.has(code))
    // More than one is a fault: all but one end, so that the next round begins like any other.
    for (const one of holders.slice(1)) await one.kill()
    this.#holder = holders[0] ?? null
    this.#starters = this.#starters.filter((one) => !holders.includes(one))
    return { kind, holders: holders.length, others: others.map(({ code, text }) => `${code} ${text ?? ''}`) }
  }

  async close() {
    for (const one of this.#starters) await one.kill()
    await this.#holder?.kill()
  }

  async #claimAfterKill(kind) {
    await this.#holder?.kill()
    leave(kind, path.join(this.#given.home, 'run', 'node.pid'))
    return await claimAll(this.#starters, this.#chance)
  }

  async #claimDuringKill() {
    const claims = claimAll(this.#starters, this.#chance)
    await this.#holder.kill()
    const reports = await claims
    // Those that came before the kill found the home held: when all did, they try again.
    return reports.some(({ isHolder }) => isHolder) ? reports : await claimAll(this.#starters, this.#chance)
  }
}

function claimAll(starters, chance) {
  return Promise.all(starters.map((one) => one.claim(chance() * SPREAD_MS)))
}

/** Runs all rounds in one home: how many had how many holders, by what they found; and a line for each fault. */
async function prove(given) {
  const [counts, faults] = [{}, []]
  const rounds = new Rounds(given)
  try {
    for (let round = 0; round < given.rounds; round++) {
      const { kind, holders, others } = await rounds.run(round)
      counts[kind] ??= {}
      counts[kind][holders] = (counts[kind][holders] ?? 0) + 1
      if (holders !== 1 || others.length > 0)
        faults.push([`round ${round} (${kind}): ${holders} holders`, ...others].join(', '))
    }
  } finally {
    await rounds.close()
  }
  return { counts, faults }
}

function print({ rounds, starters, seed }, { counts, faults }) {
  for (const fault of faults) console.log(fault)
  for (const [kind, times] of Object.entries(counts)) {
    const texts = Object.entries(times).map(([holders, number]) => `${number} rounds with ${holders}`)
    console.log(`holders after "${kind}": ${texts.join(', ')}`)
  }
  console.log(`${rounds} rounds of ${starters} starters, seed ${seed}: ${faults.length} faults`)
}

async function main() {
  const given = options()
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'a2as-'))
  const busy = Array.from({ length: given.load }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })
  )
  try {
    const port = 21_000 + Math.floor(Math.random() * 8000)
    const proof = await prove({ ...given, home: path.join(root, 'h'), port })
    if (given.json)
      console.log(JSON.stringify({ ok: proof.faults.length === 0, rounds: given.rounds, seed: given.seed, ...proof }))
    else print(given, proof)
    process.exitCode = proof.faults.length === 0 ? 0 : 1
  } finally {
    for (const one of busy) one.kill('SIGKILL')
    fs.rmSync(root, { recursive: true, force: true })
  }
}

if (process.send === undefined) await main()
else await serve(process.argv.slice(2))
