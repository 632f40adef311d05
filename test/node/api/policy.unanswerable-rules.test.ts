import test from 'brittle'
import { echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

test('policy show warns of rules that ask where nobody here can be asked, and of no others', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('text'), echo('builder')] })
  await world.link(here, peer)
  const warned = async (...rules: readonly string[]): Promise<string[]> => {
    here.policy.write(`rules:\n${rules.map((rule) => `  - { ${rule} }\n`).join('')}`)
    return (await here.api().call('policy.show', {})).unasked.map(({ line, message }) => `${line}: ${message}`)
  }
  const told = (line: number, why: string): string =>
    `${line}: this rule asks nobody: ${why}; the next rule that matches decides, else the tier table`
  const there = 'only the policy of that node can ask a person there'
  t.alike(
    await warned(
      'to: { node: peer }, decision: ask',
      `to: { node: [${peer.id}, ${peer.id.slice(0, 8)}] }, decision: ask`,
      'to: { agent: builder }, decision: ask',
      'type: task-proposal, decision: ask'
    ),
    [
      told(2, `it is for agents of peer alone, and ${there}`),
      told(3, `it is for agents of peer alone, and ${there}`),
      told(4, `no agent of this node is meant, only builder@peer, and ${there}`),
      told(5, 'a proposal runs nothing, and nothing else is meant')
    ]
  )
  t.alike(
    await warned(
      'decision: ask',
      'from: { node: owner }, decision: ask',
      'to: { node: [peer, owner] }, decision: ask',
      'to: { node: [peer, nobody] }, decision: ask',
      'to: { agent: text }, decision: ask',
      'to: { agent: [text, builder] }, decision: ask',
      'to: { agent: [builder, nobody] }, decision: ask',
      'type: [task-proposal, request], decision: ask',
      'to: { node: peer }, decision: deny',
      'to: { node: peer }, decision: allow'
    ),
    []
  )
})

test('policy show names no agents that its sandboxed caller does not find', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    agents: [echo('text')],
    policy: 'rules:\n  - { to: { agent: builder }, decision: ask }\n'
  })
  const peer = await world.member('peer', { agents: [echo('builder')] })
  await world.link(here, peer)
  t.is((await here.api().call('policy.show', {})).unasked.length, 1)
  t.alike((await here.api({ sandboxId: 'ci', tier: 1 }).call('policy.show', {})).unasked, [])
})
