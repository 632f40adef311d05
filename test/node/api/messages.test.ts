import test, { type Assert } from 'brittle'
import type { Reply } from '../../../src/ports/node-api.js'
import type { MessageEvent } from '../../../src/ports/policy-api.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

/** An owner's node and a member's with an agent. */
async function scene(
  t: Assert,
  agent: FakeAgent
): Promise<{ readonly world: World; readonly owner: FakeNode; readonly peer: FakeNode }> {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [agent] })
  await world.link(owner, peer)
  return { world, owner, peer }
}

test('a call to any agent with a capability is queued too when all of them are away, and goes to the first that is there', async (t) => {
  const { world, owner, peer } = await scene(t, echo('text'))
  const near = await world.member('near', { agents: [echo('text')] })
  await world.link(owner, near)
  const call = async (): Promise<string> => {
    const asked = owner.api().call('message.call', { agent: null, capability: 'text.do', input: 1, wait: false })
    await world.settle()
    const reply = await asked
    t.is(reply.outcome, 'QUEUED')
    return reply.agent
  }
  world.net.disconnect(owner.id, peer.id)
  t.is(await call(), 'text@near')
  world.net.disconnect(owner.id, near.id)
  await call()
  t.is((await owner.api().call('node.status', {})).outbox.pending, 1)
  const waiting = { agent: null, capability: 'text.do', input: 1 }
  await failsWith(t, 'PEER_OFFLINE', () => owner.api().call('message.call', waiting))
})

test('a caller that hangs up while it waits for an answer cancels the work', async (t) => {
  const agent = new FakeAgent(agentDefinition('slow'))
  const { world, owner } = await scene(t, agent)
  const gone = new AbortController()
  const asking = owner
    .api()
    .call('message.call', { agent: 'slow@peer', capability: 'slow.do', input: 1 }, { signal: gone.signal })
  await world.settle()
  t.is(agent.open.length, 1)
  gone.abort()
  await world.settle()
  t.alike([(await asking).outcome, (await asking).error?.code, agent.open.length], ['FAILED', 'CANCELED', 0])
})

test('a caller that stops watching a call while it waits cancels the work too', async (t) => {
  const agent = new FakeAgent(agentDefinition('slow'))
  const { world, owner } = await scene(t, agent)
  const gone = new AbortController()
  const params = { agent: 'slow@peer', capability: 'slow.do', input: 1 }
  const reading = (async () => {
    for await (const event of owner.api().watch('message.call', params, { signal: gone.signal }))
      t.absent(event.type === 'reply')
  })()
  await world.settle()
  t.is(agent.open.length, 1)
  gone.abort()
  await reading
  await world.settle()
  t.is(agent.open.length, 0)
})

test('an agent that breaks its own schema is to be mended by its file here, and looked at from afar', async (t) => {
  const bad = (): FakeAgent => {
    const capabilities = [capability('bad.do', { outputSchema: { type: 'object' } })]
    return new FakeAgent(agentDefinition('bad', { capabilities, source: '/agents/bad.md' }), () => ({
      ok: true,
      result: 'text'
    }))
  }
  const world = new World(t)
  const owner = await world.owner({ agents: [bad()] })
  const peer = await world.member('peer', { agents: [bad()] })
  await world.link(owner, peer)
  const nextOf = async (agent: string): Promise<readonly string[] | undefined> => {
    const asking = owner.api().call('message.call', { agent, capability: 'bad.do', input: {} })
    await world.settle()
    const { error } = await asking
    t.is(error?.code, 'INVALID_OUTPUT')
    return error?.next
  }
  t.alike(await nextOf('bad@owner'), ['a2a-node agents check /agents/bad.md'])
  t.alike(await nextOf('bad@peer'), ['a2a-node agents show bad@peer'])
})

