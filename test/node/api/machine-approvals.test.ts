import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { shortId, utf8 } from '../../../src/kit/ids.js'
import { APPROVALS_PATH } from '../../../src/domain/policy/approval-call.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { MACHINE_ANSWER_MS } from '../../../src/node/api/machine-approvals.js'
import { ASK, firstWaiting, waitingOf } from '../../support/approval-scene.js'
import { echo, type FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { asked, forged, machines, OPERATOR, regard } from '../../support/machine-scene.js'

/** Makes a node answer calls about its approvals otherwise. */
function answers(node: FakeNode, make: () => Promise<Uint8Array>): void {
  node.core.memberCalls.serveAt(APPROVALS_PATH, async () => {
    const bytes = await make()
    return { body: () => bytes }
  })
}

test('a machine of the owner lists, shows and decides the approvals of another one; the audit log there names both', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, agent } = scene
  const id = await asked(scene)
  const api = desktop.api()
  const { approvals, machines: others = [] } = await api.call('approvals.list', { machines: true })
  t.alike(approvals, [])
  t.alike(
    others.map(({ node, approvals: list, more, error }) => [node.id, list.map((one) => one.id), more, error]),
    [[peer.id, [id], 0, null]]
  )
  const detail = await api.call('approvals.show', { id })
  t.alike([detail.id, detail.whole.input, detail.toNode.id], [id, { n: 1 }, peer.id])
  t.is(agent.tasks.length, 0)
  const { id: decided } = await api.call('approvals.allow', { id: id.slice(0, -1) })
  await world.settle()
  t.alike([decided, agent.tasks.length], [id, 1])
  const [line] = peer.audit.of('approval')
  t.alike([line?.code, line?.by], ['ALLOWED', desktop.id])
  t.is(line?.reason, `${id} allowed by operator of owner (${shortId(desktop.id)}): text.do`)
  const second = await asked(scene)
  await api.call('approvals.deny', { id: second })
  await world.settle()
  t.alike([agent.tasks.length, await waitingOf(peer)], [1, []])
  t.alike([peer.audit.of('approval').at(-1)?.code, peer.audit.of('approval').at(-1)?.by], ['POLICY_DENIED', desktop.id])
})

test('a guest neither lists nor decides with any claim, and the audit log has its calls', async (t) => {
  const scene = await machines(t)
  const { world, desktop, asker, peer, agent } = scene
  const id = await asked(scene)
  for (const body of [
    { do: 'list', by: OPERATOR },
    { do: 'find', id, by: OPERATOR },
    { do: 'show', id, by: OPERATOR },
    { do: 'deny', id, by: OPERATOR },
    { do: 'allow', id, by: OPERATOR }
  ])
    t.is((await forged(asker, peer.id, body)).error?.code, 'FORBIDDEN', body.do)
  t.is(
    peer.audit.of('refusal').filter(({ by, rule }) => by === asker.id && rule === 'approvals: own machines').length,
    5
  )
  await regard(world, asker, peer, 'mine')
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => asker.api().call('approvals.allow', { id }))
  // Once regarded as a machine of the owner, it decides no longer after it is a guest again.
  await regard(world, peer, desktop, 'guest')
  t.is((await forged(desktop, peer.id, { do: 'allow', id, by: OPERATOR })).error?.code, 'FORBIDDEN')
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => desktop.api().call('approvals.allow', { id }))
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(peer)).length], [0, 1])
  await regard(world, peer, desktop, 'mine')
  await desktop.api().call('approvals.allow', { id })
  await world.settle()
  t.is(agent.tasks.length, 1)
})

