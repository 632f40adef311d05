import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Corestore from 'corestore'
import { openLab } from '../lab.mjs'
import { allOnline, inTurn, localMesh, startNode, times } from '../nodes.mjs'

const IDLE_MS = 60_000
/** Cards and acknowledgements of the start may still be on their way for this long, in milliseconds. */
const SETTLE_MS = 3000
/** The kernel's unit of processor time, in milliseconds. */
const TICK_MS = 10

/**
 * Blocks appended to any core of any node of a mesh of three, over a restart and an idle minute. Counted in the stores
 * between two runs of the nodes: that is what was really written, whatever the nodes say of it.
 */
export async function figures({ runs, say }) {
  const lab = openLab()
  try {
    const first = await times(runs, () => localMesh(lab, ['a', 'b', 'c']))
    await delay(SETTLE_MS)
    await stopAll(first)
    const before = await inTurn(first, blocksOf)
    const again = await inTurn(first, (nodes) => reopened(lab, nodes))
    const alone = await localMesh(lab, ['alone'])
    await delay(SETTLE_MS)
    say(`${runs} meshes of 3 nodes, and one founder alone, idle for a minute`)
    const [inMesh, byItself] = await idleMinute([again.flat(), alone])
    await stopAll(again)
    const after = await inTurn(again, blocksOf)
    return rows(
      after.map((blocks, index) => blocks - before[index]),
      { inMesh, byItself }
    )
  } finally {
    await lab.close()
  }
}

function rows(appended, { inMesh, byItself }) {
  const note = 'counted in the stores of the three nodes, a restart included'
  return [
    { name: 'log appends in an idle minute', unit: 'blocks', goal: 0, statistic: 'worst', samples: appended, note },
    { name: 'processor time of a node in an idle minute', unit: 'ms', goal: null, samples: inMesh },
    { name: 'the same of a founder alone', unit: 'ms', goal: null, samples: byItself }
  ]
}

/** Starts stopped nodes again. */
async function reopened(lab, nodes) {
  const again = await inTurn(nodes, ({ home, name, env }) => startNode(lab, { home, name, env }))
  await allOnline(again)
  return again
}

/** Waits a minute; the processor time that the nodes of each group used in it, in milliseconds. */
async function idleMinute(groups) {
  const from = groups.map((nodes) => nodes.map(cpuMs))
  await delay(IDLE_MS)
  return groups.map((nodes, group) =>
    nodes.map((node, index) => cpuMs(node) - from[group][index]).filter(Number.isFinite)
  )
}

async function stopAll(meshes) {
  await Promise.all(meshes.flat().map((node) => node.stop()))
}

/** Processor time that a node has used so far, in milliseconds; NaN where there is no /proc. */
function cpuMs({ process: { pid } }) {
  try {
    // The name before the last `)` may hold anything; user and system ticks are the 12th and 13th fields after it.
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  } catch {
    return Number.NaN
  }
}

/** Blocks of all cores in the stores of some stopped nodes. */
async function blocksOf(nodes) {
  const lengths = await inTurn(nodes, async ({ home }) => {
    const dir = path.join(home, 'store')
    if (!fs.existsSync(dir)) throw new Error(`no store in ${home}`)
    const store = new Corestore(dir)
    await store.ready()
    let blocks = 0
    for await (const discoveryKey of store.list()) {
      const core = store.get({ discoveryKey, active: false })
      await core.ready()
      blocks += core.length
      await core.close()
    }
    await store.close()
    if (blocks === 0) throw new Error(`no log in the store of ${home}`)
    return blocks
  })
  return lengths.reduce((sum, one) => sum + one, 0)
}
