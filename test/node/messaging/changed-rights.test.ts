import test, { type Assert } from 'brittle'
import type { Certificate } from '../../../src/domain/membership/types.js'
/** The time of former claims, as docs/SECURITY.md states it: 5 min. */
const FORMER_CLAIM_MS = 300_000
import { CLAIM_WAIT_MS, MAX_EARLY_CLAIMS } from '../../../src/node/messaging/verify.js'
import { agentDefinition, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge } from '../../support/forge.js'
import { actor } from '../../support/membership.js'
import { memberPrincipal } from '../../../src/node/gateway/resolve-agent.js'

interface Scene {
  readonly world: World
  /** L1 with an agent `text`. */
  readonly here: FakeNode
  /** L1, with an agent `free` in no sandbox. */
  readonly peer: FakeNode
  readonly agent: FakeAgent
}

async function scene(t: Assert, terms: object = {}): Promise<Scene> {
  const world = new World(t)
  const agent = echo('text')
  const here = await world.member('here', { agents: [agent] })
  const peer = await world.member('peer', { agents: [echo('free')], terms })
  await world.link(here, peer)
  return { world, here, peer, agent }
}

/** The owner changes the certificate of the peer; all nodes have the entry at once. */
function recertify({ world, peer }: Scene, change: Partial<Certificate>): void {
  const before = world.log.view().members.get(peer.id)?.certificate.body
  if (before === undefined) throw new Error('no such member')
  world.log.model.recertify(actor('owner'), {
    ...before,
    serial: before.serial + 1,
    issuer: actor('owner').id,
    issuedAt: world.clock.now(),
    ...change
  })
  world.log.changed()
}

/** The peer has another version of its agents, with one in the place of the former. */
async function replaceAgent({ world, peer }: Scene, agent: FakeAgent): Promise<void> {
  peer.source.set([agent])
  await world.settle()
}

/** Codes and kinds of all that this node refused. */
function refused({ here }: Scene): string[] {
  return here.audit.events.map(({ kind, code }) => `${kind} ${code ?? ''}`)
}

/** Metadata of a message of a sender of this tier, made now. */
function claim({ world }: Scene, tier: 0 | 1 | 2 | 3, sandboxId?: string): object {
  return { timestamp: world.clock.now(), metadata: sandboxId === undefined ? { tier } : { tier, sandboxId } }
}

test('a message with the former tier of its sender counts as the present one, without a strike', async (t) => {
  const at = await scene(t)
  const old = claim(at, 1)
  recertify(at, { maxTier: 3 })
  await at.world.settle()
  forge(at.peer, at.here, old)
  await at.world.settle()
  t.alike(refused(at), ['refusal ESCALATION_REQUIRED'], 'the rules judge the tier that it has now')
  forge(at.peer, at.here, { ...old, metadata: { tier: 1, justification: 'a test' } })
  await at.world.settle()
  t.is(at.agent.tasks.length, 1, 'and it may do all that this tier may')
  t.alike(at.here.links.strikes, [])
})

test('a tier that a sender had long ago is a forgery, and so is one before any change', async (t) => {
  const at = await scene(t, { tier: 2 })
  forge(at.peer, at.here, { ...claim(at, 0), timestamp: 1 })
  await at.world.pass(2 * CLAIM_WAIT_MS)
  t.alike(at.here.links.strikes.length, 1, 'its certificate is the first one')
  recertify(at, { maxTier: 3 })
  await at.world.pass(FORMER_CLAIM_MS + 10_000, 5000)
  forge(at.peer, at.here, claim(at, 2))
  await at.world.pass(2 * CLAIM_WAIT_MS)
  t.is(at.here.links.strikes.length, 2)
  t.alike(refused(at), ['strike FORBIDDEN', 'strike FORBIDDEN'])
  t.is(at.agent.tasks.length, 0)
})

test('a message ahead of the entry that grants its tier waits for it, and then passes with that tier', async (t) => {
  const at = await scene(t, { tier: 3 })
  forge(at.peer, at.here, claim(at, 1))
  await at.world.settle()
  t.is(at.agent.tasks.length, 0)
  recertify(at, { maxTier: 1 })
  await at.world.pass(2 * CLAIM_WAIT_MS)
  t.is(at.agent.tasks.length, 1, 'without a justification, which L3 needs')
  t.alike([refused(at), at.here.links.strikes], [[], []])
  t.is(at.here.counted('messages_received', 'request'), 1, 'it counts as received once')
})

test('a card that leaves or changes its sandbox makes no message in transit a forgery', async (t) => {
  const at = await scene(t)
  await replaceAgent(at, new FakeAgent(agentDefinition('free', { sandboxId: 'ci' })))
  forge(at.peer, at.here, { ...claim(at, 1), sender: `free@${at.peer.id}` })
  await at.world.settle()
  t.alike(refused(at), ['refusal SANDBOX_VIOLATION'], 'it is in the sandbox now, and its target is not')
  await replaceAgent(at, echo('free'))
  forge(at.peer, at.here, { ...claim(at, 1, 'ci'), sender: `free@${at.peer.id}` })
  await at.world.settle()
  t.is(refused(at).at(-1), 'refusal SANDBOX_VIOLATION', 'a weaker claim holds')
  t.alike(at.here.links.strikes, [])
})

test('a card with a lower tier makes no message in transit a forgery', async (t) => {
  const at = await scene(t)
  await replaceAgent(at, echo('free', { tier: 3 }))
  forge(at.peer, at.here, { ...claim(at, 1), sender: `free@${at.peer.id}` })
  await at.world.settle()
  t.alike([refused(at), at.here.links.strikes], [['refusal ESCALATION_REQUIRED'], []])
})

test('a new name, and a trust of this node, leave a message in transit as it was', async (t) => {
  const at = await scene(t)
  const old = claim(at, 1)
  recertify(at, { name: 'renamed' })
  await at.here.api().call('peers.trust', { peer: at.peer.id, trust: 'guest' })
  forge(at.peer, at.here, old)
  await at.world.settle()
  t.alike([at.agent.tasks.length, refused(at), at.here.links.strikes], [1, [], []])
})

test('a call of a member over A2A with its former tier counts as the present one', async (t) => {
  const at = await scene(t)
  const deps = { directory: at.here.core.directory, clock: at.world.clock }
  const principal = (tier: 0 | 1 | 3): number => memberPrincipal(deps, at.peer.id, { tier }).tier
  void t.exception(() => principal(0), /claims another tier/)
  recertify(at, { maxTier: 3 })
  t.is(principal(1), 3)
  await at.world.pass(FORMER_CLAIM_MS + 10_000, 5000)
  void t.exception(() => principal(1), /claims another tier/)
})

test('few messages of a peer wait for entries that never come; further ones are refused at once', async (t) => {
  const at = await scene(t)
  for (let count = 0; count < MAX_EARLY_CLAIMS + 3; count++) forge(at.peer, at.here, claim(at, 0))
  await at.world.settle()
  t.is(at.here.links.strikes.length, 3)
  await at.world.pass(2 * CLAIM_WAIT_MS)
  t.is(at.here.links.strikes.length, MAX_EARLY_CLAIMS + 3)
  t.is(at.here.counted('messages_received', 'request'), MAX_EARLY_CLAIMS + 3)
  t.is(at.agent.tasks.length, 0)
})
