import test, { type Assert } from 'brittle'
import type { GatewayEvent } from '../../../src/domain/gateway/task.js'
import { TaskService, MAX_PAGE_BYTES } from '../../../src/node/gateway/task-service.js'
import { RETENTION_MS } from '../../../src/node/gateway/task-index.js'
import type { GatewayPaging } from '../../../src/ports/gateway.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { MortalLedger } from '../../support/durable-scene.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { ALICE, gatewayOf, taskOf } from '../../support/gateway.js'
import { request, says } from '../../support/gateway.js'

const BOB: Principal = { ...ALICE, name: 'token bob', id: 'tok_b' }

async function scene(t: Assert, agents: readonly FakeAgent[] = []) {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const owner = await world.owner({ agents: [slow, ...agents] })
  return { world, owner, gateway: await gatewayOf(t, owner), slow }
}

/** What a follower is told, gathered while the test goes on. */
function followed(
  gateway: TaskService,
  id: string,
  after = 0
): { readonly events: GatewayEvent[]; readonly end: Promise<void> } {
  const events: GatewayEvent[] = []
  const read = async (): Promise<void> => {
    for await (const event of gateway.follow(ALICE, id, { after })) events.push(event)
  }
  return { events, end: read() }
}

const kinds = (events: readonly GatewayEvent[]): string[] =>
  events.map((event) =>
    event.type === 'status'
      ? event.state
      : event.type === 'artifact'
        ? `artifact ${event.artifact.artifactId}`
        : 'message'
  )

test('a task is begun, worked at and completed; a waiter is notified when it is', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const waiting = gateway.send(ALICE, request(says('hello'), { wait: true }))
  await world.settle()
  t.alike(slow.tasks[0]?.input, { text: 'hello' })
  const [id] = (await gateway.list(ALICE, {}, { after: null, limit: 5, isWhole: false })).tasks.map(
    ({ task }) => task.id
  )
  const told = followed(gateway, id ?? '')
  slow.finish({ text: 'done' })
  await world.settle()
  const { task, history, artifacts } = taskOf(await waiting)
  t.alike([task.id, task.state, history.length], [id, 'completed', 1])
  t.alike(artifacts, [{ artifactId: 'result', name: 'result', parts: [{ text: 'done' }] }])
  await told.end
  t.alike(kinds(told.events), ['message', 'working', 'artifact result', 'completed'])
  t.alike(
    told.events.map(({ generation }) => generation),
    [1, 2, 3, 4]
  )
  const ahead = await gateway.send(ALICE, request(says('more')))
  const aheadOf = followed(gateway, taskOf(ahead).task.id, 999)
  await world.settle()
  slow.finish(null)
  await world.settle()
  await aheadOf.end
  t.is(kinds(aheadOf.events).at(-1), 'completed', 'a client that names a future event waits for no later one')
  const again = followed(gateway, id ?? '', 2)
  await again.end
  t.alike(
    kinds(again.events),
    ['artifact result', 'completed'],
    'a returning client gets the missed events, and nothing twice'
  )
})

test('an agent asks back: the task waits, takes one message, goes on and ends', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const begun = gateway.send(ALICE, request(says('book'), { wait: true }))
  await world.settle()
  slow.finish({ a2a: { state: 'input-required', message: 'Where to?' } })
  await world.settle()
  const { task } = taskOf(await begun)
  t.alike([task.state, task.message?.parts], ['input-required', [{ text: 'Where to?' }]])
  const more = [says('Paris', { taskId: task.id }), says('Rome', { taskId: task.id })]
  const answers = more.map((message) =>
    gateway.send(ALICE, request(message)).then(taskOf, (error: { code: string }) => error.code)
  )
  await world.settle()
  const [first, second] = await Promise.all(answers)
  t.is(typeof first === 'string' ? first : first?.task.state, 'working')
  t.is(second, 'CONFLICT', 'of two answers the first counts')
  t.alike(slow.tasks[1]?.input, { text: 'Paris' })
  slow.finish('booked')
  await world.settle()
  const { history, artifacts, task: done } = await gateway.get(ALICE, task.id)
  t.is(done.state, 'completed')
  t.alike(
    history.map(({ role, parts }) => `${role}: ${parts[0]?.text}`),
    ['user: book', 'agent: Where to?', 'user: Paris']
  )
  t.is(artifacts.length, 1)
  await failsWith(t, 'CONFLICT', () => gateway.send(ALICE, request(says('more', { taskId: task.id }))))
})