test('a weaker, sandboxed or limited caller, an agent and a caller without the right decide nothing: neither side lets them', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, agent } = scene
  const id = await asked(scene)
  const claims: [object, string][] = [
    [{ tier: 2 }, 'POLICY_DENIED'],
    [{ sandboxId: 'ci' }, 'SANDBOX_VIOLATION'],
    [{ isLimited: true }, 'FORBIDDEN'],
    [{ isAdmin: false }, 'FORBIDDEN'],
    [{ kind: 'agent' }, 'FORBIDDEN'],
    [{ kind: 'mcp' }, 'FORBIDDEN'],
    [{ kind: 'peer' }, 'FORBIDDEN'],
    [{ kind: 'client' }, 'FORBIDDEN'],
    [{ tier: -1 }, 'FORBIDDEN'],
    [{ more: true }, 'FORBIDDEN']
  ]
  for (const [claim, code] of claims)
    for (const name of ['allow', 'deny']) {
      const { error } = await forged(desktop, peer.id, { do: name, id, by: { ...OPERATOR, ...claim } })
      t.is(error?.code, code, JSON.stringify(claim))
    }
  const noted = peer.audit.of('refusal').length
  t.is(noted, 2 * claims.length)
  const callers: Partial<Principal>[] = [
    { tier: 1 },
    { sandboxId: 'ci' },
    { agents: ['text'] },
    { capabilities: ['text.do'] },
    { kind: 'agent', agentId: 'text' },
    { kind: 'operator', agentId: 'text' },
    { kind: 'mcp' },
    { kind: 'client' },
    { scopes: ['read', 'send'] }
  ]
  for (const caller of callers) {
    for (const name of ['approvals.allow', 'approvals.deny'] as const) {
      const error = await desktop
        .api(caller)
        .call(name, { id })
        .then(
          () => null,
          (one: unknown) => one
        )
      const code = error instanceof NodeError ? error.code : null
      t.ok(code === 'FORBIDDEN' || code === 'SANDBOX_VIOLATION', `${JSON.stringify(caller)} ${String(code)}`)
    }
    const list = await desktop
      .api(caller)
      .call('approvals.list', { machines: true })
      .catch(() => null)
    if (list !== null) t.alike(list.machines, [], JSON.stringify(caller))
  }
  await world.settle()
  t.is(peer.audit.of('refusal').length, noted, 'no call left the node')
  t.alike([agent.tasks.length, (await waitingOf(peer)).length], [0, 1])
})

/** Policies of a strong node; each asks about the work of guests. */
const GUESTS = '  - { from: { trust: guest }, capability: text.*, decision: ask }'
const POLICIES = {
  'asks guests': `rules:\n${GUESTS}\n`,
  'asks everybody': ASK,
  'denies own machines': `rules:\n  - { from: { trust: mine }, decision: deny }\n${GUESTS}\n`,
  'allows own machines': `rules:\n  - { from: { trust: mine }, decision: allow }\n${GUESTS}\n`,
  'allows own machines of L3': `rules:\n  - { from: { trust: mine, tier: L3 }, decision: allow }\n${GUESTS}\n`
}

/** The node of the sender decides first; here the asked node alone does. */
const SENDS = 'rules:\n  - { to: { agent: text }, decision: allow }\n'

interface WeakMachine {
  readonly world: World
  readonly agent: FakeAgent
  readonly strong: FakeNode
  readonly weak: FakeNode
  readonly guest: FakeNode
}

/** An L0 node with an agent, a weaker machine of its owner, and a guest. */
async function weakMachine(
  t: Assert,
  { policy, machine, guest }: { readonly policy: string; readonly machine: Tier; readonly guest: Tier }
): Promise<WeakMachine> {
  const world = new World(t)
  const agent = echo('text')
  const strong = await world.owner({ agents: [agent], policy })
  const weak = await world.member('weak', { terms: { tier: machine }, policy: SENDS })
  const other = await world.member('guest', { terms: { tier: guest } })
  await world.link(strong, weak, other)
  await regard(world, strong, weak, 'mine')
  await regard(world, weak, strong, 'mine')
  return { world, agent, strong, weak, guest: other }
}

