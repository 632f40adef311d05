import test, { type Assert } from 'brittle'
import type { AgentOutcome } from '../../../src/ports/agent-runtime.js'
import type { SwarmRequest } from '../../../src/ports/swarm-api.js'
import { mapOf, SwarmScene } from '../../support/swarm-scene.js'
import { actor } from '../../support/membership.js'
import { VotersScene } from '../../support/voters-scene.js'

const ONCE = { capability: 'work.once' } as const
const AGAIN = { capability: 'work.again' } as const
const BROKE = { ok: false, code: 'TASK_FAILED', message: 'the command ended with exit code 1' } as const
const KILLED = { ok: false, code: 'TIMEOUT', message: 'no result within 5 s' } as const
const LATER = { ...BROKE, data: { retryAfter: 7 } } as const

/** A swarm of one item, with two workers that could do it. */
async function launched(
  t: Assert,
  request: Partial<SwarmRequest>
): Promise<{ readonly scene: SwarmScene; readonly id: string }> {
  const scene = await SwarmScene.start(t)
  return { scene, id: await scene.launch(1, request) }
}

/** Ends every run so, until none is left; how the item ended, and in how many runs. */
async function failedBy(
  t: Assert,
  request: Partial<SwarmRequest>,
  outcome: AgentOutcome
): Promise<[status: string | undefined, runs: number]> {
  const { scene, id } = await launched(t, request)
  for (let rounds = 0; rounds < 10 && scene.open().length > 0; rounds++) {
    for (const run of scene.open()) run.end(outcome)
    await scene.world.pass(10_000)
  }
  const [row] = await scene.rows(id)
  return [row?.status, scene.begun.length]
}

test('an item that may not be repeated runs once when its command fails or is killed at its timeout, and ends failed, as a call of it does', async (t) => {
  for (const outcome of [BROKE, KILLED]) t.alike(await failedBy(t, ONCE, outcome), ['failed', 1], outcome.code)
  const scene = await SwarmScene.start(t)
  const call = scene.launcher.api().call('message.call', { agent: 'w@b', capability: 'work.once', input: 1 })
  await scene.world.settle()
  for (const run of scene.open()) run.end(KILLED)
  const answered = await call
  t.alike(
    [answered.outcome, answered.error?.retryable, scene.begun.length],
    ['FAILED', false, 1],
    'nor is its caller advised to try again'
  )
})

test('an item that may be repeated is tried as often as --retries allows, also after a timeout', async (t) => {
  for (const outcome of [BROKE, KILLED]) t.alike(await failedBy(t, AGAIN, outcome), ['failed', 3], outcome.code)
  t.alike(await failedBy(t, { ...AGAIN, retries: 0 }, BROKE), ['failed', 1])
  t.alike(await failedBy(t, { ...AGAIN, retries: 4 }, BROKE), ['failed', 5])
})

test('with --allow-repeat an item of a capability that may not be repeated is tried again', async (t) => {
  t.alike(await failedBy(t, { ...ONCE, allowRepeat: true }, BROKE), ['failed', 3])
})

test('unrepeatable work with an unknown outcome ends unknown and runs once, as a call of it does; else it is tried again', async (t) => {
  const lost = { ...BROKE, isUnknown: true }
  t.alike(await failedBy(t, ONCE, lost), ['unknown', 1])
  t.alike(await failedBy(t, AGAIN, lost), ['failed', 3])
  t.alike(await failedBy(t, { ...ONCE, allowRepeat: true }, lost), ['failed', 3])
  const scene = await SwarmScene.start(t)
  const call = scene.launcher.api().call('message.call', { agent: 'w@b', capability: 'work.once', input: 1 })
  await scene.world.settle()
  for (const run of scene.open()) run.end(lost)
  const { outcome, error } = await call
  t.alike([outcome, error?.code, error?.message, error?.retryable], ['UNKNOWN', lost.code, lost.message, false])
  await scene.world.pass(60_000)
  t.is(scene.begun.length, 1, 'nor is it asked again later')
})

test('a failure with retryable: false is not tried again, for any capability and launcher', async (t) => {
  for (const request of [AGAIN, ONCE, { ...ONCE, allowRepeat: true }])
    t.alike(await failedBy(t, request, { ...BROKE, retryable: false }), ['failed', 1])
})

