import test, { type Assert } from 'brittle'
import { MAX_DOCUMENTS } from '../../../src/domain/membership/fold/document.js'
import { DOCUMENTS_KEY } from '../../../src/domain/membership/keys.js'
import type { DocumentRuleRequest } from '../../../src/ports/document-api.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'
import { mapOf } from '../../support/swarm-scene.js'

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly launcher: FakeNode
  readonly worker: FakeNode
  readonly agent: FakeAgent
  readonly other: FakeNode
  readonly swarm: string
}

/**
 * A swarm of a member, whose items a worker in the same sandbox, or in none, has, four at most; another member has no
 * part in it.
 */
async function scene(t: Assert, sandboxId: string | null = null, items = 1): Promise<Scene> {
  const world = new World(t)
  const terms = sandboxId === null ? {} : { sandboxId }
  const agent = new FakeAgent(agentDefinition('w', { capabilities: [capability('work.again')], concurrency: 4 }))
  const owner = await world.owner()
  const launcher = await world.member('launcher', { terms })
  const worker = await world.member('worker', { terms, agents: [agent] })
  const other = await world.member('other')
  await world.link(owner, launcher, worker, other)
  const swarm = await launcher.core.swarms.launch(mapOf(items))
  await world.settle()
  return { world, owner, launcher, worker, agent, other, swarm }
}

async function write({ world }: Pick<Scene, 'world'>, node: FakeNode, swarm: string, text: string): Promise<void> {
  const written = node.api().call('documents.edit', { document: swarm, edit: { type: 'text', text } })
  await world.settle()
  await written
  await world.settle()
}

async function read(node: FakeNode, swarm: string): Promise<unknown> {
  return (await node.api().call('documents.read', { document: swarm, type: 'text' })).value
}

test('participants in no sandbox read and write the document of their swarm, which is made when the first asks for it', (t) =>
  shared(t, null))

test('participants of one sandbox read and write the document of their swarm, which is made when the first asks for it', (t) =>
  shared(t, 'ci'))

async function shared(t: Assert, sandboxId: string | null): Promise<void> {
  const { swarm, launcher, worker, agent, ...rest } = await scene(t, sandboxId)
  t.is(agent.tasks[0]?.swarm, swarm, 'an agent gets the id of its swarm')
  t.is(launcher.core.deps.log.view().documents.size, 0, 'nothing is in the log until somebody asks')
  await write(rest, worker, swarm, 'found it')
  t.is(await read(launcher, swarm), 'found it')
  await write(rest, launcher, swarm, 'found it, stop')
  t.is(await read(worker, swarm), 'found it, stop')
  t.is(await read(rest.owner, swarm), 'found it, stop', 'the owner of the mesh sees all documents')
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(rest.other, swarm))
}

test('a member without a part in a swarm cannot have its document made', async (t) => {
  const { world, swarm, launcher, other } = await scene(t)
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(other, swarm))
  forgeControl(other, launcher, { name: 'swarm-document', body: { swarm } })
  forgeControl(other, launcher, { name: 'swarm-document', body: { swarm: 'swarm_none' } })
  await world.settle()
  t.is(launcher.core.deps.log.view().documents.size, 0)
})

test('a later participant gets access to the document', async (t) => {
  const { world, owner, swarm, launcher, worker, other } = await scene(t, null, 6)
  await write({ world }, worker, swarm, 'early')
  const agent = new FakeAgent(agentDefinition('v', { capabilities: [capability('work.again')] }))
  const late = await world.member('late', { agents: [agent] })
  await world.link(owner, launcher, worker, other, late)
  await world.pass(5000, 500)
  t.is(agent.tasks[0]?.swarm, swarm)
  await write({ world }, late, swarm, 'early, and late')
  t.is(await read(worker, swarm), 'early, and late')
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(other, swarm))
})

const only = (member: string): DocumentRuleRequest => ({
  members: [member],
  tier: null,
  sandboxes: [],
  unsandboxed: false
})