test('an answer that does not fit the schema of a question leaves the task waiting', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const begun = gateway.send(ALICE, request(says('book'), { wait: true }))
  await world.settle()
  slow.finish({ a2a: { state: 'input-required', message: 'How many?', schema: { type: 'integer' } } })
  await world.settle()
  const { id } = taskOf(await begun).task
  const message = says('three', { taskId: id })
  await failsWith(t, 'INVALID_INPUT', () => gateway.send(ALICE, request(message)))
  t.is((await gateway.get(ALICE, id)).task.state, 'input-required')
  const fits = gateway.send(ALICE, request({ ...message, parts: [{ text: '3' }] }))
  await world.settle()
  t.is(taskOf(await fits).task.state, 'working', 'the id of a refused message is free')
})

test('the same message twice is one task; another one with its id is refused', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const message = says('once')
  const [one, two] = await Promise.all([gateway.send(ALICE, request(message)), gateway.send(ALICE, request(message))])
  await world.settle()
  t.is(taskOf(one).task.id, taskOf(two).task.id)
  t.is(taskOf(await gateway.send(ALICE, request(message))).task.id, taskOf(one).task.id)
  t.is(slow.tasks.length, 1)
  await failsWith(t, 'INVALID_INPUT', () => gateway.send(ALICE, request({ ...message, parts: [{ text: 'other' }] })))
  t.not(
    taskOf(await gateway.send(BOB, request(message))).task.id,
    taskOf(one).task.id,
    'of another caller it is another one'
  )
})

test('a task of another caller does not exist for a caller', async (t: Assert) => {
  const { world, gateway } = await scene(t)
  const { task } = taskOf(await gateway.send(ALICE, request(says('mine'))))
  await world.settle()
  for (const call of [
    () => gateway.get(BOB, task.id),
    () => gateway.cancel(BOB, task.id),
    () => gateway.get(BOB, 'task_none'),
    () => gateway.send(BOB, request(says('more', { taskId: task.id }))),
    () => gateway.follow(BOB, task.id, { after: 0 })[Symbol.asyncIterator]().next()
  ]) {
    const { message } = await failsWith(t, 'TASK_NOT_FOUND', call)
    t.is(message, 'there is no such task')
  }
  t.is((await gateway.list(BOB, {}, { after: null, limit: 5, isWhole: true })).total, 0)
  await failsWith(t, 'FORBIDDEN', () => gateway.send({ ...ALICE, scopes: ['read'] }, request(says('no'))))
  await failsWith(t, 'FORBIDDEN', () => gateway.get({ ...ALICE, scopes: ['send'] }, task.id))
})

test('a task is canceled while it runs and while it waits for its client, and not when it has ended', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const [running] = [taskOf(await gateway.send(ALICE, request(says('a'))))]
  await world.settle()
  const canceling = gateway.cancel(ALICE, running.task.id)
  await world.settle()
  t.is((await canceling).task.state, 'canceled')
  t.is(slow.open.length, 0, 'and its work has ended')
  const asking = gateway.send(ALICE, request(says('b'), { wait: true }))
  await world.settle()
  slow.finish({ a2a: { state: 'auth-required' } })
  await world.settle()
  const { task } = taskOf(await asking)
  t.is((await gateway.cancel(ALICE, task.id)).task.state, 'canceled')
  await failsWith(t, 'CONFLICT', () => gateway.cancel(ALICE, task.id))
})

test('an answer whose task is canceled in the same moment leaves nothing at work, whichever is first', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  for (let turns = 0; turns < 24; turns++) {
    const begun = gateway.send(ALICE, request(says('book'), { wait: true }))
    await world.settle()
    slow.finish({ a2a: { state: 'input-required' } })
    await world.settle()
    const { task } = taskOf(await begun)
    const answering = gateway.send(ALICE, request(says('Paris', { taskId: task.id }))).catch(() => null)
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    const canceling = gateway.cancel(ALICE, task.id)
    await world.settle()
    await answering
    t.is((await canceling).task.state, 'canceled')
    await world.settle()
    t.is(slow.open.length, 0, `canceled after ${turns} turns`)
  }
})

