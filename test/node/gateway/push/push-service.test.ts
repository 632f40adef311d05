import test, { type Assert } from 'brittle'
import { MAX_PUSH_CONFIGS } from '../../../../src/domain/gateway/push.js'
import { RETENTION_MS } from '../../../../src/node/gateway/task-index.js'
import { MortalLedger } from '../../../support/durable-scene.js'
import { echo } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'
import { FakeWebhooks } from '../../../support/fake-webhooks.js'
import { failsWith } from '../../../support/fails.js'
import { ALICE, BOB, HOOK_URL as URL, pushGateway, pushScene, sends } from '../../../support/push-scene.js'

const LIFE = ['task.submitted', 'task.working', 'task.artifact', 'task.completed']
const LEDGER = { from: 'a2a-', to: 'a2a.', limit: 100 }

test('each event of a task goes to its hook in order, in the form of its version', async (t: Assert) => {
  const { world, gateway, slow, webhooks, begin } = await pushScene(t)
  const id = await begin(gateway, sends({ url: URL }))
  const old = 'https://old.example.com/'
  await gateway.push?.set(ALICE, id, { target: { url: old }, version: '0.3' })
  slow.finish({ text: 'done' })
  await world.settle()
  t.alike(webhooks.told(URL), LIFE)
  t.alike(webhooks.told(old), LIFE.slice(2), 'from when it was registered on')
  const [first, second] = webhooks.tries
    .filter(({ url }) => url === URL)
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  t.alike(
    [Object.keys(first ?? {}), Object.keys(second ?? {})],
    [
      ['version', 'snapshot'],
      ['version', 'task', 'event']
    ]
  )
  const told = webhooks.tries
    .filter(({ url }) => url === old)
    .map(
      ({ body }) => JSON.parse(body) as { version: string; snapshot: { task: { state: string }; artifacts: unknown[] } }
    )
  t.alike(
    told.map(({ version, snapshot }) => [version, snapshot.task.state, snapshot.artifacts.length]),
    [
      ['0.3', 'working', 1],
      ['0.3', 'completed', 1]
    ]
  )
})

test('killed at any commit, a hook gets every event at least once, in order, each under one id', async (t: Assert) => {
  for (let commits = 0; commits < 16; commits++) {
    for (const isWritten of [true, false]) {
      const world = new World(t)
      const ledger = new MortalLedger()
      const owner = await world.owner({ agents: [echo('slow')], ledger })
      const webhooks = new FakeWebhooks()
      const { gateway } = await pushGateway(t, owner, webhooks)
      const dying = new Promise<void>((resolve) => ledger.killIn(commits, isWritten, resolve))
      const sending = gateway.send(ALICE, sends({ url: URL })).then(
        (reply) => (reply.kind === 'task' ? reply.snapshot.task.id : null),
        () => null
      )
      await world.settle()
      const id = await Promise.race([sending, dying.then(() => sending)])
      gateway.stop()
      await owner.core.close()
      const left = ledger.kill()
      const next = await pushGateway(
        t,
        await world.start(owner.actor, { agents: [echo('slow')], ledger: left }),
        webhooks
      )
      await world.pass(2000)
      if (id === null) continue
      const ids = [...new Set(webhooks.tries.map((one) => one.id))]
      const events = ids.map((one) => webhooks.tries.find((made) => made.id === one)?.event)
      t.alike(
        events.filter((event, at) => event !== 'task.working' || events[at - 1] !== event),
        LIFE,
        `${commits} ${isWritten}`
      )
      const order = webhooks.tries.map((one) => Number(one.id.split('.')[1]))
      t.alike(
        order,
        order.toSorted((a, b) => a - b)
      )
      t.alike(await left.list({ ...LEDGER, from: 'a2a-push/', to: 'a2a-push0' }), [])
      next.gateway.stop()
    }
  }
})