/** Does the weaker machine decide about the guest? Checks it against the work that the machine does itself. */
async function isDecided(t: Assert, ranks: Parameters<typeof weakMachine>[1]): Promise<boolean> {
  const { machine, guest } = ranks
  const scene = await weakMachine(t, ranks)
  const { world, agent, strong, weak } = scene
  await callStrong(scene, weak)
  const isFree = agent.tasks.length === 1
  for (const { id } of await waitingOf(strong)) await strong.api().call('approvals.deny', { id })
  await callStrong(scene, scene.guest, 'it is due')
  const id = await firstWaiting(strong)
  const [list] = (await weak.api().call('approvals.list', { machines: true })).machines ?? []
  const { error } = await forged(weak, strong.id, { do: 'allow', id, by: OPERATOR })
  await world.settle()
  const isAllowed = agent.tasks.length > Number(isFree)
  t.is(isAllowed, isFree && machine <= guest, JSON.stringify(ranks))
  t.alike([error?.code, list?.approvals.length], isAllowed ? [undefined, 1] : ['POLICY_DENIED', 0])
  return isAllowed
}

/** Asks the strong node for the work of its agent. */
function callStrong({ world }: WeakMachine, node: FakeNode, justification?: string): Promise<void> {
  const call = { agent: 'text@owner', capability: 'text.do', input: { n: 1 } }
  node
    .api()
    .call('message.call', justification === undefined ? call : { ...call, justification })
    .catch(() => {})
  return world.settle()
}

test('under each policy a weaker machine of the owner decides exactly the work of guests that it may do itself, of guests that are not stronger', async (t) => {
  const table: Record<string, string> = {}
  for (const [name, policy] of Object.entries(POLICIES)) {
    const decided: string[] = []
    for (const machine of [1, 2, 3] as const)
      for (const guest of [1, 2, 3] as const)
        if (await isDecided(t, { policy, machine, guest })) decided.push(`L${machine} for L${guest}`)
    table[name] = decided.join(', ')
  }
  const byL1 = 'L1 for L1, L1 for L2, L1 for L3'
  t.alike(table, {
    'asks guests': byL1,
    'asks everybody': '',
    'denies own machines': '',
    'allows own machines': `${byL1}, L2 for L2, L2 for L3, L3 for L3`,
    'allows own machines of L3': `${byL1}, L3 for L3`
  })
})

test('a weaker machine of the owner decides for guests alone, at nodes that it calls its own as well', async (t) => {
  const policy = 'rules:\n  - { from: { node: third }, decision: ask }\n' + GUESTS + '\n'
  const scene = await weakMachine(t, { policy, machine: 1, guest: 1 })
  const { world, agent, strong, weak, guest } = scene
  const third = await world.member('third')
  await world.link(third, strong, weak)
  await regard(world, strong, third, 'mine')
  await world.settle()
  await callStrong(scene, third)
  await callStrong(scene, guest)
  const [own, ofGuest] = (await waitingOf(strong)).map(({ id }) => id)
  t.ok(own !== undefined && ofGuest !== undefined)
  const error = await failsWith(t, 'POLICY_DENIED', () => weak.api().call('approvals.allow', { id: own ?? '' }))
  t.ok(error.message.includes('is decided on owner'), error.message)
  t.is(strong.audit.of('refusal').filter(({ by }) => by === weak.id).length, 0)
  await regard(world, weak, strong, 'guest')
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => weak.api().call('approvals.allow', { id: ofGuest ?? '' }))
  await regard(world, weak, strong, 'mine')
  await weak.api().call('approvals.allow', { id: ofGuest ?? '' })
  await world.settle()
  t.is(agent.tasks.length, 1)
  const [line] = strong.audit.of('approval')
  t.alike([line?.code, line?.by], ['ALLOWED', weak.id])
  t.ok(line?.reason?.includes(`allowed by operator of weak (${shortId(weak.id)})`), line?.reason)
})

