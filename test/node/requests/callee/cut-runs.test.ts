import test from 'brittle'
import fc from 'fast-check'
import type { RequestRecord } from '../../../../src/domain/reliable/records.js'
import { MAX_CUTS, recover } from '../../../../src/domain/reliable/request.js'
import type { Asked } from '../../../../src/node/requests/caller/requests.js'
import { CutRuns } from '../../../../src/node/requests/callee/cut-runs.js'
import { DurableScene } from '../../../support/durable-scene.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** How long a turn lasts at most, in milliseconds. */
const TURN_MS = 1000

/** Requests that have begun. */
async function begunOn(scene: DurableScene, count: number): Promise<Asked[]> {
  const all: Asked[] = []
  for (let at = 0; at < count; at++) all.push(await scene.ask())
  await scene.world.pass(100, 50)
  return all
}

async function endOf(scene: DurableScene, { taskId }: Asked): ReturnType<DurableScene['task']> {
  await scene.world.settle()
  return await scene.task(taskId)
}

test('a request at whose run its node ended twice is not run a third time: its caller, its node and the log say why', async (t) => {
  const scene = await DurableScene.start(t)
  const [asked] = await begunOn(scene, 1)
  if (asked === undefined) return t.fail('it is asked')
  await scene.crashPeer()
  t.is(scene.runsOf(asked.requestId), 2, 'one end may be anything')
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(10_000, 500)
  t.is(scene.runsOf(asked.requestId), 2)
  const { state, error } = await scene.task(asked.taskId)
  t.is(state, 'unknown')
  t.ok(error?.message.startsWith('its node ended twice while it ran; it is not run again'), error?.message)
  t.alike([error?.retryable, error?.isFinal], [false, true])
  const [task] = scene.peer.core.tasks.list()
  t.alike([task?.state, task?.error?.message], ['unknown', error?.message], 'its node shows it too')
  t.ok(scene.peer.lines.some((line) => line.includes('a request is not run again') && line.includes(asked.requestId)))
  await scene.crashPeer()
  await scene.link()
  await scene.world.pass(700_000, 10_000)
  t.is(scene.runsOf(asked.requestId), 2, 'nor later')
})

test('an orderly stop of its node counts for nothing: a request runs again after several', async (t) => {
  const scene = await DurableScene.start(t)
  const [asked] = await begunOn(scene, 1)
  if (asked === undefined) return t.fail('it is asked')
  for (const round of [1, 2, 3]) {
    await scene.restartPeer()
    await scene.link()
    await scene.world.pass(10_000, 500)
    t.is(scene.runsOf(asked.requestId), round + 1)
  }
  await scene.crashPeer()
  await scene.link()
  t.is(scene.runsOf(asked.requestId), 5, 'and after the first end that is none')
  scene.finish()
  t.is((await endOf(scene, asked)).state, 'completed')
})

test('of many that ran when their node ended one runs at a time, and the one that ends it again is alone at fault', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 8 })
  const all = await begunOn(scene, 6)
  t.is(scene.begun.length, 6)
  await scene.crashPeer()
  await scene.link()
  t.is(scene.begun.length, 7)
  scene.finish()
  await scene.world.settle()
  t.is(scene.begun.length, 8, 'the next one begins when one ends')
  const culprit = all.find(({ requestId }) => requestId === scene.begun.at(-1)?.requestId)
  if (culprit === undefined) return t.fail('it is one of them')
  const others = all.filter((one) => one !== culprit)
  await scene.crashPeer()
  await scene.link()
  for (const _ of others.slice(1)) {
    scene.finish()
    await scene.world.settle()
  }
  t.is((await endOf(scene, culprit)).state, 'unknown')
  for (const asked of others) t.is((await endOf(scene, asked)).state, 'completed')
  t.is(scene.runsOf(culprit.requestId), 2)
})

test('a long run delays the others for a second at most, and requests that had not begun not at all', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 3 })
  await begunOn(scene, 5)
  t.is(scene.begun.length, 3)
  await scene.crashPeer()
  t.is(scene.begun.length, 6, 'one that ran, and two that waited for a place')
  scene.finish()
  scene.finish()
  scene.finish()
  await scene.world.settle()
  t.is(scene.begun.length, 7)
  await scene.world.pass(TURN_MS - 1)
  t.is(scene.begun.length, 7)
  await scene.world.pass(1)
  t.is(scene.begun.length, 8)
})

test('a copy of a request that comes before its turn begins nothing, and is answered when it has run', async (t) => {
  const scene = await DurableScene.start(t)
  const [, second] = await begunOn(scene, 2)
  if (second === undefined) return t.fail('they are asked')
  await scene.crashPeer()
  await scene.link()
  const { here, peer, world } = scene
  const copy = here.core.outbound.send({
    sender: { agentId: 'operator', nodeId: here.id },
    recipient: { agentId: 'slow', nodeId: peer.id },
    type: 'request',
    payload: { requestId: second.requestId, attempt: 1, capability: 'slow.again', input: { a: 1 } },
    reliable: { requestId: second.requestId, mayWait: true, ttlMs: 600_000, changes: () => [] }
  })
  await world.settle()
  await copy
  t.is(scene.runsOf(second.requestId), 1)
  scene.finish()
  await world.settle()
  t.is(scene.runsOf(second.requestId), 2)
  scene.finish()
  t.is((await endOf(scene, second)).state, 'completed')
})