test('the next step for an invalid input names the agent, in the reply, the task and the results of a swarm', async (t) => {
  const strict = capability('text.do', { inputSchema: { type: 'object', required: ['text'] } })
  const { world, owner } = await scene(t, echo('text', { capabilities: [strict] }))
  const steps = ['a2a-node agents show text@peer']
  const asking = owner.api().call('message.call', { agent: 'text', capability: 'text.do', input: {} })
  await world.settle()
  const { error, taskId } = await asking
  t.is(error?.code, 'INVALID_INPUT')
  t.alike(error?.next, steps)
  t.is((error?.data as { expected?: string } | undefined)?.expected, '{"text": anything}', 'and its look-alike')
  t.alike((await owner.api().call('tasks.show', { id: taskId ?? '' })).error?.next, steps)
  const { id } = await owner
    .api()
    .call('swarm.start', { goal: 'g', capability: 'text.do', strategy: 'each', input: {} })
  await world.pass(2000)
  const { results } = await owner.api().call('swarm.results', { id })
  t.alike(results[0]?.error?.next, steps)
  const tooLarge = {
    agent: 'text',
    capability: 'text.do',
    input: { text: 'x', more: Array.from({ length: 80 }, () => 'y'.repeat(16_000)) }
  }
  const thrown = await failsWith(t, 'PAYLOAD_TOO_LARGE', () => owner.api().call('message.call', tooLarge))
  t.alike(
    [thrown.next, thrown.message.includes('bytes of JSON')],
    [['a2a-node config show'], true],
    'its agent has nothing to do with it'
  )
})

test('a broadcast counts whom it asked, names who was left out by which rule, and brings the answers', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const bad = new FakeAgent(agentDefinition('bad'), () => ({ ok: false, code: 'TASK_FAILED', message: 'no' }))
  const peer = await world.member('peer', {
    agents: [echo('text'), bad, echo('shut')],
    policy: 'rules:\n  - { to: { agent: shut }, decision: deny }\n'
  })
  await world.link(owner, peer)
  const asking = owner.api().call('message.send', { agent: '*', text: 'x', all: true })
  await world.settle()
  const { outcome, error, targets = [] } = await asking
  const rows = Object.fromEntries(targets.map((one) => [one.agent, [one.outcome, one.rule]]))
  t.alike(rows, {
    'text@peer': ['COMPLETED', null],
    'bad@peer': ['TASK_FAILED', null],
    'shut@peer': ['POLICY_DENIED', 'policy.yaml:2: deny'],
    'operator@peer': ['SKIPPED', 'it has no capability']
  })
  const why = Object.fromEntries(targets.map((one) => [one.agent, one.reason]))
  t.alike([why['bad@peer'], why['text@peer']], ['no', undefined])
  t.alike([outcome, error?.code], ['FAILED', 'TASK_FAILED'])
  t.is(error?.message, 'partly done: it failed at 1 of 2 agents; left out: 1 by rules, 1 without a capability')
  const answer = targets.find((one) => one.agent === 'text@peer')
  t.ok(answer?.taskId !== null && answer?.taskId !== undefined)
  t.ok(JSON.stringify(answer?.payload).includes('x'), 'the answer is in its row')
  const large = owner.api().call('message.send', { agent: '*', text: 'y'.repeat(40_000), all: true })
  await world.settle()
  const cut = (await large).targets?.find((one) => one.agent === 'text@peer')?.payload
  t.ok(typeof cut === 'string' && cut.length < 17_000 && cut.endsWith('…'), 'and bounded')

  const queueing = owner.api().call('message.send', { agent: '*', text: 'x', wait: false, all: true })
  await world.settle()
  const queued = await queueing
  t.is(queued.outcome, 'QUEUED')
  t.ok(queued.targets?.every((one) => one.outcome !== 'QUEUED' || typeof one.taskId === 'string'))
})

test('a broadcast of a notification was taken by agents here and sent to those of other nodes', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('near')] })
  const peer = await world.member('peer', { agents: [echo('far')] })
  await world.link(owner, peer)
  const sending = owner.api().call('message.send', { agent: '*', text: 'hi', type: 'notification', all: true })
  await world.settle()
  const { targets = [], outcome } = await sending
  t.is(outcome, 'COMPLETED')
  const by = Object.fromEntries(targets.map((one) => [one.agent, one.outcome]))
  t.alike([by['near@owner'], by['far@peer']], ['DELIVERED', 'SENT'])
})

/** Follows a call of `slow.do` of `slow@peer`, or of an agent of this node: what is told, so far. */
function followed(node: FakeNode, agent: string): MessageEvent<Reply>[] {
  const told: MessageEvent<Reply>[] = []
  const read = async (): Promise<void> => {
    const params = { agent, capability: `${agent.split('@')[0]}.do`, input: 1 }
    for await (const event of node.api().watch('message.call', params)) told.push(event)
  }
  void read()
  return told
}

