import test from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MAX_PUSH_CONFIGS, type PushHook } from '../../../../src/domain/gateway/push.js'
import { PUSH_BOUNDS } from '../../../../src/domain/gateway/push-shares.js'
import type { GatewayEvent, GatewayTask } from '../../../../src/domain/gateway/task.js'
import { LiveHooks, WebhookConfigs } from '../../../../src/node/gateway/push/configs.js'
import { countingIds } from '../../../support/counting-ids.js'
import { failsWith } from '../../../support/fails.js'

const URL = 'https://client.example/hook'
const TASK = { id: 'task_a', owner: 'alice' }

function scene(): { readonly configs: WebhookConfigs; readonly live: LiveHooks } {
  const live = new LiveHooks()
  const webhooks = { refusal: (url: string) => (url.startsWith('https:') ? null : 'no https') }
  return { live, configs: new WebhookConfigs({ ledger: createMemoryLedger(), ids: countingIds(), webhooks, live }) }
}

function working(generation: number): GatewayEvent {
  return { type: 'status', state: 'working', generation, at: generation }
}

const HOOK: PushHook = { id: 'push_1', hook: 'hook_1', task: TASK.id, url: URL, version: '1.0' }

test('a config replaces the one of its id, and the node calls it the same', async (t) => {
  const { configs } = scene()
  const first = await configs.set(TASK, { target: { id: 'mine', url: URL }, version: '1.0' })
  const second = await configs.set(TASK, { target: { id: 'mine', url: `${URL}/2` }, version: '1.0' })
  t.is(second.hook, first.hook)
  t.alike(
    (await configs.list(TASK.id)).map(({ url }) => url),
    [`${URL}/2`]
  )
  t.is((await configs.find(TASK.id, first.hook))?.id, 'mine')
  t.is(await configs.find(TASK.id, 'hook_other'), null)
})

test('a config of version 0.3 without an id has that of its task', (t) => {
  const { configs } = scene()
  t.is(configs.make('task_a', { target: { url: URL }, version: '0.3' }).id, 'task_a')
  t.not(configs.make('task_a', { target: { url: URL }, version: '1.0' }).id, 'task_a')
})

test('a URL to which nothing is sent is refused, and so are more configs than one task may have', async (t) => {
  const { configs } = scene()
  await failsWith(t, 'INVALID_INPUT', () =>
    configs.set(TASK, { target: { url: 'http://client.example' }, version: '1.0' })
  )
  for (let at = 0; at < MAX_PUSH_CONFIGS; at++)
    await configs.set(TASK, { target: { id: `p${at}`, url: URL }, version: '1.0' })
  await failsWith(t, 'OVERLOADED', () => configs.set(TASK, { target: { url: URL }, version: '1.0' }))
  t.is((await configs.all(100)).length, MAX_PUSH_CONFIGS)
})

test('a hook gets the events that its config asks for, while its task continues', (t) => {
  const { live } = scene()
  const task = { id: TASK.id } as GatewayTask
  live.add({ ...HOOK, events: ['task.completed'] }, TASK.owner)
  t.alike(live.noticesOf(task, [working(2)]), [])
  live.add({ ...HOOK, hook: 'hook_2' }, TASK.owner)
  t.alike(
    live.noticesOf(task, [working(2)]).map(({ key }) => key.split('/')[1]),
    ['hook_2']
  )
  live.placed(TASK.id)
  t.alike([live.waiting('hook_1'), live.waiting('hook_2')], [0, 1])
  live.end(TASK.id)
  t.alike([live.has(TASK.id), live.noticesOf(task, [working(3)])], [false, []])
  t.is(live.waiting('hook_2'), 1, 'the pending notification stays')
  live.settled('hook_2')
  t.is(live.waiting('hook_2'), 0)
})

test('a commit that failed leaves no notification counted', (t) => {
  const { live } = scene()
  live.add(HOOK, TASK.owner)
  const task = { id: TASK.id } as GatewayTask
  live.noticesOf(task, [working(2), working(3)])
  live.noticesOf(task, [working(2)])
  live.placed(TASK.id)
  t.is(live.waiting(HOOK.hook), 1)
})

test('a caller with as many live hooks as one may have gets no further one', async (t) => {
  const { live } = scene()
  for (let at = 0; at < PUSH_BOUNDS.hooksOfOne; at++)
    live.add({ ...HOOK, hook: `hook_${at}`, task: `task_${at}` }, 'alice')
  await failsWith(t, 'OVERLOADED', () => live.refuseMore('alice'))
  live.refuseMore('bob')
  live.drop('task_0', 'hook_0')
  live.refuseMore('alice')
  t.absent(live.has('task_0'))
})