test('bytes that are no call, and ids that are no whole id, decide nothing', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, agent } = scene
  const id = await asked(scene)
  const bodies: unknown[] = [
    new Uint8Array(),
    new Uint8Array([0xff, 0xfe, 0]),
    utf8('['.repeat(4000)),
    utf8(JSON.stringify({ do: 'allow', id, by: OPERATOR, pad: 'x'.repeat(5000) })),
    null,
    [],
    { do: 'allow', id },
    { do: 'allow', by: OPERATOR },
    { do: 'remember', id, by: OPERATOR },
    { do: 'allow', id: id.toUpperCase(), by: OPERATOR },
    { do: 'allow', id: [id], by: OPERATOR },
    { do: 'allow', id: '', by: OPERATOR },
    { do: 'allow', id, by: { ...OPERATOR, name: '' } },
    { do: 'allow', id, by: null }
  ]
  for (const body of bodies) t.ok((await forged(desktop, peer.id, body)).error !== undefined, JSON.stringify(body))
  for (const part of [id.slice(0, -1), `${id}0`, 'app_none'])
    t.is(
      (await forged(desktop, peer.id, { do: 'allow', id: part, by: OPERATOR })).error?.code,
      'APPROVAL_NOT_FOUND',
      part
    )
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(peer)).length], [0, 1])
  t.alike(peer.audit.of('strike'), [])
  t.is(peer.audit.of('approval').length, 0)
})

test('an approval is decided once, and not after its end', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, agent } = scene
  const id = await asked(scene)
  const both = await Promise.allSettled([
    desktop.api().call('approvals.allow', { id }),
    desktop.api().call('approvals.deny', { id }),
    peer.api().call('approvals.deny', { id })
  ])
  await world.settle()
  t.is(both.filter(({ status }) => status === 'fulfilled').length, 1)
  t.is(peer.audit.of('approval').length, 1)
  const runs = agent.tasks.length
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => desktop.api().call('approvals.allow', { id }))
  const late = await asked(scene)
  await world.pass(301_000, 1000)
  const error = await failsWith(t, 'APPROVAL_TIMEOUT', () => desktop.api().call('approvals.allow', { id: late }))
  t.ok(error.message.includes('nothing was done'))
  t.is((await forged(desktop, peer.id, { do: 'allow', id: late, by: OPERATOR })).error?.code, 'APPROVAL_TIMEOUT')
  t.is(agent.tasks.length, runs)
})

test('--remember does not travel: the rule is written on the machine of the approval alone', async (t) => {
  const scene = await machines(t)
  const id = await asked(scene)
  const call = () => scene.desktop.api().call('approvals.allow', { id, remember: true })
  const error = await failsWith(t, 'USAGE', call)
  t.alike(error.next, [`a2a-node approvals allow ${id} --remember   # on peer`])
  t.is((await waitingOf(scene.peer)).length, 1)
})

test('a machine of an older build, a silent one and one that is offline are named, and delay no other', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, asker } = scene
  await regard(world, desktop, asker, 'mine')
  const id = await asked(scene)
  const list = async () => {
    const pending = desktop.api().call('approvals.list', { machines: true })
    await world.pass(MACHINE_ANSWER_MS, 500)
    const { machines: others = [] } = await pending
    t.alike(
      others.find(({ node }) => node.id === peer.id)?.approvals.map((one) => one.id),
      [id]
    )
    return others.find(({ node }) => node.id === asker.id)?.error
  }
  const fault = utf8(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32601, message: 'nothing here' } }))
  for (const bytes of [fault, new Uint8Array(), utf8('{"answer":{}}')]) {
    answers(asker, () => Promise.resolve(bytes))
    t.is((await list())?.code, 'CAPABILITY_NOT_FOUND')
  }
  t.alike(desktop.audit.of('strike'), [])
  answers(asker, () => new Promise(() => {}))
  t.is((await list())?.code, 'TIMEOUT')
  world.net.disconnect(desktop.id, asker.id)
  world.net.disconnect(peer.id, asker.id)
  await world.settle()
  t.is((await list())?.code, 'PEER_OFFLINE')
  const missing = await failsWith(t, 'APPROVAL_NOT_FOUND', () =>
    desktop.api().call('approvals.deny', { id: 'app_none' })
  )
  t.ok(missing.message.includes('asker is offline'), missing.message)
})

