import test, { type Assert } from 'brittle'
import type { Message } from '../../../src/domain/gateway/message.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { GatewayReply, GatewaySend } from '../../../src/ports/gateway.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { MortalLedger } from '../../support/durable-scene.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { madeChanges } from '../../support/ledger-changes.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}
const ALL = { after: null, limit: 10, isWhole: false }

let said = 0
function request(agent: string, wait: boolean): GatewaySend {
  const message: Message = { messageId: `m${++said}`, role: 'user', parts: [{ text: 'hello' }] }
  return { message, agent, skill: null, mayAnswer: false, wait }
}

/** A gateway whose ledger counts the commits of its tasks. */
async function scene(t: Assert) {
  const world = new World(t)
  const ledger = new MortalLedger()
  const slow = new FakeAgent(agentDefinition('slow'))
  const once = echo('once', { capabilities: [capability('once.do', { idempotent: false })] })
  const owner = await world.owner({ agents: [echo('fast'), slow, once], ledger })
  const started = async (): Promise<TaskService> => {
    const gateway = new TaskService(owner.core)
    await gateway.start()
    t.teardown(() => gateway.stop())
    return gateway
  }
  const gateway = await started()
  const commits: string[][] = []
  const commit = ledger.commit.bind(ledger)
  ledger.commit = (given) =>
    commit(() => {
      const changes = madeChanges(given)
      const keys = changes.map(({ key }) => key.split('/')[0] ?? '').filter((key) => key.startsWith('a2a-'))
      if (keys.length > 0) commits.push(keys)
      return changes
    })
  return { world, ledger, slow, once, gateway, started, commits }
}

const stateOf = (reply: GatewayReply): string => (reply.kind === 'task' ? reply.snapshot.task.state : 'an answer')

test('a task that ends in the turn in which it begins is one record, with its message and all its events', async (t: Assert) => {
  const { gateway, commits, started } = await scene(t)
  const reply = await gateway.send(ALICE, request('fast', true))
  t.is(stateOf(reply), 'completed')
  t.alike(commits, [['a2a-task']])
  const id = reply.kind === 'task' ? reply.snapshot.task.id : ''
  const told = async (by: TaskService, after: number): Promise<string[]> => {
    const kinds: string[] = []
    for await (const event of by.follow(ALICE, id, { after }))
      kinds.push(event.type === 'status' ? event.state : event.type)
    return kinds
  }
  t.alike(await told(gateway, 0), ['message', 'working', 'artifact', 'completed'], 'each of them is reported')
  const next = await started()
  t.alike(
    await told(next, 0),
    ['message', 'working', 'artifact', 'completed'],
    'also by a gateway that begins anew, from the disk'
  )
  t.alike(await told(next, 2), ['artifact', 'completed'])
  t.alike(await next.get(ALICE, id), await gateway.get(ALICE, id))
})

test('unrepeatable work, and work that is not awaited, begins only when that is on record', async (t: Assert) => {
  const { world, ledger, once, gateway, commits } = await scene(t)
  const letGo = ledger.hold('now')
  const sent = gateway.send(ALICE, request('once', true))
  await world.settle()
  t.is(once.tasks.length, 0)
  letGo()
  t.is(stateOf(await sent), 'completed')
  commits.length = 0
  await gateway.send(ALICE, request('fast', false))
  await world.settle()
  t.is(commits.length > 1, true, 'its client may follow each step')
})

test('a task that cannot be recorded is none: its run is stopped, and its message begins anew', async (t: Assert) => {
  const { world, ledger, slow, gateway } = await scene(t)
  const asked = request('slow', true)
  ledger.refuse(true)
  await failsWith(t, 'DISK_FULL', () => gateway.send(ALICE, asked))
  await world.settle()
  t.is(slow.open.length, 0, 'nobody works on it')
  t.is((await gateway.list(ALICE, {}, ALL)).total, 0)
  ledger.refuse(false)
  const again = gateway.send(ALICE, asked)
  await world.settle()
  slow.finish('done')
  t.is(stateOf(await again), 'completed')
  t.is((await gateway.list(ALICE, {}, ALL)).total, 1)
})

