#!/usr/bin/env node
// Kills nodes (SIGKILL) at random moments while one has the other work, then asks for every acknowledged request:
// `npm run crash -- [--kills N] [--acks N] [--seed N] [--json]`. Exit code 0 when none was lost and none done twice that may not be.
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import HyperDHT from 'hyperdht'
import { allOnline, inviteFor, localEnv, startNode } from './bench/nodes.mjs'
import { closeAllNow, freePort, openLab } from './bench/lab.mjs'
import { killedStart, Mortal } from './crash/mortal.mjs'
import { effectsOf, placeWitness } from './crash/witness.mjs'

/** Requests that are asked for at once. */
const DRIVERS = 16
/** Acknowledged requests that may be undone before the next is asked. */
const MAX_AHEAD = 2000
/** Of the kills, one in so many is of a first start. */
const FIRST_EVERY = 10
/** Longest time without any further end, in milliseconds. */
const PATIENCE_MS = 90_000
/** States after which nothing of itself follows. `unknown`: nobody can say whether it was done. */
const ENDS = new Set(['completed', 'failed', 'canceled', 'rejected', 'unknown'])

function options() {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '200' },
      acks: { type: 'string', default: '50000' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
      json: { type: 'boolean', default: false }
    }
  })
  const [kills, acks, seed] = [values.kills, values.acks, values.seed].map(Number)
  if (![kills, acks, seed].every(Number.isSafeInteger)) throw new Error('--kills, --acks and --seed take whole numbers')
  return { kills, acks, seed, json: values.json }
}

/** Numbers in [0, 1) that a seed gives again. */
function chanceOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A home that is killed while it is made has to open all the same. */
async function killFirstStart(lab, env, chance) {
  const start = { home: path.join(lab.dir(), 'h'), name: 'first', env }
  await killedStart(lab, start, Math.floor(chance() * 900))
  const node = await startNode(lab, start)
  await node.stop()
}

/** Asks until enough was acknowledged; `acked` is the task of each by what it has done. */
async function drive({ caller, file, acked, isDone }) {
  let next = 0
  const ask = async () => {
    while (!isDone()) {
      const n = next++
      const capability = n % 5 === 4 ? 'witness.again' : 'witness.once'
      try {
        const api = await caller.api()
        const { outcome, taskId } = await api.call('message.call', { agent: 'witness@worker', capability, input: { n }, wait: false })
        if (outcome === 'QUEUED') acked.set(`${capability} ${n}`, taskId)
      } catch {
        // It was not acknowledged, so nothing is promised: it may have been done or not.
        await delay(20)
      }
      while (acked.size - linesOf(file) > MAX_AHEAD && !isDone()) await delay(50)
    }
  }
  await Promise.all(Array.from({ length: DRIVERS }, ask))
}

const counted = { bytes: 0, lines: 0 }

/** Lines of a file that only grows. */
function linesOf(file) {
  const { size } = fs.statSync(file)
  if (size <= counted.bytes) return counted.lines
  const bytes = Buffer.alloc(size - counted.bytes)
  const handle = fs.openSync(file)
  fs.readSync(handle, bytes, 0, bytes.length, counted.bytes)
  fs.closeSync(handle)
  counted.bytes = size
  for (const byte of bytes) if (byte === 10) counted.lines++
  return counted.lines
}

/** The task of each acknowledged request when it has an end, or as it stands when there is no progress any more. */
async function endsOf(caller, acked) {
  const ends = new Map()
  const open = new Map(acked)
  for (let since = performance.now(); open.size > 0 && performance.now() - since < PATIENCE_MS; ) {
    const api = await caller.api()
    for (const [work, id] of open) {
      const task = await api.call('tasks.show', { id }).catch((error) => ({ state: `lost: ${error.code}`, error: null }))
      ends.set(work, task)
      if (!ENDS.has(task.state)) continue
      open.delete(work)
      since = performance.now()
    }
    if (open.size > 0) await delay(500)
  }
  return ends
}

