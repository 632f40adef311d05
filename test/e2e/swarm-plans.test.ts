import test from 'brittle'
import type { AgentDetail, AgentInfo } from '../../src/ports/node-api.js'
import { type TestMesh, type TestNode, testMesh, untilAgent, untilOnline } from '../support/nodes.js'

/** Nodes a, b and c; b is marked `gpu` and `zone=eu`. */
async function labelledMesh(mesh: TestMesh): Promise<TestNode[]> {
  const [a] = await mesh.meshOf('a')
  const nodes: TestNode[] = [a]
  for (const [name, labels] of [
    ['b', 'gpu,zone=eu'],
    ['c', '']
  ] as const) {
    const { code } = await a.json<{ code: string }>(['invite'])
    nodes.push(await mesh.start(name, { join: code, env: labels === '' ? {} : { A2A_NODE_NODE_LABELS: labels } }))
  }
  await untilOnline(a, 2)
  await Promise.all(['text@b', 'text@c', 'host@b', 'host@c'].map((address) => untilAgent(a, address)))
  return nodes
}

test('labels of the config stand on the cards that other nodes hold', async (t) => {
  const [a] = await labelledMesh(await testMesh(t))
  const { agents } = await a.json<{ agents: AgentInfo[] }>(['agents'])
  const labels = (address: string): readonly string[] | undefined => agents.find((one) => one.address === address)?.labels
  t.alike([labels('text@a'), labels('text@b'), labels('text@c')], [[], ['gpu', 'zone=eu'], []])
  t.alike((await a.json<AgentDetail>(['agents', 'show', 'host@b'])).labels, ['gpu', 'zone=eu'])
  t.ok((await a.cli(['agents', 'show', 'host@b'])).stdout.includes('gpu, zone=eu'))
})