test('a rule that a person set for the document of a swarm stays, for any later participants', async (t) => {
  const { world, owner, swarm, launcher, worker, other } = await scene(t, null, 6)
  await write({ world }, worker, swarm, 'early')
  const rules = [
    [owner, { members: ['worker'] }, { members: ['worker'] }],
    // As the launcher's node made it, but shorter.
    [launcher, only('worker'), only('worker')],
    [launcher, { tier: 'L1' }, { tier: 'L1' }]
  ] as const
  const agent = new FakeAgent(agentDefinition('v', { capabilities: [capability('work.again')] }))
  const late = await world.member('late', { agents: [agent] })
  await world.link(owner, launcher, worker, other, late)
  await world.pass(5000, 500)
  t.is(agent.tasks[0]?.swarm, swarm)
  for (const [by, see, may] of rules) {
    const restricted = by.api().call('documents.restrict', { document: swarm, see, write: may })
    await world.settle()
    await restricted
    await world.settle()
    const set = launcher.core.deps.log.view().documents.get(swarm)?.access
    t.is(set?.by, by.id)
    forgeControl(late, launcher, { name: 'swarm-document', body: { swarm } })
    await world.settle()
    t.alike(launcher.core.deps.log.view().documents.get(swarm)?.access, set)
  }
  t.alike(await launcher.store.read('swarm-documents'), [swarm], 'after a restart too')
})

test('a document of a swarm that does not come is not there, and nobody waits longer', async (t) => {
  const { world, swarm, launcher, worker } = await scene(t)
  world.net.disconnect(launcher.id, worker.id)
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(worker, swarm))
  await world.link(launcher, worker)
  await world.settle()
  launcher.core.peers.isOnline = () => true
  const { send } = worker.core.peers
  worker.core.peers.send = (to, message) => {
    if (message.kind !== 'control' || message.name !== 'swarm-document') send.call(worker.core.peers, to, message)
  }
  const reading = failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(worker, swarm))
  await world.pass(11_000, 1000)
  await reading
})

test('the document of a swarm goes with the swarm, unless somebody set its rules', async (t) => {
  for (const isKept of [false, true]) {
    const { world, swarm, launcher, worker, owner } = await scene(t)
    await write({ world }, worker, swarm, 'found it')
    if (isKept) {
      const restricted = launcher
        .api()
        .call('documents.restrict', { document: swarm, see: { tier: 'L1' }, write: { tier: 'L1' } })
      await world.settle()
      await restricted
    }
    const { swarmDocuments, swarms } = launcher.core
    const expiresAt = swarms.inMemory(swarm)?.head.expiresAt ?? 0
    const look = async (): Promise<void> => {
      const looking = swarmDocuments.removeExpired()
      await world.settle()
      await looking
    }
    await look()
    t.is(await read(owner, swarm), 'found it', 'as long as the swarm is known')
    await swarms.cancel(swarm)
    await world.settle()
    await swarms.purgeExpired(expiresAt + 1_000_000)
    Object.assign(swarms, { inMemory: () => undefined })
    await look()
    t.is(launcher.core.deps.log.view().documents.has(swarm), isKept)
    t.alike(await launcher.store.read('swarm-documents-made'), [], 'it is looked at no more')
    if (isKept) t.is(await read(owner, swarm), 'found it')
    else await failsWith(t, 'DOCUMENT_NOT_FOUND', () => read(owner, swarm))
  }
})

test('the document of a swarm beyond a limit of the log is refused with that limit, to every call that needs it', async (t) => {
  const { world, swarm, launcher } = await scene(t)
  world.log.model.records.set(DOCUMENTS_KEY, { total: MAX_DOCUMENTS, by: {}, bytes: {} })
  const before = world.clock.monotonic()
  const api = launcher.api()
  for (const call of [
    () => read(launcher, swarm),
    () => api.call('documents.edit', { document: swarm, edit: { type: 'text', text: 'x' } }),
    () => api.call('documents.create', { name: swarm })
  ]) {
    const error = await failsWith(t, 'OVERLOADED', call)
    t.ok(error.message.includes(`the mesh has ${MAX_DOCUMENTS} documents`), error.message)
  }
  t.is(world.clock.monotonic(), before, 'at once')
})
