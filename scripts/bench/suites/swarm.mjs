import { openLab } from '../lab.mjs'
import { median } from '../figures.mjs'
import { localMesh, times } from '../nodes.mjs'
import { runSwarm } from '../swarm-run.mjs'

const TINY_ITEMS = 1000
const LARGE_ITEMS = 48
const LARGE_BYTES = 1_000_000
const REQUESTS = 200

/**
 * Work over three nodes: many tiny items, few large ones, and requests one after the other. Nothing here has a goal.
 */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const nodes = await localMesh(lab, ['a', 'b', 'c'])
    const rounds = await times(runs, async () => ({
      tiny: TINY_ITEMS / (await secondsOf(nodes[0], TINY_ITEMS, 'tiny')),
      large: (LARGE_ITEMS * LARGE_BYTES) / 1e6 / (await secondsOf(nodes[0], LARGE_ITEMS, 'x'.repeat(LARGE_BYTES))),
      request: await requestMs(nodes[0])
    }))
    return [
      {
        name: `swarm of ${TINY_ITEMS} tiny items, 3 nodes`,
        unit: 'items/s',
        goal: null,
        bound: 'min',
        samples: rounds.map(({ tiny }) => tiny)
      },
      {
        name: `swarm of ${LARGE_ITEMS} texts of 1 MB, 3 nodes`,
        unit: 'MB/s',
        goal: null,
        bound: 'min',
        samples: rounds.map(({ large }) => large)
      },
      {
        name: 'request to an agent of another node',
        unit: 'ms',
        goal: null,
        samples: rounds.map(({ request }) => request),
        note: `each sample is the p50 of ${REQUESTS} calls, through the control socket`
      }
    ]
  } finally {
    await lab.close()
  }
}

/** How long a swarm over so many items of one text takes, in seconds. */
async function secondsOf(node, count, text) {
  const items = Array.from({ length: count }, (_none, index) => ({ item: String(index), input: { text } }))
  const { durationMs } = await runSwarm(node, { goal: 'bench', capability: 'text.stats', strategy: 'map', items })
  return durationMs / 1000
}

async function requestMs(node) {
  const call = { agent: 'text@b', capability: 'text.stats', input: { text: 'a b c' } }
  return median(
    await times(REQUESTS, async () => {
      const from = performance.now()
      const { outcome, error } = await node.api.call('message.call', call)
      if (outcome !== 'COMPLETED') throw new Error(`a request ended ${outcome}: ${JSON.stringify(error)}`)
      return performance.now() - from
    })
  )
}
