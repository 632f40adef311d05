import test from 'brittle'
import { restoredValue } from '../../../src/domain/reliable/restored.js'
import { MortalLedger } from '../../support/durable-scene.js'
import { failsWith } from '../../support/fails.js'
import { mapOf, SwarmScene } from '../../support/swarm-scene.js'

const ONCE = { capability: 'work.once' } as const

test('a swarm continues after its launcher was killed: finished items stay, running ones are not begun again, the rest is done', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(10)
  const [first, second] = scene.open()
  if (first === undefined || second === undefined) throw new Error('nothing runs')
  scene.end(first)
  await scene.world.settle()
  const running = scene.open().map(({ task }) => `${task.requestId}#${task.attempt}`)
  await scene.crash()
  t.is((await scene.info(id)).status, 'running')
  t.is((await scene.info(id)).counts.completed, 1)
  await scene.link()
  await scene.world.pass(2000)
  t.alike(
    scene
      .open()
      .map(({ task }) => `${task.requestId}#${task.attempt}`)
      .sort(),
    running.sort(),
    'the same runs go on'
  )
  await scene.finish(id)
  const { status, counts } = await scene.info(id)
  t.is(status, 'completed')
  t.alike(counts, { total: 10, completed: 10, failed: 0 })
  t.is(scene.begun.length, 10, 'each once')
  t.is((await scene.launcher.api().call('tasks.list', {})).tasks[0]?.state, 'completed')
})

test('a run that ended while its launcher was away brings its result after the restart', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(2, ONCE)
  for (const worker of scene.workers) await scene.unlink(worker)
  for (const run of scene.open()) scene.end(run)
  await scene.crash()
  await scene.link()
  await scene.world.pass(2000)
  t.alike([(await scene.info(id)).status, scene.begun.length], ['completed', 2])
})

test('a stop is no end: the swarm goes on when the node starts again', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(6)
  await scene.restart()
  await scene.finish(id)
  t.is((await scene.info(id)).status, 'completed')
  t.is((await scene.rows(id)).length, 6)
})

test('time goes on while the launcher is away: a swarm past its deadline ends when it is back', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(3, { deadlineMs: 60_000 })
  const launcher = scene.launcher.core
  await launcher.close()
  await scene.world.pass(61_000, 1000)
  await scene.restart()
  await scene.world.pass(1000)
  t.is((await scene.info(id)).status, 'failed')
  t.ok((await scene.rows(id)).every(({ error }) => error?.code === 'TIMEOUT'))
})

test('an ended swarm is shown after a restart: ls, show, results, watch, its task; it is removed a day later', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(3)
  await scene.finish(id)
  const before = await scene.info(id)
  const rows = await scene.rows(id)
  const tasks = await scene.launcher.api().call('tasks.list', {})
  await scene.crash()
  const api = scene.launcher.api()
  t.alike(await api.call('swarm.show', { id: id.slice(0, -3) }), before)
  t.alike((await api.call('swarm.list', {})).swarms, [before])
  t.alike((await api.call('swarm.results', { id })).results, rows)
  const types: string[] = []
  for await (const event of api.watch('swarm.watch', { id })) types.push(event.type)
  t.alike(types, ['swarm', 'item', 'item', 'item', 'done'])
  const task = await api.call('tasks.show', { id: tasks.tasks[0]?.id ?? '' })
  t.alike([task.kind, task.state, task.result], ['swarm', 'completed', { status: 'completed', counts: before.counts }])
  await failsWith(t, 'SWARM_NOT_FOUND', () => api.call('swarm.show', { id: 'swarm_other' }))
  await scene.world.pass(87_200_000, 600_000)
  await failsWith(t, 'SWARM_NOT_FOUND', () => api.call('swarm.show', { id }))
  const left = await scene.launcher.ledger.list({ from: 'swarm', to: 'swarm~', limit: 100 })
  t.alike(left, [])
})

test('a canceled swarm stays canceled after a restart, and workers that missed it get the order to stop', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(4)
  for (const worker of scene.workers) await scene.unlink(worker)
  await scene.launcher.core.swarms.cancel(id)
  await scene.crash()
  t.is((await scene.info(id)).status, 'canceled')
  t.is(scene.open().length, 4)
  await scene.link()
  await scene.world.pass(2000)
  t.is(scene.open().length, 0)
})

test('an idempotency key names one swarm, also for two launches at once, after a restart, and when it has ended', async (t) => {
  const scene = await SwarmScene.start(t)
  const request = mapOf(3, { idempotencyKey: 'nightly' })
  const { swarms } = scene.launcher.core
  const [one, two] = await Promise.all([swarms.launch(request), swarms.launch(request)])
  t.is(one, two)
  await scene.crash()
  t.is(await scene.launcher.core.swarms.launch(request), one)
  const other = await failsWith(t, 'CONFLICT', () =>
    scene.launcher.core.swarms.launch(mapOf(4, { idempotencyKey: 'nightly' }))
  )
  t.ok(other.message.includes(one))
  t.ok(other.message.includes('give another key'))
  t.alike(other.next, [`a2a-node swarm show ${one}`, "--idempotency-key '<another key>'"])
  await scene.finish(one)
  t.is(await scene.launcher.core.swarms.launch(request), one, 'the finished one')
  t.not(await scene.launcher.core.swarms.launch(mapOf(3, { idempotencyKey: 'weekly' })), one)
  t.is((await scene.launcher.api().call('swarm.list', {})).swarms.length, 2)
})