test('reports of an agent become events: words as its status, artifacts in chunks', async (t: Assert) => {
  const { world, gateway, slow } = await scene(t)
  const { task } = taskOf(await gateway.send(ALICE, request(says('a'))))
  await world.settle()
  const told = followed(gateway, task.id)
  const artifact = { artifactId: 'out', parts: [{ text: 'one ' }] }
  const run = slow.open[0]?.run
  run?.progress({ message: 'half way' })
  await world.settle()
  run?.progress({ a2a: { artifact } })
  await world.settle()
  run?.progress({ a2a: { artifact: { ...artifact, parts: [{ text: 'two' }] }, append: true, lastChunk: true } })
  await world.settle()
  run?.progress({ a2a: { artifact: { artifactId: '', parts: [] } } })
  await world.settle()
  slow.finish(null)
  await world.settle()
  await told.end
  t.alike(kinds(told.events), ['message', 'working', 'working', 'artifact out', 'artifact out', 'completed'])
  const { artifacts, history } = await gateway.get(ALICE, task.id)
  t.alike(artifacts, [{ artifactId: 'out', parts: [{ text: 'one ' }, { text: 'two' }] }])
  t.alike(
    history.map(({ parts }) => parts[0]?.text),
    ['a', 'half way']
  )
})

test('a page of large tasks ends when it has enough, and the pages together have every task once', async (t: Assert) => {
  const { world, gateway } = await scene(t)
  const metadata = { large: 'x'.repeat(MAX_PAGE_BYTES / 4) }
  const sent = new Set<string>()
  for (let at = 0; at < 7; at++) sent.add(taskOf(await gateway.send(ALICE, request(says('a', { metadata })))).task.id)
  await world.settle()
  const sizes: number[] = []
  const listed: string[] = []
  for (let after: GatewayPaging['after'] | undefined = null; after !== undefined; ) {
    const { tasks, next, total } = await gateway.list(ALICE, {}, { after, limit: 100, isWhole: true })
    t.is(total, 7)
    sizes.push(tasks.length)
    listed.push(...tasks.map(({ task }) => task.id))
    after = next ?? undefined
  }
  t.alike(sizes, [4, 3])
  t.alike(new Set(listed), sent)
  t.is(
    (await gateway.list(ALICE, {}, { after: null, limit: 100, isWhole: false })).tasks.length,
    7,
    'without contents they are small'
  )
})

test('a read-only request is answered without a task, when its client waits', async (t: Assert) => {
  const reads = capability('look.up', { sideEffect: 'read' })
  const { world, gateway } = await scene(t, [echo('look', { capabilities: [reads] })])
  const answering = gateway.send(ALICE, request(says('hi'), { agent: 'look', mayAnswer: true, wait: true }))
  await world.settle()
  const answer = await answering
  t.is(answer.kind === 'message' ? answer.message.parts[0]?.text : null, 'hi')
  t.is((await gateway.list(ALICE, {}, { after: null, limit: 5, isWhole: true })).total, 0)
  const { task } = taskOf(await gateway.send(ALICE, request(says('hi'), { agent: 'look', mayAnswer: true })))
  await world.settle()
  t.is((await gateway.get(ALICE, task.id)).task.state, 'completed')
})

test('a skill goes to the least busy agent that has it; without one the error says so', async (t: Assert) => {
  const both = { capabilities: [capability('shared.do')] }
  const agents = [new FakeAgent(agentDefinition('one', both)), new FakeAgent(agentDefinition('two', both))]
  const { world, gateway } = await scene(t, agents)
  for (const text of ['a', 'b']) {
    await gateway.send(ALICE, request(says(text), { agent: null, skill: 'shared.do' }))
    await world.settle()
  }
  t.alike(
    agents.map(({ tasks }) => tasks.length),
    [1, 1]
  )
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    gateway.send(ALICE, request(says('c'), { agent: null, skill: 'no.such' }))
  )
  await failsWith(t, 'INVALID_INPUT', () => gateway.send(ALICE, request(says('d'), { agent: null })))
  await failsWith(t, 'AGENT_NOT_FOUND', () => gateway.send(ALICE, request(says('e'), { agent: 'operator' })))
})

test('an agent of another node does the task, and one that is away is waited for', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const far = new FakeAgent(agentDefinition('far'))
  const peer = await world.member('peer', { agents: [far] })
  await world.link(owner, peer)
  const gateway = await gatewayOf(t, owner)
  const { task } = taskOf(await gateway.send(ALICE, request(says('over there'), { agent: 'far@peer' })))
  await world.pass(2000)
  t.is((await gateway.get(ALICE, task.id)).task.state, 'working')
  far.finish('from afar')
  await world.settle()
  const { task: done, artifacts } = await gateway.get(ALICE, task.id)
  t.alike([done.state, artifacts[0]?.parts], ['completed', [{ text: 'from afar' }]])
  t.is((await gateway.list(ALICE, { agentName: 'far@peer' }, { after: null, limit: 5, isWhole: false })).total, 1)
})

