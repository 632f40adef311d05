import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { emptyFold, addToFold, MAX_FOLD_BYTES, foldedSnapshot } from '../../../../src/domain/gateway/task-fold.js'
import { type GatewayEvent, type GatewayTask, snapshotOf } from '../../../../src/domain/gateway/task.js'
import { TaskSnapshots, MAX_SNAPSHOTS_BYTES } from '../../../../src/node/gateway/push/delivery.js'
import { holds } from '../../../support/holds.js'
import { ALICE, HOOK_URL as URL, pushScene, sends } from '../../../support/push-scene.js'

const EVENTS = 120

test('the reads for many notifications of one task grow with its events, not with their square, also for a hook that was down', async (t: Assert) => {
  const { world, gateway, push, slow, ledger, webhooks, begin } = await pushScene(t)
  const down = 'https://down.example.com/'
  webhooks.answers.set(down, () => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs: 3_600_000 }))
  const id = await begin(gateway, sends({ url: URL }, {}, '0.3'))
  await push.set(ALICE, id, { target: { id: 'down', url: down }, version: '1.0' })
  let read = 0
  const { list } = ledger
  ledger.list = async (range) => {
    const entries = await list(range)
    read += entries.filter(({ key }) => key.startsWith('a2a-event/')).length
    return entries
  }
  const agent = slow.open[0]?.run
  // Its events are not in memory any longer once these are.
  for (let at = 0; at < 3; at++)
    await begin(gateway, sends(null, { parts: [{ data: { text: 'x'.repeat(1_000_000) } }] }))
  for (let at = 0; at < EVENTS; at++) {
    agent?.progress('x'.repeat(2000))
    await world.settle()
  }
  t.is(webhooks.told(URL).length, EVENTS + 2, 'each was reported when it happened')
  const { snapshot } = JSON.parse(webhooks.tries.filter(({ url }) => url === URL).at(-1)?.body ?? '') as {
    snapshot: { history: unknown[] }
  }
  t.is(snapshot.history.length, EVENTS, 'whole')
  t.ok(read <= 2 * EVENTS, `${read} records were read for ${EVENTS} notifications`)
  read = 0
  webhooks.answers.delete(down)
  await push.admin.retry((await push.admin.list()).waiting[0]?.id ?? '')
  while ((await push.admin.list()).waiting.length > 0) await world.settle()
  t.ok(read >= EVENTS && read <= 2 * EVENTS, `${read} records were read for ${EVENTS} notifications that had waited`)
})

const TASK: GatewayTask = {
  id: 'task_1',
  contextId: 'ctx_1',
  owner: 'token:tok_a',
  messageId: 'm1',
  agent: 'slow@node',
  capability: 'slow.do',
  by: { maxTier: 0, sandboxId: null },
  state: 'completed',
  message: null,
  since: 9,
  createdAt: 0,
  updatedAt: 9,
  generation: 99,
  run: { requestId: 'req_1', taskId: 'task_1' }
}

const saying = fc.record({
  messageId: fc.string(),
  role: fc.constant('agent' as const),
  parts: fc.constant([{ text: 'x' }])
})
const happening = fc.oneof(
  fc.record({ type: fc.constant('message' as const), message: saying }),
  fc.record({
    type: fc.constant('status' as const),
    state: fc.constantFrom('working' as const, 'input-required' as const),
    message: saying
  }),
  fc.record({
    type: fc.constant('artifact' as const),
    artifact: fc.record({ artifactId: fc.constantFrom('a', 'b'), parts: fc.constant([{ text: 'y' }]) }),
    append: fc.boolean(),
    lastChunk: fc.boolean()
  })
)

test('a snapshot that continues, is read again, or is read for an earlier event equals the log from its beginning', async (t: Assert) => {
  const property = fc.asyncProperty(
    fc.array(happening, { minLength: 1, maxLength: 30 }),
    fc.array(fc.record({ hook: fc.constantFrom('one', 'other'), at: fc.nat(30) }), { maxLength: 40 }),
    async (said, asked) => {
      const log = said.map((one, at): GatewayEvent => ({ ...one, generation: at + 1, at: at + 1 }))
      const tales = new TaskSnapshots({ events: (_, { after, to }) => Promise.resolve(log.slice(after, to)) })
      for (const { hook, at } of asked) {
        const generation = 1 + (at % log.length)
        const tale = await tales.after({ hook, task: 'task_1', generation })
        const fresh = emptyFold()
        addToFold(fresh, log.slice(0, generation))
        const [one, other] = [tale, fresh].map((each) =>
          JSON.stringify(each === null ? null : foldedSnapshot(TASK, each))
        )
        const { history, artifacts } = snapshotOf(TASK, log.slice(0, generation))
        if (one !== other || !one?.endsWith(JSON.stringify({ history, artifacts }).slice(1)))
          throw new Error(`${one} is not ${other}`)
      }
    }
  )
  await holds(t, property, 200)
})

test('snapshots take no more memory than their bound: the one used longest ago is dropped, and one that is too large has no contents', async (t: Assert) => {
  const text = 'x'.repeat(1_000_000)
  const log = Array.from({ length: 12 }, (_, at): GatewayEvent => {
    const message = { messageId: 'm', role: 'agent' as const, parts: [{ text }] }
    return { type: 'status', state: 'working', message, generation: at + 1, at }
  })
  let read = 0
  const tales = new TaskSnapshots({
    events: (_, { after, to }) => {
      read += to - after
      return Promise.resolve(log.slice(after, to))
    }
  })
  const ask = async (hook: string, generation: number): Promise<number> => {
    read = 0
    const tale = await tales.after({ hook, task: 'task_1', generation })
    t.ok((tale?.bytes ?? 0) <= MAX_FOLD_BYTES)
    return read
  }
  const large = await tales.after({ hook: 'large', task: 'task_1', generation: 9 })
  t.alike([large?.contents, large === null ? null : foldedSnapshot(TASK, large).history], [null, []])
  t.is(await ask('large', 10), 1, 'the stated state continues')
  const room = Math.floor(MAX_SNAPSHOTS_BYTES / 8_000_000)
  for (let at = 0; at < room; at++) t.is(await ask(`hook ${at}`, 8), 8)
  t.is(await ask('hook 1', 8), 0)
  t.is(await ask('one more', 8), 8)
  t.is(await ask('hook 1', 8), 0, 'it was used')
  t.is(await ask('hook 0', 8), 8, 'it had to go')
})