/** What must not be: a promise broken, or a thing done twice. */
function faultsOf(ends, effects) {
  const faults = []
  for (const [work, { state, error }] of ends) {
    const times = effects.get(work) ?? 0
    if (!ENDS.has(state)) faults.push(`${work}: acknowledged, but ${state}`)
    else if (state === 'completed' ? times === 0 : state !== 'unknown')
      faults.push(`${work}: ${state} (${error?.code}), done ${times} times`)
    else if (state === 'unknown' && work.startsWith('witness.again')) faults.push(`${work}: unknown, although it may be repeated`)
  }
  for (const [work, times] of effects) if (times > 1 && work.startsWith('witness.once')) faults.push(`${work}: done ${times} times`)
  return faults
}

async function main({ kills, acks, seed, json }) {
  const lab = openLab()
  const chance = chanceOf(seed)
  const port = await freePort()
  // A bootstrap of its own, so that nobody waits for that of a node that was killed.
  const bootstrap = HyperDHT.bootstrapper(port, '127.0.0.1', { host: '127.0.0.1' })
  try {
    await bootstrap.fullyBootstrapped()
    const env = localEnv(port)
    const firsts = Math.floor(kills / FIRST_EVERY)
    for (let at = 0; at < firsts; at++) await killFirstStart(lab, env, chance)
    say(`${firsts} first starts killed (seed ${seed})`)
    const pair = await openPair(lab, env)
    const acked = await killUnderLoad(pair, { kills: kills - firsts, acks, chance })
    const ends = await endsOf(pair.caller, acked)
    const effects = effectsOf(pair.file)
    report({ seed, kills: firsts + pair.caller.kills + pair.worker.kills, firstStarts: firsts }, { ends, effects, json })
  } finally {
    await lab.close()
    await bootstrap.destroy()
  }
}

/** Kills while one has the other work; the task of each acknowledged request. */
async function killUnderLoad({ caller, worker, file }, { kills, acks, chance }) {
  const acked = new Map()
  const killed = () => caller.kills + worker.kills
  const driving = drive({ caller, file, acked, isDone: () => killed() >= kills && acked.size >= acks })
  while (killed() < kills) {
    // Spread over the whole load, at any moment of it.
    while (acked.size < killed() * (acks / kills)) await delay(20)
    await delay(chance() * 400)
    const isTwice = chance() < 0.15 && killed() + 2 <= kills
    await (chance() < 0.5 ? caller : worker).crash(isTwice ? chance() * 600 : null)
    if (killed() % 10 < 2) say(`${killed()} kills, ${acked.size} acknowledged`)
  }
  await driving
  return acked
}

function report(about, { ends, effects, json }) {
  const faults = faultsOf(ends, effects)
  const states = {}
  for (const { state } of ends.values()) states[state] = (states[state] ?? 0) + 1
  const result = { ...about, acknowledged: ends.size, ends: states, effects: effects.size, faults: faults.length }
  for (const fault of faults.slice(0, 20)) say(fault)
  const lines = Object.entries(result).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  console.log(json ? JSON.stringify(result) : lines.join('\n'))
  if (faults.length > 0) process.exitCode = 1
}

function say(line) {
  console.error(line)
}

async function openPair(lab, env) {
  const file = path.join(lab.dir(), 'witness.txt')
  const caller = new Mortal(lab, { home: path.join(lab.dir(), 'h'), name: 'caller', env })
  const founder = await caller.start()
  const home = path.join(lab.dir(), 'h')
  placeWitness(home, file)
  const worker = new Mortal(lab, { home, name: 'worker', env })
  const joined = await startNode(lab, { home, name: 'worker', env, join: await inviteFor(founder) })
  await allOnline([founder, joined])
  await joined.stop()
  await worker.start()
  return { caller, worker, file }
}

process.on('exit', closeAllNow)
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) process.on(signal, () => process.exit(code))
await main(options())
