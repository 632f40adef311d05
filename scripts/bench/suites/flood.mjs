import path from 'node:path'
import { quantile } from '../figures.mjs'
import { freePort, openLab } from '../lab.mjs'
import { localEnv, times } from '../nodes.mjs'
import { openPeer } from '../peers.mjs'

/** Round trips of a sample. */
const TRIPS = 3000
const WARM_UP = 2000

/** What an honest pair feels while a third member sends to one of them as fast as its node lets it. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const env = localEnv(await freePort())
    const [echo, ping, member] = [openPeer(lab, env), openPeer(lab, env), openPeer(lab, env)]
    const port = env.A2A_NODE_LOCAL_PORT
    const { sink, ...place } = await echo({ command: 'echo', port, home: path.join(lab.dir(), 'h') })
    await ping({ command: 'open', port, home: path.join(lab.dir(), 'h'), ...place })
    const flood = (on) => member({ command: 'flood', home: path.join(lab.dir(), 'h'), sink, code: place.code, on })
    await flood(true)
    await flood(false)
    const p99 = async (count) => quantile((await ping({ command: 'measure', way: 'ours', count })).samples, 0.99)
    await p99(WARM_UP)
    const rounds = await times(runs, async () => {
      const quiet = await p99(TRIPS)
      await echo({ command: 'count' })
      await flood(true)
      const from = performance.now()
      const flooded = await p99(TRIPS)
      const { taken } = await echo({ command: 'count' })
      const rate = taken / ((performance.now() - from) / 1000)
      await flood(false)
      return { quiet, flooded, rate }
    })
    return [
      {
        name: 'p99 of an honest pair, flooded to quiet',
        unit: 'x',
        goal: 2,
        samples: rounds.map(({ quiet, flooded }) => flooded / quiet)
      },
      { name: 'p99 of an honest pair, quiet', unit: 'ms', goal: null, samples: rounds.map(({ quiet }) => quiet) },
      { name: 'p99 of an honest pair, flooded', unit: 'ms', goal: null, samples: rounds.map(({ flooded }) => flooded) },
      { name: 'messages of the flood that came in', unit: '/s', goal: null, samples: rounds.map(({ rate }) => rate) }
    ]
  } finally {
    await lab.close()
  }
}