test('a launch that is cut off at any commit left either nothing or the whole swarm; its key finds it', async (t) => {
  for (const isWritten of [false, true]) {
    const scene = await SwarmScene.start(t)
    const request = mapOf(3, { idempotencyKey: 'k' })
    scene.killIn(0, isWritten)
    await failsWith(t, 'INTERNAL', () => scene.launcher.core.swarms.launch(request))
    await scene.revive()
    await scene.link()
    const { swarms } = await scene.launcher.api().call('swarm.list', {})
    t.is(swarms.length, isWritten ? 1 : 0)
    const id = await scene.launcher.core.swarms.launch(request)
    if (isWritten) t.is(id, swarms[0]?.id)
    await scene.finish(id)
    t.is(scene.begun.length, 3)
  }
})

test('unrepeatable work is leased to no other when its worker is killed: it ends as unknown with the reason', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(6, ONCE)
  const [worker] = scene.workers
  if (worker === undefined) throw new Error('no worker')
  const lost = new Set(worker.agent.open.map(({ task }) => task.requestId))
  t.is(lost.size, 2)
  await scene.crashWorker(worker)
  await scene.finish(id)
  const rows = await scene.rows(id)
  const unknown = rows.filter(({ status }) => status === 'unknown')
  t.is(unknown.length, 2)
  for (const { error } of unknown) {
    t.ok(error?.message.includes('allows repeats'), error?.message)
    t.absent(error?.retryable)
  }
  const { status, counts } = await scene.info(id)
  t.alike([status, counts], ['partial', { total: 6, completed: 4, failed: 2, unknown: 2 }])
  t.ok([...lost].every((name) => scene.begun.filter((run) => run.startsWith(`${name}#`)).length === 1))
})

test('a launcher and its worker are killed: unrepeatable work ends as unknown, repeatable work is done again', async (t) => {
  for (const [name, status, begun] of [
    ['work.once', 'unknown', 2],
    ['work.again', 'completed', 4]
  ] as const) {
    const scene = await SwarmScene.start(t, ['b'])
    const id = await scene.launch(2, { capability: name })
    await scene.crash()
    for (const worker of scene.workers) await scene.crashWorker(worker)
    await scene.link()
    await scene.world.pass(2000)
    if (name === 'work.once') t.is((await scene.rows(id)).length, 2, 'its node says so at once')
    await scene.finish(id)
    t.alike(
      (await scene.rows(id)).map((row) => row.status),
      [status, status]
    )
    t.is(scene.begun.length, begun)
    if (name === 'work.once') t.ok((await scene.rows(id))[0]?.error?.message.includes('ended while it worked'))
  }
})

test('a worker that lost its disk as well does not begin again what may not be repeated', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(4, ONCE)
  await scene.world.pass(1000)
  await scene.crash()
  for (const worker of scene.workers) await scene.crashWorker(worker, new MortalLedger())
  await scene.finish(id)
  t.alike(
    (await scene.rows(id)).map(({ status }) => status),
    ['unknown', 'unknown', 'unknown', 'unknown']
  )
  t.is(scene.begun.length, 4)
})

test('a launcher whose questions are refused after a restart gives what may not be repeated to nobody else', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(4, ONCE)
  const [worker] = scene.workers
  await scene.crash()
  worker?.node.policy.write('rules:\n  - { to: { agent: w }, decision: deny }\n')
  await scene.finish(id)
  t.alike((await scene.rows(id)).map(({ status }) => status).sort(), ['completed', 'completed', 'unknown', 'unknown'])
  t.is(scene.begun.length, 4)
})

test('unrepeatable work is done to its end though its launcher is away for long, and its result counts', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(2, ONCE)
  const away = scene.launcher.core
  await away.close()
  await scene.world.pass(20_000)
  t.is(scene.open().length, 2, 'nobody stops it')
  for (const run of scene.open()) scene.end(run)
  await scene.crash()
  await scene.finish(id)
  t.alike([(await scene.info(id)).status, scene.begun.length], ['completed', 2])
})

test('unrepeatable work is not taken from an agent that is slow', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(6, { ...ONCE, deadlineMs: 100_000 })
  const [slow, quick] = scene.workers
  if (slow === undefined || quick === undefined) throw new Error('no workers')
  const held = slow.agent.open.length
  while ((await scene.rows(id)).length < 6 - held) {
    for (const run of [...quick.agent.open]) scene.end(run)
    await scene.world.pass(500)
  }
  await scene.world.pass(60_000, 1000)
  t.is(slow.agent.open.length, held)
  t.is(scene.begun.length, 6)
})