test('a node that serves no calls counts as an older build', async (t) => {
  const { desktop, peer } = await machines(t)
  Object.assign(desktop.core.memberCalls, {
    open: () => {
      throw new NodeError('CAPABILITY_NOT_FOUND', 'that node takes no A2A calls')
    }
  })
  const { machines: [one] = [] } = await desktop.api().call('approvals.list', { machines: true })
  t.alike([one?.node.id, one?.error?.code], [peer.id, 'CAPABILITY_NOT_FOUND'])
  t.ok(one?.error?.message.includes('older build'))
})

test('hostile answers are bounded and made safe to show, and an id at two machines decides nothing', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, asker, agent } = scene
  await regard(world, desktop, asker, 'mine')
  const id = await asked(scene)
  const [real] = await waitingOf(peer)
  const row = { ...real, from: 'a\u001b[31mb\u202e', rule: 'x'.repeat(4000), toNode: { id: peer.id, name: 'peer' } }
  const answer = (value: unknown) => answers(asker, () => Promise.resolve(utf8(JSON.stringify({ answer: value }))))
  answer({ approvals: [row], more: 0 })
  const { machines: others = [] } = await desktop.api().call('approvals.list', { machines: true })
  const [hostile] = others.find(({ node }) => node.id === asker.id)?.approvals ?? []
  t.alike([hostile?.from, hostile?.rule.length, hostile?.toNode.id], ['a[31mb', 256, asker.id])
  for (const value of [
    { approvals: Array.from({ length: 65 }, () => row), more: 0 },
    { approvals: [{ ...row, id: 'app_$(x)' }], more: 0 },
    { approvals: [{ ...row, askedAt: 'x' }], more: 0 },
    { approvals: [row], more: -1 }
  ]) {
    answer(value)
    const now = (await desktop.api().call('approvals.list', { machines: true })).machines
    t.is(now?.find(({ node }) => node.id === asker.id)?.error?.code, 'CAPABILITY_NOT_FOUND')
  }
  answer({ id })
  const error = await failsWith(t, 'AMBIGUOUS_NAME', () => desktop.api().call('approvals.allow', { id }))
  const { candidates } = error.data as { candidates: string[] }
  t.alike([...candidates].sort(), [`${id} on asker`, `${id} on peer`])
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(peer)).length], [0, 1])
})

test('a machine whose tier was lowered, or that was revoked, decides nothing any more', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, agent } = scene
  const second = await world.member('second')
  await world.link(second, peer)
  await world.link(second, desktop)
  await regard(world, second, peer, 'mine')
  await regard(world, peer, second, 'mine')
  const id = await asked(scene)
  t.is((await second.api().call('approvals.show', { id })).id, id, 'as long as it may')
  await desktop.api().call('peers.tier', { peer: second.id, tier: 2 })
  await world.settle()
  t.is((await forged(second, peer.id, { do: 'allow', id, by: OPERATOR })).error?.code, 'POLICY_DENIED')
  await failsWith(t, 'POLICY_DENIED', () => second.api().call('approvals.allow', { id }))
  await desktop.api().call('peers.tier', { peer: second.id, tier: 1 })
  await desktop.api().call('peers.revoke', { peer: second.id, reason: 'lost' })
  await world.settle()
  const answer = await forged(second, peer.id, { do: 'allow', id, by: OPERATOR }).catch(() => ({
    error: { code: 'cut' }
  }))
  t.ok(answer.error !== undefined)
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(peer)).length], [0, 1])
})
