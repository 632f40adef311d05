import path from 'node:path'
import { freePort, openLab } from '../lab.mjs'
import { inviteFor, localEnv, startNode, times, untilPeer } from '../nodes.mjs'

/** From the spawn of `a2a-node start --join` until the founder and the newcomer see each other online. */
export async function figures({ runs }) {
  const joins = await times(runs, joinOnce)
  return [
    { name: 'join to both sides online', unit: 's', goal: 3, samples: joins.map(({ both }) => both) },
    { name: 'join to the newcomer ready', unit: 's', goal: null, samples: joins.map(({ ready }) => ready) }
  ]
}

async function joinOnce() {
  const lab = openLab()
  try {
    const env = localEnv(await freePort())
    const founder = await startNode(lab, { home: path.join(lab.dir(), 'h'), name: 'a', env })
    const join = await inviteFor(founder)
    const seen = untilPeer(founder, 'b', 'online')
    const newcomer = await startNode(lab, { home: path.join(lab.dir(), 'h'), name: 'b', env, join })
    const at = Math.max(await seen, await untilPeer(newcomer, 'a', 'online'))
    return { both: (at - newcomer.spawnedAt) / 1000, ready: newcomer.readyMs / 1000 }
  } finally {
    await lab.close()
  }
}