test('a ledger that takes nothing for a while holds results back, and loses none', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(2)
  scene.ledger.refuse(true)
  for (const run of scene.open()) scene.end(run)
  await scene.world.pass(3000)
  t.is(scene.told.size, 0, 'nothing is reported before it is durable')
  t.is((await scene.info(id)).status, 'running')
  scene.ledger.refuse(false)
  await scene.world.pass(10_000)
  t.alike([(await scene.info(id)).status, scene.begun.length], ['completed', 2])
})

test('a worker that never comes back: its items end as unknown in some time, the others are done', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(4, ONCE)
  const [worker] = scene.workers
  if (worker === undefined) throw new Error('no worker')
  await scene.unlink(worker)
  await scene.world.pass(8000)
  t.is((await scene.rows(id)).length, 0, 'a link that was cut may heal')
  for (const run of [...(scene.workers[1]?.agent.open ?? [])]) scene.end(run)
  await scene.world.pass(4000)
  t.alike((await scene.rows(id)).map(({ status }) => status).sort(), ['completed', 'completed', 'unknown', 'unknown'])
  t.is((await scene.info(id)).status, 'partial')
})

test('a link that was only cut: unrepeatable work continues, and its result counts', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(4, ONCE)
  for (const worker of scene.workers) await scene.unlink(worker)
  await scene.world.pass(7000)
  await scene.link()
  await scene.world.pass(5000)
  await scene.finish(id)
  t.alike([(await scene.info(id)).status, scene.begun.length], ['completed', 4])
})

test('work with the permission to repeat goes to another agent, for any capability', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(6, { ...ONCE, allowRepeat: true })
  const [worker] = scene.workers
  if (worker === undefined) throw new Error('no worker')
  await scene.crashWorker(worker)
  await scene.finish(id)
  t.is((await scene.info(id)).status, 'completed')
  t.is(scene.begun.length, 8)
})

test('a run of the launcher itself that may not be repeated ends as unknown with its process; one that may is done again', async (t) => {
  for (const [name, expected] of [
    ['work.once', 'unknown'],
    ['work.again', 'completed']
  ] as const) {
    const scene = await SwarmScene.start(t, ['b'])
    const [worker] = scene.workers
    if (worker === undefined) throw new Error('no worker')
    // The worker's own node launches.
    const swarms = worker.node.core.swarms
    const id = await swarms.launch(mapOf(1, { capability: name }))
    await scene.world.settle()
    t.is(worker.agent.open.length, 1)
    await scene.crashWorker(worker)
    await scene.world.pass(2000)
    for (const run of [...worker.agent.open]) scene.end(run)
    await scene.world.pass(2000)
    t.is((await worker.node.core.swarms.find(id)).results().results[0]?.status, expected)
  }
})

test('how long an item took counts from its lease, also when that was given before a restart of the launcher', async (t) => {
  const scene = await SwarmScene.start(t, ['b'])
  const id = await scene.launch(1, ONCE)
  await scene.world.pass(3000)
  await scene.crash()
  await scene.link()
  await scene.world.pass(1000)
  const [run] = scene.open()
  if (run === undefined) throw new Error('nothing runs')
  scene.end(run)
  await scene.world.pass(1000)
  const { results } = await scene.launcher.api().call('swarm.results', { id })
  const [row] = results
  t.is(row?.status, 'completed')
  t.ok((row?.durationMs ?? 0) >= 4000 && (row?.durationMs ?? 0) < 5000, `${row?.durationMs} ms`)
})

test('a swarm that ran when its home was backed up is canceled in the restored home, and no item is begun again', async (t) => {
  const scene = await SwarmScene.start(t)
  const id = await scene.launch(6, ONCE)
  await scene.world.pass(1000)
  const entries = await scene.ledger.list({ from: '!', to: '~', limit: 10_000 })
  const running = scene.begun.length
  await scene.ledger.commit(entries.map(({ key, value }) => ({ key, value: restoredValue(key, value) })))
  await scene.crash()
  const { status, error } = await scene.info(id)
  t.is(status, 'canceled')
  t.ok(error?.message.includes('restored from a backup'), error?.message)
  await scene.link()
  await scene.world.pass(5000)
  t.alike([scene.begun.length, scene.open().length], [running, 0])
})

test('a launcher that asks again while its worker cannot record how a run ended is answered as well', async (t) => {
  const scene = await SwarmScene.start(t, ['b'])
  const id = await scene.launch(1, ONCE)
  const [run] = scene.open()
  if (run === undefined) throw new Error('nothing runs')
  scene.workers[0]?.ledger.refuse(true)
  scene.end(run)
  await scene.world.settle()
  await scene.crash()
  await scene.link()
  await scene.world.pass(2000)
  scene.workers[0]?.ledger.refuse(false)
  await scene.world.pass(5000)
  t.alike(
    (await scene.rows(id)).map(({ status, attempt }) => [status, attempt]),
    [['completed', 1]]
  )
})