test('one hook that hangs delays no other; a failed notification is tried again, and given up after the last try', async (t: Assert) => {
  const { world, gateway, push, slow, webhooks, begin } = await pushScene(t)
  const down = 'https://down.example.com/'
  webhooks.answers.set('https://hangs.example.com/', () => null)
  webhooks.answers.set(down, () => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs: null }))
  const id = await begin(gateway, sends({ url: URL }))
  await push.set(ALICE, id, { target: { id: 'hangs', url: 'https://hangs.example.com/' }, version: '1.0' })
  await push.set(ALICE, id, { target: { id: 'down', url: down, events: ['task.completed'] }, version: '1.0' })
  slow.finish('done')
  await world.settle()
  t.alike(webhooks.told(URL), LIFE)
  t.alike(webhooks.told('https://hangs.example.com/'), ['task.artifact'])
  t.alike(webhooks.told(down), ['task.completed'])
  const { waiting } = await push.admin.list()
  const [first] = waiting.filter(({ reason }) => reason === 'HTTP 503')
  t.alike([first?.event, first?.tries], ['task.completed', 1])
  await world.pass(700_000, 5000)
  t.is(webhooks.told(down).length, 5)
  const { dead } = await push.admin.list()
  t.alike(
    dead.map(({ event, tries, reason }) => [event, tries, reason]),
    [['task.completed', 5, 'HTTP 503']]
  )
  webhooks.answers.delete(down)
  t.alike(await push.admin.retry(dead[0]?.id ?? ''), [dead[0]?.id])
  await world.settle()
  t.is(webhooks.told(down).length, 6)
  t.is(webhooks.tries.at(-1)?.id, dead[0]?.id)
  t.alike((await push.admin.list()).dead, [])
})

test('a final refusal is given up at once, and the next event is tried; a waiting one can be hurried', async (t: Assert) => {
  const { world, gateway, push, slow, webhooks, begin } = await pushScene(t)
  webhooks.answers.set(URL, ({ event }) =>
    event === 'task.submitted'
      ? { type: 'refused', reason: 'HTTP 400' }
      : { type: 'failed', reason: 'HTTP 500', retryAfterMs: 3_000_000 }
  )
  await begin(gateway, sends({ url: URL }))
  slow.finish('done')
  await world.settle()
  t.alike(webhooks.told(URL), ['task.submitted', 'task.working'])
  const { dead, waiting } = await push.admin.list()
  t.alike([dead.map(({ event }) => event), waiting.map(({ event }) => event)], [['task.submitted'], LIFE.slice(1)])
  await world.pass(60_000, 5000)
  t.is(webhooks.told(URL).length, 2, 'Retry-After is obeyed')
  webhooks.answers.delete(URL)
  await push.admin.retry(waiting.at(-1)?.id ?? '')
  await world.settle()
  t.alike(webhooks.told(URL), ['task.submitted', ...LIFE.slice(1, 2), ...LIFE.slice(1)], 'the oldest first')
  t.alike(await push.admin.retry(null), [dead[0]?.id])
  await world.settle()
  t.is(webhooks.told(URL).at(-1), 'task.submitted')
  await failsWith(t, 'NOTIFICATION_NOT_FOUND', () => push.admin.retry('hook_none'))
  await failsWith(t, 'NOTIFICATION_NOT_FOUND', () => push.admin.retry('../x'))
})

test('a hook that says it is gone is deleted with all that waits and was given up, and is never tried again', async (t: Assert) => {
  const { world, gateway, push, slow, webhooks, begin, owner } = await pushScene(t)
  let said = 0
  webhooks.answers.set(URL, () =>
    said++ === 0 ? { type: 'refused', reason: 'HTTP 400' } : { type: 'gone', reason: 'HTTP 410' }
  )
  const id = await begin(gateway, sends({ id: 'mine', url: URL }))
  slow.finish('done')
  await world.settle()
  await world.pass(60_000, 5000)
  t.alike(webhooks.told(URL), LIFE.slice(0, 2), 'the second answer was its last')
  t.alike(await push.list(ALICE, id), [])
  const { configs, waiting, dead } = await push.admin.list()
  t.alike([configs, waiting, dead], [[], [], []])
  for (const from of ['a2a-hook/', 'a2a-push/', 'a2a-dead/'])
    t.alike(await owner.ledger.list({ from, to: `${from.slice(0, -1)}0`, limit: 5 }), [], from)
})

