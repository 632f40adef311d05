import fs from 'node:fs'
import path from 'node:path'
import { openLab } from '../lab.mjs'
import { localMesh, times, untilTrue } from '../nodes.mjs'

/** How often both nodes are asked, in milliseconds: the grain of these figures. */
const LOOK_MS = 2

/** A new agent file on one node until the other node lists the agent. */
export async function figures({ runs }) {
  const lab = openLab()
  try {
    const [a, b] = await localMesh(lab, ['a', 'b'])
    const seen = await times(runs * 2, (index) => addAgent(a, b, `added-${index}`))
    return [
      {
        name: 'card on the other node, from its own list',
        unit: 'ms',
        goal: 100,
        samples: seen.map(({ own, other }) => Math.max(0, other - own)),
        note: `from when its own node lists the agent; both are asked every ${LOOK_MS} ms`
      },
      {
        name: 'card on the other node, from the write',
        unit: 'ms',
        goal: null,
        samples: seen.map(({ write, other }) => other - write)
      }
    ]
  } finally {
    await lab.close()
  }
}

async function addAgent(a, b, id) {
  const write = performance.now()
  fs.writeFileSync(path.join(a.home, 'agents', `${id}.md`), agentFile(id))
  const [own, other] = await Promise.all(
    [a, b].map((node) => untilTrue(() => lists(node, id), `${id} is on ${node.name}`, LOOK_MS))
  )
  return { write, own, other }
}

async function lists(node, id) {
  const { agents } = await node.api.call('agents.list', {})
  return agents.some((one) => one.id === id)
}

function agentFile(id) {
  return `---
name: ${id}
description: An agent of the bench.
a2a:
  capabilities:
    - id: bench.nothing
      description: Does nothing
  runtime: { type: command, command: ['true'] }
---
`
}