test('a hundred copies of a message that come at once are one task, done once', async (t: Assert) => {
  const { world, slow, gateway } = await scene(t)
  const asked = request('slow', true)
  const copies = Array.from({ length: 100 }, () => gateway.send(ALICE, asked))
  await world.settle()
  t.is(slow.tasks.length, 1)
  slow.finish('done')
  const replies = await Promise.all(copies)
  t.is(new Set(replies.map((reply) => (reply.kind === 'task' ? reply.snapshot.task.id : ''))).size, 1)
  t.ok(replies.every((reply) => stateOf(reply) === 'completed'))
})

test('the same message means the task that it began, also after a start and for any agent; another one of its id is refused', async (t: Assert) => {
  const { gateway, started } = await scene(t)
  const asked = request('fast', true)
  const idOf = (reply: GatewayReply): string => (reply.kind === 'task' ? reply.snapshot.task.id : '')
  const id = idOf(await gateway.send(ALICE, asked))
  for (const by of [gateway, await started()]) {
    t.is(idOf(await by.send(ALICE, asked)), id)
    t.is(idOf(await by.send(ALICE, { ...asked, skill: 'fast.do' })), id, 'the skill that it went to')
    const others: Partial<GatewaySend>[] = [
      { message: { ...asked.message, parts: [{ text: 'something else' }] } },
      { message: { ...asked.message, metadata: { more: true } } },
      { message: { ...asked.message, contextId: 'another' } },
      { agent: 'slow' }
    ]
    for (const other of others) await failsWith(t, 'INVALID_INPUT', () => by.send(ALICE, { ...asked, ...other }))
    t.not(idOf(await by.send({ ...ALICE, id: 'tok_b' }, asked)), id, 'the messages of another client are its own')
    t.is((await by.list(ALICE, {}, ALL)).total, 1)
  }
})

test('a message with a number that is none is the same when it comes again', async (t: Assert) => {
  const { gateway, started } = await scene(t)
  const asked = request('fast', true)
  const odd = { ...asked, message: { ...asked.message, parts: [{ data: JSON.parse('{"n":1e999}') as unknown }] } }
  await gateway.send(ALICE, odd)
  for (const by of [gateway, await started()]) {
    await by.send(ALICE, odd)
    t.is((await by.list(ALICE, {}, ALL)).total, 1)
  }
})

test('a further message that comes again, also at once, is one turn of its task; another one of its id is refused', async (t: Assert) => {
  const { gateway, started } = await scene(t)
  const asks = '{"a2a":{"state":"input-required","message":"Which one?"}}'
  const first = request('fast', true)
  const begun = await gateway.send(ALICE, { ...first, message: { ...first.message, parts: [{ text: asks }] } })
  t.is(stateOf(begun), 'input-required')
  const taskId = begun.kind === 'task' ? begun.snapshot.task.id : ''
  const answer = request('fast', true)
  const further = { ...answer, message: { ...answer.message, taskId } }
  const saidTo = async (by: TaskService): Promise<readonly string[]> => {
    const { history } = await by.get(ALICE, taskId)
    return history.filter(({ role }) => role === 'user').map(({ messageId }) => messageId)
  }
  const copies = await Promise.all([1, 2, 3].map(() => gateway.send(ALICE, further)))
  t.ok(
    copies.every(
      (reply) => stateOf(reply) === 'completed' && reply.kind === 'task' && reply.snapshot.task.id === taskId
    )
  )
  for (const by of [gateway, await started()]) {
    t.is(stateOf(await by.send(ALICE, further)), 'completed', 'it is known although the task takes nothing more')
    t.alike(await saidTo(by), [first.message.messageId, answer.message.messageId])
    for (const message of [
      { ...further.message, parts: [{ text: 'something else' }] },
      { ...further.message, messageId: first.message.messageId }
    ])
      await failsWith(t, 'INVALID_INPUT', () => by.send(ALICE, { ...further, message }))
  }
})