test('a request without an end when its node ended begins only when that is on disk', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  const [ran, waited] = await begunOn(scene, 2)
  if (ran === undefined || waited === undefined) return t.fail('they are asked')
  await scene.crashPeer()
  t.is(scene.runsOf(ran.requestId), 2)
  const release = scene.hold('peer', 'now')
  scene.finish()
  await scene.world.settle()
  t.is(scene.runsOf(waited.requestId), 0)
  release()
  await scene.world.settle()
  t.is(scene.runsOf(waited.requestId), 1)
})

test('after an error of the node itself no earlier run is repeated; requests that had not begun run', async (t) => {
  const scene = await DurableScene.start(t, { concurrency: 1 })
  const [ran, waited] = await begunOn(scene, 2)
  if (ran === undefined || waited === undefined) return t.fail('they are asked')
  let settled = 0
  scene.peersFault = { reason: 'it broke', settled: () => Promise.resolve(void settled++) }
  await scene.crashPeer()
  await scene.link()
  t.alike([scene.runsOf(ran.requestId), scene.runsOf(waited.requestId)], [1, 1])
  const { state, error } = await endOf(scene, ran)
  t.is(state, 'unknown')
  t.ok(
    error?.message.startsWith('its node ended by an error of its own while it ran; it is not run again'),
    error?.message
  )
  t.ok(scene.peer.lines.some((line) => line.includes('ended by an error of its own') && line.includes('it broke')))
  t.is(settled, 1)
})

/**
 * A request of a model of one node: how long its run takes, and when that ends the node (null: never), in milliseconds.
 */
interface Modelled {
  readonly lastsMs: number
  readonly killsAfterMs: number | null
}

const BASE: RequestRecord = {
  role: 'callee',
  requestId: '',
  attempt: 1,
  source: 'a@n',
  target: 'b@m',
  capability: null,
  description: '',
  swarm: null,
  correlationId: '',
  taskId: null,
  status: 'started',
  isRepeatable: true,
  tries: 1,
  createdAt: 0,
  updatedAt: 0,
  deadline: Number.MAX_SAFE_INTEGER,
  retryAt: null,
  expiresAt: Number.MAX_SAFE_INTEGER,
  error: null,
  asking: null
}

/**
 * Starts of one node until nothing is open; gives the requests that were given up, and the ends of the node. All ran at
 * the first end.
 */
function lives(all: readonly Modelled[]): { readonly givenUp: number[]; readonly ends: number } {
  const disk = new Map(all.map((_, at) => [String(at), { ...BASE, requestId: String(at) }]))
  const givenUp: number[] = []
  let ends = 1
  while (disk.size > 0 && ends < 20) if (isKilled(all, disk, givenUp)) ends++
  return { givenUp, ends }
}

/** One life of the node. True: a request ended it. */
function isKilled(all: readonly Modelled[], disk: Map<string, RequestRecord>, givenUp: number[]): boolean {
  const clock = new ManualClock()
  const cutRuns = new CutRuns({ clock })
  const waiting = [...disk.keys()]
  let isDead = false
  const begin = (name: string, record: RequestRecord): void => {
    const { cuts } = cutRuns.found(name, record)
    cutRuns.begins(name)
    disk.set(name, { ...record, asking: { mayQueue: false, cuts } })
    const { lastsMs, killsAfterMs } = all[Number(name)]
    clock.after(killsAfterMs ?? lastsMs, () => {
      if (killsAfterMs !== null) isDead = true
      else end(name)
    })
  }
  const end = (name: string): void => {
    disk.delete(name)
    cutRuns.ended(name)
  }
  const takeUp = (): void => {
    for (const name of waiting.splice(0)) {
      const record = disk.get(name)
      if (record === undefined) continue
      if (cutRuns.isBlocked(name)) waiting.push(name)
      else if (recover(cutRuns.found(name, record)) === 'run') {
        cutRuns.take(name)
        begin(name, record)
      } else {
        givenUp.push(Number(name))
        end(name)
      }
    }
  }
  for (const [name, record] of disk) cutRuns.add(name, record)
  cutRuns.onFree(takeUp)
  takeUp()
  while (!isDead && disk.size > 0 && clock.step(Number.MAX_SAFE_INTEGER)) continue
  return isDead
}

const innocent = fc.record({ lastsMs: fc.nat(TURN_MS - 1), killsAfterMs: fc.constant(null) })
const culprit = fc.record({ lastsMs: fc.constant(0), killsAfterMs: fc.nat(TURN_MS - 1) })
const long = fc.record({ lastsMs: fc.integer({ min: TURN_MS, max: 60_000 }), killsAfterMs: fc.constant(null) })
const lateCulprit = fc.record({ lastsMs: fc.constant(0), killsAfterMs: fc.nat(30_000) })

test('of any requests that end within a turn, only the ones that end the node in it are given up', async (t) => {
  const property = fc.property(
    fc.array(fc.oneof(innocent, innocent, culprit), { minLength: 1, maxLength: 40 }),
    (all) => {
      const { givenUp, ends } = lives(all)
      const culprits = all.flatMap(({ killsAfterMs }, at) => (killsAfterMs === null ? [] : [at]))
      return String(givenUp.sort((a, b) => a - b)) === String(culprits) && ends === 1 + culprits.length
    }
  )
  await holds(t, property, 500)
})

test('however long any requests run, each ends its node as often as it may at most, and all come to an end', async (t) => {
  const property = fc.property(fc.array(fc.oneof(innocent, long, culprit, lateCulprit), { maxLength: 40 }), (all) => {
    const { givenUp, ends } = lives(all)
    const culprits = all.filter(({ killsAfterMs }) => killsAfterMs !== null).length
    return (
      ends <= 1 + culprits * (MAX_CUTS - 1) && givenUp.length >= culprits && new Set(givenUp).size === givenUp.length
    )
  })
  await holds(t, property, 500)
})
