import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import HyperDHT from 'hyperdht'
import { freePort, openLab } from '../bench/lab.mjs'
import { localEnv, startNode } from '../bench/nodes.mjs'
import { openFleet } from './fleet.mjs'
import { Edits } from './loads/edits.mjs'
import { Requests } from './loads/requests.mjs'
import { Swarms } from './loads/swarms.mjs'
import { Tasks } from './loads/tasks.mjs'
import { killedStart } from './mortal.mjs'
import { CONCURRENCY, Effects, ONCE } from './witness.mjs'

/** Nothing is `submitted` so long after the last start, in milliseconds. */
const SUBMITTED_MS = 30_000
/** Longest time without any further end, in milliseconds. */
const PATIENCE_MS = 90_000

/**
 * Kills nodes of a layout under load until there were `kills` kills and `requests` accepted requests; then looks for
 * the end of all that was accepted. Resolves with counts, and a line for each fault.
 */
export async function storm(layout, { kills, requests, chance, say }) {
  return await withNetwork(async (lab, port) => {
    const effects = new Effects(path.join(lab.dir(), 'effects'))
    const { fleet, gateway } = await openFleet(lab, { layout, port, witness: effects.file })
    const given = { fleet, effects, chance, gateway }
    const loads = {
      requests: new Requests(given),
      swarms: new Swarms(given),
      tasks: new Tasks(given),
      edits: new Edits(given)
    }
    try {
      for (const load of Object.values(loads)) await load.open?.()
      await killUnderLoad(given, { loads, kills, requests, say })
      const faults = await fleet.strayLinks()
      const ends = await settle(loads, say)
      faults.push(...(await loads.requests.disagreements(ends.requests)))
      faults.push(...faultsOf({ loads, ends, effects: effects.read(), kills: fleet.kills }))
      return { layout, kills: fleet.kills, ...countsOf(loads, ends), problems: await fleet.problems(), faults }
    } finally {
      loads.tasks.close()
    }
  })
}

/**
 * Kills first starts, at any moment of them; each home has to open afterwards. Resolves with the homes that did not, as
 * faults.
 */
export async function killFirstStarts(count, chance) {
  return await withNetwork(async (lab, port) => {
    const faults = []
    for (let at = 0; at < count; at++) {
      const start = { home: path.join(lab.dir(), 'h'), name: 'first', env: localEnv(port) }
      await killedStart(lab, start, Math.floor(chance() * 900))
      await startNode(lab, start).then(
        (node) => node.stop(),
        (error) => faults.push(`a home whose first start was killed does not open: ${error.message}`)
      )
    }
    return { layout: 'first-starts', kills: count, faults }
  })
}

/** With a bootstrap of its own, so that nobody waits for that of a node that was killed. */
async function withNetwork(run) {
  const lab = openLab()
  const port = await freePort()
  const bootstrap = HyperDHT.bootstrapper(port, '127.0.0.1', { host: '127.0.0.1' })
  try {
    await bootstrap.fullyBootstrapped()
    return await run(lab, port)
  } finally {
    await lab.close()
    await bootstrap.destroy()
  }
}

async function killUnderLoad({ fleet, chance }, { loads, kills, requests, say }) {
  const { accepted } = loads.requests
  const isDone = () => fleet.kills >= kills && accepted.size >= requests
  const driving = Promise.all(Object.values(loads).map((load) => load.drive(isDone)))
  while (fleet.kills < kills) {
    // Spread over the whole load, at any moment of it.
    while (accepted.size < fleet.kills * (requests / kills)) await delay(20)
    await delay(chance() * 400)
    await fleet.crashOne(chance)
    if (fleet.kills % 10 < 2) say(`${fleet.kills} kills, ${accepted.size} requests`)
  }
  await driving
}

/**
 * What everything that was accepted ended as, by load and name; or how it stands when there is no progress any more.
 */
async function settle(loads, say) {
  const since = performance.now()
  const ends = Object.fromEntries(Object.keys(loads).map((name) => [name, new Map()]))
  const open = Object.entries(loads).flatMap(([name, load]) =>
    [...load.accepted].map(([key, handle]) => ({ name, load, key, handle }))
  )
  const late = []
  for (let left = open, changed = since; left.length > 0 && performance.now() - changed < PATIENCE_MS; ) {
    const before = left.length
    left = await stillOpen(left, ends)
    if (left.length < before) changed = performance.now()
    if (left.length > 0) await delay(500)
    if (late.length === 0 && performance.now() - since > SUBMITTED_MS)
      late.push(...left.filter(({ name, key }) => isSubmitted(ends[name].get(key))))
  }
  for (const { name, key } of late) ends[name].set(key, { ...ends[name].get(key), isLate: true })
  say(`all settled in ${((performance.now() - since) / 1000).toFixed(1)} s`)
  return ends
}

async function stillOpen(open, ends) {
  const left = []
  for (const one of open) {
    const seen = await one.load
      .look(one.key, one.handle)
      .catch((error) => ({ state: `lost: ${error.code ?? error.message}` }))
    ends[one.name].set(one.key, seen)
    if (!one.load.ends.has(seen.state)) left.push(one)
  }
  return left
}

function isSubmitted({ state }) {
  return state === 'submitted' || state === 'TASK_STATE_SUBMITTED'
}

/** What must not be: a promise broken, or a thing done twice. */
function faultsOf({ loads, ends, effects, kills }) {
  const faults = effects.repeated().map((run) => `${run}: may be run once, begun ${effects.begun(run)} times`)
  for (const [name, load] of Object.entries(loads)) {
    for (const [key, seen] of ends[name]) {
      const fault = load.ends.has(seen.state) ? load.faultOf(key, seen) : `accepted, but ${seen.state}`
      if (fault !== null) faults.push(`${name} ${key}: ${fault}`)
      if (seen.isLate) faults.push(`${name} ${key}: submitted ${SUBMITTED_MS / 1000} s after the last start`)
    }
  }
  const unbegun = [...ends.requests].filter(
    ([run, { state }]) => state === 'unknown' && run.startsWith(ONCE) && effects.begun(run) === 0
  )
  const failed = [...ends.tasks.values()].filter(({ state }) => state === 'TASK_STATE_FAILED')
  // A kill may end every run of the agent, also between the record of its beginning and its first line, and nothing
  // else may.
  for (const [what, { length }] of Object.entries({
    'requests are unknown and never began': unbegun,
    'tasks failed': failed
  }))
    if (length > kills * CONCURRENCY) faults.push(`${length} ${what}, with ${kills} kills`)
  return faults
}

/** How many of what were accepted, and how they ended. */
function countsOf(loads, ends) {
  const counts = {}
  for (const [name, load] of Object.entries(loads)) {
    const states = {}
    for (const { state } of ends[name].values()) states[state] = (states[state] ?? 0) + 1
    counts[name] = { accepted: load.accepted.size, ...states }
  }
  return counts
}
