import path from 'node:path'
import { freePort, openLab } from '../lab.mjs'
import { localEnv, startNode, times } from '../nodes.mjs'

/**
 * From the spawn of `a2a-node start` to its first line, when it founds a mesh and when it opens the one of its home.
 */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const both = await times(runs, () => foundAndReopen(lab))
    return [
      { name: 'start to ready, founding', unit: 's', goal: 1.5, samples: both.map(({ founding }) => founding) },
      { name: 'start to ready, reopening', unit: 's', goal: 1.5, samples: both.map(({ reopening }) => reopening) }
    ]
  } finally {
    await lab.close()
  }
}

async function foundAndReopen(lab) {
  const start = { home: path.join(lab.dir(), 'h'), name: 'a', env: localEnv(await freePort()) }
  const seconds = await times(2, async () => {
    const node = await startNode(lab, start)
    await node.stop()
    return node.readyMs / 1000
  })
  return { founding: seconds[0], reopening: seconds[1] }
}
