import path from 'node:path'
import { freePort, openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { inTurn, localEnv, times } from '../nodes.mjs'
import { openPeer } from '../peers.mjs'

/** Round trips of one run, each way, in blocks that take turns. */
const BLOCKS = 20
const BLOCK = 100
const WARM_UP = 2000
const REQUESTS = { count: 3000, inFlight: 64 }
const NAME = 'notification round trip, 256 B'

const REQUEST_ROW = {
  name: `request and response, ${REQUESTS.inFlight} in flight`,
  unit: '/s',
  goal: null,
  bound: 'min',
  note: 'between two processes, 256 B each way; on the clock'
}

/** A notification between agents inside two processes and back, against a raw echo between the same two processes. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const env = localEnv(await freePort())
    const [echo, ping] = [openPeer(lab, env), openPeer(lab, env)]
    const port = env.A2A_NODE_LOCAL_PORT
    const place = await echo({ command: 'echo', port, home: path.join(lab.dir(), 'h') })
    await ping({ command: 'open', port, home: path.join(lab.dir(), 'h'), ...place })
    const ways = place.code === null ? ['raw'] : ['raw', 'ours']
    await inTurn(ways, (way) => ping({ command: 'measure', way, count: WARM_UP }))
    const rounds = await times(runs, () => round(ping, ways))
    if (place.code === null) return rows(rounds)
    await ping({ command: 'requests', ...REQUESTS })
    const rates = await times(runs, async () => (await ping({ command: 'requests', ...REQUESTS })).perSecond)
    return [...rows(rounds), { ...REQUEST_ROW, samples: rates }]
  } finally {
    await lab.close()
  }
}

/** Blocks of both ways in turn; the p50 of each way, in milliseconds. */
async function round(ping, ways) {
  const samples = { raw: [], ours: [] }
  await times(BLOCKS, () =>
    inTurn(ways, async (way) => {
      samples[way].push(...(await ping({ command: 'measure', way, count: BLOCK })).samples)
    })
  )
  return { raw: median(samples.raw), ours: median(samples.ours) }
}

function rows(rounds) {
  const measured = rounds.filter(({ ours }) => !Number.isNaN(ours))
  const note =
    measured.length === 0
      ? 'skipped: this build has no agents inside the process (RunningNode.attach)'
      : `each sample compares the p50 of ${BLOCKS * BLOCK} round trips each way, in blocks of ${BLOCK} in turn`
  return [
    { name: `${NAME}, to the raw echo`, unit: 'x', goal: 3, samples: measured.map(({ ours, raw }) => ours / raw), note },
    { name: NAME, unit: 'ms', goal: null, samples: measured.map(({ ours }) => ours) },
    { name: 'raw echo of a DHT stream, 256 B', unit: 'ms', goal: null, samples: rounds.map(({ raw }) => raw) }
  ]
}
