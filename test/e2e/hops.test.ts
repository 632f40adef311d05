import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import { hash, verify } from '../../src/adapters/mesh/network/sodium.js'
import { createMemoryLedger } from '../support/memory-ledger.js'
import { randomIds } from '../../src/adapters/system/random-ids.js'
import { systemClock } from '../../src/adapters/system/system-clock.js'
import { createNode, type NodeCore } from '../../src/node/node.js'
import { inviteCode, type LabNode, meshLab } from '../adapters/mesh/lab.js'
import { eventually } from '../support/agents/eventually.js'
import { echo, FakeSource, type FakeAgent } from '../support/fake-agents.js'
import { FakeAudit, memoryAddresses, SETTINGS } from '../support/fake-node.js'
import { FakePolicy } from '../support/fake-policy.js'
import { FakeStore } from '../support/fake-store.js'
import { StreamNet } from '../support/memory-streams.js'

/** The whole node on top of a mesh over real streams. */
async function whole(t: Assert, { mesh, telemetry }: LabNode, agents: readonly FakeAgent[] = []): Promise<NodeCore> {
  const clock = systemClock()
  const core = createNode({
    clock,
    ids: randomIds(),
    chance: Math.random,
    ledger: createMemoryLedger(),
    sign: mesh.sign,
    verify,
    hash,
    secret: () => new Uint8Array(32),
    compileSchema: createSchemaCompiler(),
    toAgentJson: (value) => value,
    telemetry,
    audit: new FakeAudit(),
    store: new FakeStore(),
    membership: mesh,
    links: mesh.links,
    givenAddresses: memoryAddresses(),
    log: mesh.log,
    pairing: mesh.pairing,
    documents: new StreamNet({ isConnected: () => false, moved: 0 }).of(mesh.nodeId),
    agents: new FakeSource(agents),
    policy: new FakePolicy(''),
    settings: SETTINGS,
    problems: () => [],
    logState: { problems: () => [], onChange: () => () => {} },
    process: {
      pid: 1,
      home: '/home',
      network: 'local',
      version: '0.0.0',
      socket: '/home/control.sock',
      startedAt: clock.now()
    }
  })
  t.teardown(() => core.close(), { order: -1 })
  await core.start()
  return core
}

test('two members that cannot link, since both have all places taken, speak through the one that both have', {
  timeout: 120_000
}, async (t) => {
  const lab = await meshLab(t)
  const between = await lab.found('between')
  const b = await whole(t, between)
  /** One that has a single place, taken by the one between. */
  const join = async (name: string, agents: readonly FakeAgent[]): Promise<{ core: NodeCore; id: string }> => {
    const member = await lab.join(name, await inviteCode(between), { maxLinks: 1 })
    const core = await whole(t, member, agents)
    await eventually(() => core.peers.isOnline(between.id))
    return { core, id: member.id }
  }
  const agent = echo('text')
  const a = await join('a', [])
  const c = await join('c', [agent])
  const target = { agentId: 'text', nodeId: c.id }
  await eventually(() => a.core.directory.card(target) !== undefined && c.core.directory.certificate(a.id) !== null)
  await eventually(() => c.core.directory.card({ agentId: 'operator', nodeId: a.id }) !== undefined)
  await eventually(
    () =>
      b.directory.card(target) !== undefined && b.directory.card({ agentId: 'operator', nodeId: a.id }) !== undefined
  )
  const bytes = new Uint8Array(300_000).map((_, at) => at % 253)
  const sender = { agentId: 'operator', nodeId: a.id }
  const asking = {
    sender,
    target,
    capability: 'text.do',
    input: { bytes },
    description: '',
    timeoutMs: 60_000,
    mayQueue: false
  }
  const { answer } = await a.core.requests.ask(asking)
  t.alike(await answer, { outcome: 'COMPLETED', result: { bytes } })
  t.is(agent.tasks.length, 1)
  t.absent(a.core.peers.isOnline(c.id))
  const decided = c.core.observability
    .getRecentEvents()
    .find((one) => one.type === 'routing-decision' && one.messageType === 'request')
  t.alike(decided?.hops, [between.id])
})
