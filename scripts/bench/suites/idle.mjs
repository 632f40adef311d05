import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Corestore from 'corestore'
import { openLab } from '../lab.mjs'
import { allOnline, inTurn, localMesh, startNode, times } from '../nodes.mjs'

const IDLE_MS = 60_000
/** Cards and acknowledgements of the start may still be on their way for this long, in milliseconds. */
const SETTLE_MS = 3000

/**
 * Blocks appended to any core of any node of a mesh of three, over a restart and an idle minute. Counted in the stores
 * between two runs of the nodes: that is what was really written, whatever the nodes say of it.
 */
export async function figures({ runs, say }) {
  const lab = openLab()
  try {
    const meshes = await times(runs, () => localMesh(lab, ['a', 'b', 'c']))
    await delay(SETTLE_MS)
    await stopAll(meshes)
    const before = await inTurn(meshes, blocksOf)
    const again = await inTurn(meshes, (nodes) => inTurn(nodes, ({ home, name, env }) => startNode(lab, { home, name, env })))
    await inTurn(again, allOnline)
    say(`${runs} meshes of 3 nodes idle for a minute`)
    await delay(IDLE_MS)
    await stopAll(again)
    const after = await inTurn(again, blocksOf)
    return [
      {
        name: 'log appends in an idle minute',
        unit: 'blocks',
        goal: 0,
        statistic: 'worst',
        samples: after.map((blocks, index) => blocks - before[index]),
        note: 'counted in the stores of the three nodes, a restart included'
      }
    ]
  } finally {
    await lab.close()
  }
}

async function stopAll(meshes) {
  await Promise.all(meshes.flat().map((node) => node.stop()))
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
    return blocks
  })
  return lengths.reduce((sum, one) => sum + one, 0)
}
