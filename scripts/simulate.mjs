#!/usr/bin/env node
// Lets worlds of whole nodes happen, each from a seed, until one goes wrong: `npm run simulate -- [--worlds N] [--from SEED]`.
// `--seed N` lets one alone happen and prints its whole trace. Exit code 1 when something that must never happen did.
import { parseArgs } from 'node:util'
import { compileTests } from './testing/compile.mjs'

/** Milliseconds between two lines about how far it is. */
const TELL_MS = 10_000

function whole(text, name) {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} takes a whole number from 1`)
  return number
}

/** One world, with everything that happens in it; what went wrong, or null. */
async function one({ faultOf, traceOf }, seed) {
  console.log(await traceOf(seed))
  return faultOf(seed)
}

/** Several worlds, up to the first fault. */
async function many({ faultOf }, { from, count }) {
  const start = performance.now()
  const rate = (done) => `${done} worlds, ${((done * 1000) / (performance.now() - start)).toFixed(1)} worlds/s`
  let toldAt = start
  for (let done = 0; done < count; done++) {
    const fault = await faultOf(from + done)
    if (fault !== null) {
      console.log(rate(done + 1))
      return fault
    }
    if (performance.now() - toldAt < TELL_MS) continue
    toldAt = performance.now()
    console.log(rate(done + 1))
  }
  console.log(rate(count))
  return null
}

async function main() {
  const text = { type: 'string' }
  const { values } = parseArgs({ options: { worlds: { ...text, default: '1000' }, from: { ...text, default: '1' }, seed: text } })
  const worlds = await compileTests('test/simulation/worlds.js')
  const { seed } = values
  const fault =
    seed === undefined
      ? await many(worlds, { from: whole(values.from, 'from'), count: whole(values.worlds, 'worlds') })
      : await one(worlds, whole(seed, 'seed'))
  if (fault !== null) console.error(fault)
  process.exitCode = fault === null ? 0 : 1
}

await main()