test('a failure with retryable: true says that nothing was done, so that any item is tried again', async (t) => {
  t.alike(await failedBy(t, ONCE, { ...BROKE, retryable: true }), ['failed', 3])
})

test('retryAfter is waited for, though another worker is free', async (t) => {
  const { scene, id } = await launched(t, AGAIN)
  for (const run of scene.open()) run.end(LATER)
  await scene.world.pass(6900, 100)
  t.is(scene.begun.length, 1)
  await scene.world.pass(1200, 100)
  t.is(scene.begun.length, 2)
  await scene.finish(id)
  t.is((await scene.info(id)).status, 'completed')
})

test('a launcher that is killed or stopped while an item rests waits on after its restart, and counts what failed', async (t) => {
  for (const end of ['crash', 'restart'] as const) {
    const { scene, id } = await launched(t, { ...AGAIN, retries: 1 })
    for (const run of scene.open()) run.end(LATER)
    await scene.world.pass(2000, 100)
    await scene[end]()
    await scene.link()
    await scene.world.pass(4800, 100)
    t.is(scene.begun.length, 1, end)
    await scene.world.pass(2000, 100)
    t.is(scene.begun.length, 2, end)
    for (const run of scene.open()) run.end(BROKE)
    await scene.world.pass(1000, 100)
    const [row] = await scene.rows(id)
    t.alike([row?.status, row?.attempt, scene.begun.length], ['failed', 2, 2], 'the retry was the last one')
  }
})

test('an item that rests waits no longer because the clock of its launcher was put back before a restart', async (t) => {
  const { scene, id } = await launched(t, AGAIN)
  for (const run of scene.open()) run.end(LATER)
  await scene.world.pass(2000, 100)
  scene.world.clock.setNow(scene.world.clock.now() - 3_600_000)
  await scene.restart()
  await scene.link()
  await scene.world.pass(8000, 100)
  t.is(scene.begun.length, 2)
  await scene.finish(id)
  t.is((await scene.info(id)).status, 'completed')
})

test('a worker that dies at an item that may not be repeated: its outcome is unknown, and nobody else is asked', async (t) => {
  const { scene, id } = await launched(t, ONCE)
  const worker = scene.workers.find(({ agent }) => agent.open.length > 0)
  if (worker === undefined) throw new Error('nothing runs')
  await scene.crashWorker(worker)
  await scene.link()
  await scene.world.pass(60_000, 1000)
  const [row] = await scene.rows(id)
  t.alike([row?.status, row?.error?.retryable, scene.begun.length], ['unknown', false, 1])
})

test('under several participants a failed item that may not be repeated runs once, and all have its outcome', async (t) => {
  const scene = await VotersScene.start(t)
  const id = await scene.at(0).node.core.swarms.launch(mapOf(1, ONCE))
  await scene.world.pass(3000)
  endRuns(scene, BROKE)
  await scene.world.pass(10_000)
  const { results } = await scene.same(id)
  t.alike([results[0]?.status, scene.begun.length], ['failed', 1])
})

test('an unrepeatable item that rests is not leased by a new coordinator: that node cannot know its later agents', async (t) => {
  const scene = await VotersScene.start(t)
  const id = await scene.at(0).node.core.swarms.launch(mapOf(1, ONCE))
  await scene.world.pass(3000)
  endRuns(scene, { ...BROKE, retryable: true, data: { retryAfter: 60 } })
  await scene.world.pass(1000)
  const [next] = scene.rest(id)
  await scene.kill(scene.at(0))
  await scene.world.pass(30_000, 500)
  const rows = await scene.rows(next, id)
  t.alike([rows[0]?.status, scene.begun.length], ['unknown', 1])
})

function endRuns({ members }: VotersScene, outcome: AgentOutcome): void {
  for (const { agent } of members) for (const run of [...agent.open]) run.end(outcome)
}

test('an item that may not be repeated is not given to another node when the one that runs it is put out of the mesh: it ends unknown', async (t) => {
  const { scene, id } = await launched(t, ONCE)
  const worker = scene.workers.find(({ agent }) => agent.open.length > 0)
  t.is(scene.begun.length, 1)
  if (worker === undefined) return
  scene.world.log.model.revoke(actor('owner'), worker.node.actor)
  scene.world.log.changed()
  await scene.world.pass(30_000, 1000)
  t.alike([(await scene.rows(id))[0]?.status, scene.begun.length], ['unknown', 1])
})
