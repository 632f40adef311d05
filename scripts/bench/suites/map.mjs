import { openLab } from '../lab.mjs'
import { addModuleAgent, localMesh, times } from '../nodes.mjs'
import { runSwarm } from '../swarm-run.mjs'

const ITEMS = 10_000
const AGENT = { id: 'noop', capability: 'work.nothing', sideEffect: 'none' }

/**
 * A map of 10,000 items that do nothing over three nodes, each with a module agent; ledgers survive a power cut, as
 * shipped.
 */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const nodes = await localMesh(lab, ['a', 'b', 'c'])
    await addModuleAgent(nodes, AGENT)
    const items = Array.from({ length: ITEMS }, (_none, index) => ({ item: String(index), input: {} }))
    const seconds = await times(runs, async () => {
      const from = performance.now()
      const { id, counts } = await runSwarm(nodes[0], {
        goal: 'nothing',
        capability: 'work.nothing',
        strategy: 'map',
        items
      })
      const took = (performance.now() - from) / 1000
      await checkShares(nodes[0], { id, counts })
      return took
    })
    return [
      { name: `map of ${ITEMS} no-op items, 3 nodes, module agents, power`, unit: 's', goal: 30, samples: seconds }
    ]
  } finally {
    await lab.close()
  }
}

/** Every item has one result, and every node brought some. */
async function checkShares(node, { id, counts }) {
  const { results } = await node.api.call('swarm.results', { id })
  const agents = new Set(results.map(({ agent }) => agent))
  if (counts.completed !== ITEMS || results.length !== ITEMS || agents.size !== 3)
    throw new Error(`${results.length} results of ${agents.size} agents, ${JSON.stringify(counts)}`)
}