test('killed at any commit, a task that its client knows is there and comes to its end', async (t: Assert) => {
  for (let commits = 0; commits < 8; commits++) {
    for (const isWritten of [true, false]) {
      const world = new World(t)
      const ledger = new MortalLedger()
      const owner = await world.owner({ agents: [echo('slow')], ledger })
      const gateway = await gatewayOf(t, owner)
      const dying = new Promise<void>((resolve) => ledger.killIn(commits, isWritten, resolve))
      const sending = gateway.send(ALICE, request(says('again'))).then(
        (reply) => taskOf(reply).task.id,
        () => null
      )
      await world.settle()
      const id = await Promise.race([sending, dying.then(() => sending)])
      gateway.stop()
      await owner.core.close()
      const next = await world.start(owner.actor, { agents: [echo('slow')], ledger: ledger.kill() })
      const after = await gatewayOf(t, next)
      await world.pass(2000)
      if (id === null) continue
      const { task, artifacts } = await after.get(ALICE, id)
      t.alike([task.state, artifacts.length], ['completed', 1], `${commits} ${isWritten}`)
      const events = followed(after, id)
      await events.end
      t.alike(
        events.events.map(({ generation }) => generation),
        events.events.map((_, at) => at + 1)
      )
    }
  }
})

test('a node that dies in work that may not be repeated fails its task: nothing is done twice, and nobody waits for ever', async (t: Assert) => {
  const world = new World(t)
  const ledger = new MortalLedger()
  const once = agentDefinition('slow', { capabilities: [capability('slow.do', { idempotent: false })] })
  const slow = new FakeAgent(once)
  const owner = await world.owner({ agents: [slow], ledger })
  const gateway = await gatewayOf(t, owner)
  const message = says('once')
  const { task } = taskOf(await gateway.send(ALICE, request(message)))
  await world.settle()
  t.is(slow.open.length, 1)
  const left = ledger.kill()
  gateway.stop()
  await owner.core.close()
  const again = new FakeAgent(once)
  const after = await gatewayOf(t, await world.start(owner.actor, { agents: [again], ledger: left }))
  await world.pass(2000)
  const failed = (await after.get(ALICE, task.id)).task
  t.is(failed.state, 'failed')
  t.ok(failed.message?.parts[0]?.text?.includes('it is unknown whether it was done'))
  t.is(
    taskOf(await after.send(ALICE, request(message, { wait: true }))).task.id,
    task.id,
    'the same message is the same task'
  )
  t.is(again.tasks.length, 0)
})

test('a task that ends on a full disk is not completed before that is durable, and its end is not lost', async (t: Assert) => {
  const world = new World(t)
  const ledger = new MortalLedger()
  const slow = new FakeAgent(agentDefinition('slow'))
  const owner = await world.owner({ agents: [slow], ledger })
  const gateway = await gatewayOf(t, owner)
  const { task } = taskOf(await gateway.send(ALICE, request(says('a'))))
  await world.settle()
  ledger.refuse(true)
  slow.finish('done')
  await world.pass(3000)
  t.not((await gateway.get(ALICE, task.id)).task.state, 'completed', 'nothing is reported that is not durable')
  ledger.refuse(false)
  await world.pass(10_000)
  t.is((await gateway.get(ALICE, task.id)).task.state, 'completed')
})

test('a task that rests is let go of when its time is over, with its messages', async (t: Assert) => {
  const { world, gateway, slow, owner } = await scene(t)
  const message = says('old')
  const { task } = taskOf(await gateway.send(ALICE, request(message)))
  await world.settle()
  slow.finish('done')
  await world.settle()
  world.clock.advance(RETENTION_MS + 60_000)
  await world.pass(120_000, 60_000)
  await failsWith(t, 'TASK_NOT_FOUND', () => gateway.get(ALICE, task.id))
  t.alike(await owner.ledger.list({ from: 'a2a-', to: 'a2a.', limit: 10 }), [])
  t.not(taskOf(await gateway.send(ALICE, request(message))).task.id, task.id, 'and its message begins anew')
})
