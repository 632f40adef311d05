#!/usr/bin/env node
// Lets worlds of whole nodes happen, each from a seed, until one goes wrong:
// `npm run simulate -- [--worlds N] [--from SEED]`, as many at once as there are cores. `--seed N` lets one alone
// happen and prints its whole trace. Exit code 1 when something that must never happen did.
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compile, OUT } from './testing/compile.mjs'

/** Milliseconds between two lines about how far it is. */
const TELL_MS = 10_000
const WORLDS = pathToFileURL(path.resolve(OUT, 'test/simulation/worlds.js')).href

function whole(text, name) {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} takes a whole number from 1`)
  return number
}

/** One world, with everything that happens in it; what went wrong, or null. */
async function one(seed) {
  const { faultOf, traceOf } = await import(WORLDS)
  console.log(await traceOf(seed))
  return faultOf(seed)
}

/** A thread's share of the worlds: every so many-th. Tells the fault of each, or null. */
async function share({ from, to, step }) {
  const { faultOf } = await import(WORLDS)
  for (let seed = from; seed < to; seed += step) parentPort.postMessage(await faultOf(seed), [])
}

/** Several worlds, up to the first fault. */
async function many({ from, count }) {
  const start = performance.now()
  let done = 0
  const tell = () => console.log(`${done} worlds, ${((done * 1000) / (performance.now() - start)).toFixed(1)} worlds/s`)
  const timer = setInterval(tell, TELL_MS)
  const step = Math.min(os.availableParallelism(), count)
  const threads = Array.from(
    { length: step },
    (_, at) => new Worker(fileURLToPath(import.meta.url), { workerData: { from: from + at, to: from + count, step } })
  )
  try {
    return await new Promise((resolve, reject) => {
      for (const thread of threads) {
        thread.on('error', reject)
        thread.on('message', (fault) => {
          done++
          if (fault !== null || done === count) resolve(fault)
        })
      }
    })
  } finally {
    clearInterval(timer)
    tell()
    await Promise.all(threads.map((thread) => thread.terminate()))
  }
}

async function main() {
  const text = { type: 'string' }
  const { values } = parseArgs({
    options: { worlds: { ...text, default: '1000' }, from: { ...text, default: '1' }, seed: text }
  })
  const { seed } = values
  const [from, count] = [whole(values.from, 'from'), whole(values.worlds, 'worlds')]
  if (!compile()) throw new Error('the tests do not compile')
  const fault = seed === undefined ? await many({ from, count }) : await one(whole(seed, 'seed'))
  if (fault !== null) console.error(fault)
  process.exitCode = fault === null ? 0 : 1
}

if (isMainThread) {
  await main().catch((error) => {
    console.error(error.message)
    process.exitCode = 2
  })
} else await share(workerData)
