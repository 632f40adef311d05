import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { inTurn, localEnv, times } from '../nodes.mjs'
import { openPeer } from '../peers.mjs'

const APART = fileURLToPath(new URL('../apart.mjs', import.meta.url))
/** Calls of one run to each of the two nodes, one after the other, in blocks that take turns. */
const BLOCKS = 10
const BLOCK = 30
const WARM_UP = 200

/** A recorded call to a node that has no link, over the one between, against one to the node between. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const { ping, farId, workers } = await chain(lab)
    const measure = async (worker, count) => (await ping({ command: 'requests', count, inFlight: 1, worker })).p50
    await inTurn(Object.values(workers), (worker) => measure(worker, WARM_UP))
    const rounds = await times(runs, async () => {
      const p50s = await times(BLOCKS, () => inTurn(Object.values(workers), (worker) => measure(worker, BLOCK)))
      return { near: median(p50s.map(([near]) => near)), far: median(p50s.map(([, far]) => far)) }
    })
    const { ids } = await ping({ command: 'links' })
    if (ids.includes(farId)) throw new Error('the two nodes that are to be apart have a link')
    return rows(rounds)
  } finally {
    await lab.close()
  }
}

/**
 * Three processes: the first asks, the second is linked with both others, and no link is between the first and the
 * third.
 */
async function chain(lab) {
  const env = localEnv(await freePort())
  const refused = path.join(lab.dir(), 'refused')
  const [near, far] = [openPeer(lab, env), openPeer(lab, env)]
  const ping = openPeer(lab, { ...env, NODE_OPTIONS: `--import ${APART}`, REFUSED_LINKS: refused })
  const port = env.A2A_NODE_LOCAL_PORT
  const home = () => path.join(lab.dir(), 'h')
  const place = await near({ command: 'echo', port, home: home() })
  const { id, worker } = await far({ command: 'far', home: home(), code: place.code })
  fs.writeFileSync(refused, id)
  await ping({ command: 'open', port, home: home(), ...place })
  return { ping, farId: id, workers: { near: place.worker, far: worker } }
}

function rows(rounds) {
  const called = 'recorded call over one relay, power'
  return [
    {
      name: `${called}, to a direct one`,
      unit: 'x',
      goal: 2.5,
      samples: rounds.map(({ near, far }) => far / near),
      note: `each sample compares the p50 of ${BLOCKS * BLOCK} calls each way, one in flight, in blocks of ${BLOCK} in turn`
    },
    { name: `${called}, p50`, unit: 'ms', goal: null, samples: rounds.map(({ far }) => far) },
    {
      name: 'recorded call to a node with a link, power, p50',
      unit: 'ms',
      goal: null,
      samples: rounds.map(({ near }) => near)
    }
  ]
}