test('reports of an agent go to the follower of the call: a few at once, then the newest, 20 times a second at most, and the last one before the end', async (t) => {
  for (const [name, at] of [
    ['slow@peer', 'there'],
    ['near@owner', 'here']
  ] as const) {
    const world = new World(t)
    const [near, slow] = [new FakeAgent(agentDefinition('near')), new FakeAgent(agentDefinition('slow'))]
    const owner = await world.owner({ agents: [near] })
    const peer = await world.member('peer', { agents: [slow] })
    await world.link(owner, peer)
    const told = followed(owner, name)
    await world.settle()
    const [run] = at === 'here' ? near.open : slow.open
    if (run === undefined) throw new Error('it does not run')
    run.run.progress({ progress: 1, total: 10, message: 'first' })
    await world.settle()
    for (let n = 2; n < 9; n++) {
      run.run.progress({ progress: n, total: 10 })
      await world.settle()
    }
    await world.pass(1000)
    for (const data of [{ step: 'ninth\n' }, 'b', 'c', 'd']) {
      run.run.progress(data)
      await world.settle()
    }
    run.run.progress('the last')
    run.end({ ok: true, result: 'done' })
    await world.settle()
    await world.pass(1000)
    const [reports, end] = [told.filter((one) => one.type === 'progress'), told.at(-1)]
    t.alike(
      reports.map(({ progress, total, message }) => [progress, total, message]),
      [
        [1, 10, 'first'],
        [2, 10, null],
        [3, 10, null],
        [4, 10, null],
        [8, 10, null],
        [null, null, '{"step":"ninth\\n"}'],
        [null, null, 'b'],
        [null, null, 'c'],
        [null, null, 'd'],
        [null, null, 'the last']
      ],
      at
    )
    t.ok(reports.every((one) => one.agent === name && one.taskId.length > 0 && one.text === undefined))
    t.is(end?.type === 'reply' ? end.reply.payload : null, 'done')
  }
})

test('a followed call reports the whole text of a language model in order, also of pieces that came at once', async (t: Assert) => {
  for (const [name, at] of [
    ['near@owner', 'here'],
    ['slow@peer', 'on another node']
  ] as const) {
    const world = new World(t)
    const [near, slow] = [new FakeAgent(agentDefinition('near')), new FakeAgent(agentDefinition('slow'))]
    const owner = await world.owner({ agents: [near] })
    const peer = await world.member('peer', { agents: [slow] })
    await world.link(owner, peer)
    const told = followed(owner, name)
    await world.settle()
    const [run] = at === 'here' ? near.open : slow.open
    if (run === undefined) throw new Error('it does not run')
    for (let n = 1; n <= 40; n++) run.run.progress({ token: `w${n} `, turn: 1 })
    await world.settle()
    await world.pass(1000)
    run.run.progress({ token: 'again', turn: 2 })
    run.run.progress({ token: ' and more', turn: 2 })
    await world.settle()
    await world.pass(1000)
    run.end({ ok: true, result: 'done' })
    await world.settle()
    const reports = told.filter((one) => one.type === 'progress')
    const words = Array.from({ length: 40 }, (_, i) => `w${i + 1} `).join('')
    t.is(reports.map(({ text = '' }) => text).join(''), `${words}\nagain and more`, at)
    t.ok(reports.length < 10, 'the reports stay few')
  }
})

test('the text of one report keeps its newest 64 Ki characters', async (t: Assert) => {
  const world = new World(t)
  const near = new FakeAgent(agentDefinition('near'))
  const owner = await world.owner({ agents: [near] })
  const told = followed(owner, 'near@owner')
  await world.settle()
  const run = near.open[0]?.run
  run?.progress({ token: 'first', turn: 1 })
  for (let n = 0; n < 10; n++) run?.progress({ token: String(n).repeat(10_000), turn: 1 })
  await world.settle()
  await world.pass(1000)
  const texts = told.flatMap((one) => (one.type === 'progress' && one.text !== undefined ? [one.text] : []))
  t.ok(texts.every((text) => text.length <= 64 * 1024))
  t.ok(texts.at(-1)?.endsWith('9'.repeat(10_000)))
})