test('a deleted config gets nothing any more, its active delivery is ended, and none of its state is left', async (t: Assert) => {
  const { world, gateway, push, slow, webhooks, begin, owner } = await pushScene(t)
  webhooks.answers.set(URL, () => null)
  const id = await begin(gateway, sends({ id: 'mine', url: URL }))
  t.alike(webhooks.told(URL), ['task.submitted'])
  await push.remove(ALICE, id, 'mine')
  t.ok(webhooks.tries[0]?.isAborted)
  await push.remove(ALICE, id, 'mine')
  slow.finish('done')
  await world.pass(10_000)
  t.alike(webhooks.told(URL), ['task.submitted'])
  t.alike(await push.list(ALICE, id), [])
  for (const from of ['a2a-hook/', 'a2a-push/', 'a2a-dead/'])
    t.alike(await owner.ledger.list({ from, to: `${from.slice(0, -1)}0`, limit: 5 }), [])
})

test('configs belong to a task and its caller; the task of another one is as good as absent', async (t: Assert) => {
  const { gateway, push, begin } = await pushScene(t)
  const id = await begin(gateway, sends({ id: 'mine', url: URL, token: 'x' }))
  t.alike(
    (await push.list(ALICE, id)).map((one) => [one.id, one.url, one.token]),
    [['mine', URL, 'x']]
  )
  const target = { id: 'mine', url: 'https://other.example.com/' }
  await push.set(ALICE, id, { target, version: '1.0' })
  t.is((await push.get(ALICE, id, 'mine')).url, target.url, 'the same id takes the place')
  t.is(
    (await push.set(ALICE, id, { target: { url: URL }, version: '0.3' })).id,
    id,
    'in 0.3 it is called like its task'
  )
  for (const call of [
    () => push.set(BOB, id, { target, version: '1.0' }),
    () => push.get(BOB, id, 'mine'),
    () => push.list(BOB, id),
    () => push.remove(BOB, id, 'mine'),
    () => push.get(ALICE, 'task_none', 'mine'),
    () => push.get(ALICE, id, 'none')
  ])
    await failsWith(t, 'TASK_NOT_FOUND', call)
  await failsWith(t, 'FORBIDDEN', () => push.set({ ...ALICE, scopes: ['read'] }, id, { target, version: '1.0' }))
  await failsWith(t, 'INVALID_INPUT', () =>
    push.set(ALICE, id, { target: { url: 'https://private/' }, version: '1.0' })
  )
  await failsWith(t, 'INVALID_INPUT', () => gateway.send(ALICE, sends({ url: 'https://private/' })))
  const more = Array.from({ length: MAX_PUSH_CONFIGS - 2 }, (_, at) =>
    push.set(ALICE, id, { target: { id: `c${at}`, url: URL }, version: '1.0' })
  )
  await Promise.all(more)
  await failsWith(t, 'OVERLOADED', () => push.set(ALICE, id, { target: { url: URL }, version: '1.0' }))
})

test('a question of an agent is notified, and a config that comes with the answer gets the later events', async (t: Assert) => {
  const { world, gateway, slow, webhooks, begin } = await pushScene(t)
  const id = await begin(gateway, sends({ url: URL }))
  slow.finish({ a2a: { state: 'input-required', message: 'Which?' } })
  await world.settle()
  t.is(webhooks.told(URL).at(-1), 'task.input-required')
  const late = 'https://late.example.com/'
  const answering = gateway.send(ALICE, sends({ url: late }, { taskId: id }))
  await world.settle()
  await answering
  slow.finish('done')
  await world.settle()
  t.alike(webhooks.told(late), LIFE.slice(1))
})

test('a task that is dropped takes its configs and their waiting notifications with it', async (t: Assert) => {
  const { world, gateway, slow, webhooks, begin, owner } = await pushScene(t)
  webhooks.answers.set(URL, () => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs: null }))
  await begin(gateway, sends({ url: URL }))
  slow.finish('done')
  await world.pass(100_000, 20_000)
  world.clock.advance(RETENTION_MS + 60_000)
  await world.pass(120_000, 60_000)
  t.alike(await owner.ledger.list(LEDGER), [])
})
