import fs from 'node:fs'
import path from 'node:path'
import { openLab } from '../lab.mjs'
import { localMesh, times } from '../nodes.mjs'
import { runSwarm } from '../swarm-run.mjs'

const ITEMS = 10_000
const AGENT = `---
name: noop
description: Does nothing.
a2a:
  version: 0.1.0
  capabilities:
    - { id: work.nothing, description: nothing, input: { type: object }, idempotent: true, sideEffect: none }
  runtime: { type: module, path: ./noop.mjs }
  limits: { concurrency: 32 }
---
`

/** A map of 10,000 items that do nothing over three nodes, each with a module agent; ledgers survive a power cut, as shipped. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const nodes = await localMesh(lab, ['a', 'b', 'c'])
    for (const { home } of nodes) {
      const dir = path.join(home, 'agents')
      fs.mkdirSync(dir, { recursive: true })
      fs.writeFileSync(path.join(dir, 'noop.mjs'), 'export default { async run() { return null } }\n')
      fs.writeFileSync(path.join(dir, 'noop.md'), AGENT)
    }
    await allThere(nodes[0], nodes.length)
    const items = Array.from({ length: ITEMS }, (_none, index) => ({ item: String(index), input: {} }))
    const seconds = await times(runs, async () => {
      const from = performance.now()
      const { id, counts } = await runSwarm(nodes[0], { goal: 'nothing', capability: 'work.nothing', strategy: 'map', items })
      const took = (performance.now() - from) / 1000
      await checkShares(nodes[0], { id, counts })
      return took
    })
    return [{ name: `map of ${ITEMS} no-op items, 3 nodes, module agents, power`, unit: 's', goal: 30, samples: seconds }]
  } finally {
    await lab.close()
  }
}

/** Waits until all nodes offer the agent. */
async function allThere(node, count) {
  for await (const { agents } of listings(node)) {
    if (agents.filter((one) => one.id === 'noop' && one.status === 'ready').length === count) return
  }
}

async function* listings(node) {
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    yield await node.api.call('agents.list', {})
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the agents never came')
}

/** Every item has one result, and every node brought some. */
async function checkShares(node, { id, counts }) {
  const { results } = await node.api.call('swarm.results', { id })
  const agents = new Set(results.map(({ agent }) => agent))
  if (counts.completed !== ITEMS || results.length !== ITEMS || agents.size !== 3)
    throw new Error(`${results.length} results of ${agents.size} agents, ${JSON.stringify(counts)}`)
}
