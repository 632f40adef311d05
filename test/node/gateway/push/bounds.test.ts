import test, { type Assert } from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MAX_PUSH_CONFIGS } from '../../../../src/domain/gateway/push.js'
import { DEAD_RANGE } from '../../../../src/domain/gateway/push-records.js'
import { PUSH_BOUNDS } from '../../../../src/domain/gateway/push-shares.js'
import {
  DeadLetters,
  MAX_DEAD_LETTERS,
  MAX_DEAD_LETTERS_OF_ONE
} from '../../../../src/node/gateway/push/dead-letters.js'
import type { Ledger } from '../../../../src/ports/ledger.js'
import { failsWith } from '../../../support/fails.js'
import { ALICE, BOB, HOOK_URL as URL, pushGateway, pushScene, sends } from '../../../support/push-scene.js'

const NOTICES = { from: 'a2a-push/', to: 'a2a-push0', limit: 10_000 }

test('notifications that wait for a hook that is down are bounded, also over a restart; once it is back it gets all of them', async (t: Assert) => {
  const { world, owner, gateway, slow, webhooks, begin } = await pushScene(t)
  webhooks.answers.set(URL, () => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs: 3_600_000 }))
  const id = await begin(gateway, sends({ url: URL }))
  const agent = slow.open[0]?.run
  for (let at = 1; at <= 700; at++) agent?.progress(`one ${at}`)
  await world.settle()
  gateway.stop()
  const next = await pushGateway(t, owner, webhooks)
  for (let at = 1; at <= 700; at++) agent?.progress(`two ${at}`)
  slow.finish('done')
  await world.settle()
  t.is((await owner.ledger.list(NOTICES)).length, PUSH_BOUNDS.waitingOfHook)
  const { waiting } = await next.push.admin.list()
  const { generation } = (await next.gateway.get(ALICE, id)).task
  const last = waiting.at(-1)
  t.ok(generation > 1400)
  t.alike(
    [last?.event, last?.id.split('.')[1], last?.folded],
    ['task.completed', String(generation), generation - PUSH_BOUNDS.waitingOfHook]
  )
  t.is(waiting.filter(({ folded }) => folded > 0).length, 1)
  const before = webhooks.tries.length
  webhooks.answers.delete(URL)
  await next.push.admin.retry(waiting[0]?.id ?? '')
  while ((await owner.ledger.list(NOTICES)).length > 0) await world.settle()
  const told = webhooks.tries.slice(before).map((one) => Number(one.id.split('.')[1]))
  t.alike(told, [...Array.from({ length: PUSH_BOUNDS.waitingOfHook - 1 }, (_, at) => at + 1), generation], 'in order')
  const { snapshot } = JSON.parse(webhooks.tries.at(-1)?.body ?? '') as {
    snapshot: { task: { state: string }; artifacts: unknown[] }
  }
  t.alike([snapshot.task.state, snapshot.artifacts.length], ['completed', 1], 'the last one has the task as it is')
})

test('a caller with the maximum of configs gets no further one, and takes none from others', async (t: Assert) => {
  const { world, gateway, push, slow, webhooks, begin } = await pushScene(t)
  webhooks.answers.set(URL, () => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs: null }))
  const first = await begin(gateway, sends({ url: URL }))
  slow.finish('done')
  await world.settle()
  for (let left = PUSH_BOUNDS.hooksOfOne - 1; left > 0; left -= MAX_PUSH_CONFIGS) {
    const id = await begin(gateway, sends(null))
    for (let at = 0; at < Math.min(left, MAX_PUSH_CONFIGS); at++)
      await push.set(ALICE, id, { target: { id: `c${at}`, url: URL, events: ['task.failed'] }, version: '1.0' })
  }
  const { code, message } = await failsWith(t, 'OVERLOADED', () => gateway.send(ALICE, sends({ url: URL })))
  t.ok(/you have 2000 push configs .* delete some/.test(message), `${code}: ${message}`)
  const bare = await begin(gateway, sends(null))
  await failsWith(t, 'OVERLOADED', () => push.set(ALICE, bare, { target: { url: URL }, version: '1.0' }))
  await begin(gateway, sends({ url: URL }), BOB)
  // What an ended task has waiting counts until it is told, or deleted.
  const [one] = await push.list(ALICE, first)
  await push.remove(ALICE, first, one?.id ?? '')
  t.ok(await push.set(ALICE, bare, { target: { id: 'mine', url: URL }, version: '1.0' }))
  await failsWith(t, 'OVERLOADED', () => push.set(ALICE, bare, { target: { url: URL }, version: '1.0' }))
  t.ok(await push.set(ALICE, bare, { target: { id: 'mine', url: `${URL}/2` }, version: '1.0' }), 'one may be changed')
})

async function give(
  dead: DeadLetters,
  ledger: Ledger,
  of: { readonly owner: string; readonly from: number; readonly count: number }
): Promise<void> {
  for (let generation = of.from; generation < of.from + of.count; generation++) {
    const letter = { task: of.owner, event: 'task.working', at: 0, tries: 5, reason: 'HTTP 503', deadAt: generation }
    await ledger.commit(dead.add({ hook: `hook_${of.owner}`, generation, owner: of.owner }, letter))
  }
}

test('undelivered notifications of one caller push out none of others; its own oldest is dropped, and counted', async (t: Assert) => {
  const ledger = createMemoryLedger()
  const dead = new DeadLetters(ledger)
  await give(dead, ledger, { owner: 'bob', from: 1, count: 3 })
  await give(dead, ledger, { owner: 'alice', from: 1, count: MAX_DEAD_LETTERS_OF_ONE + 5 })
  t.alike([dead.of('hook_bob').length, dead.of('hook_alice').length, dead.pushedOut], [3, MAX_DEAD_LETTERS_OF_ONE, 5])
  t.absent(dead.has('hook_alice.5'))
  const again = new DeadLetters(ledger)
  await again.start((task) => task)
  for (let at = 0; at < 5; at++)
    await give(again, ledger, { owner: `more ${at}`.replace(' ', ''), from: 1, count: MAX_DEAD_LETTERS_OF_ONE })
  t.is(again.size, MAX_DEAD_LETTERS)
  t.is(again.of('hook_bob').length, 3, 'a caller with few loses none, also when all together have too many')
  t.is((await ledger.list({ ...DEAD_RANGE, limit: 10_000 })).length, MAX_DEAD_LETTERS)
})
