import test, { type Assert } from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { PeerTrust, type PeerTrustDeps } from '../../../src/node/policy/peer-trust.js'
import { FakeLog, membershipOf } from '../../support/fake-log.js'
import { failsWith } from '../../support/fails.js'
import { ManualClock } from '../../support/manual-clock.js'
import { type Actor, actor, founded, MESH } from '../../support/membership.js'

const [owner, ann, bea] = ['owner', 'ann', 'bea'].map((name) => actor(name)) as [Actor, Actor, Actor]

interface Scene {
  readonly log: FakeLog
  readonly trust: PeerTrust
  /** Lines of its log. */
  readonly lines: string[]
  /** How often a view was read as a whole. */
  reads(): number
  /** Resolves once everything submitted is decided. */
  settled(): Promise<void>
}

/** The trust of ann, a newcomer of the owner; `faults`: errors of its next submissions. */
function sceneOf(t: Assert, { acceptsInviter = false, faults = [] as NodeError[] } = {}): Scene {
  const model = founded()
  const isIn = { trust: 'mine', admin: true } as const
  model.join(owner, ann, isIn)
  model.join(owner, bea)
  const log = new FakeLog(model)
  const own = log.of(ann)
  const pending = new Set<Promise<void>>()
  let reads = 0
  const submit: PeerTrustDeps['log']['submit'] = (body, timeoutMs) => {
    const fault = faults.shift()
    const run = fault === undefined ? own.submit(body, timeoutMs) : Promise.reject(fault)
    pending.add(run)
    return run
  }
  const counted = new Proxy(model.view(), {
    get: (view, key) => {
      if (key === 'trust') reads++
      return Reflect.get(view, key) as unknown
    }
  })
  const view = (): ReturnType<typeof own.view> => (log.submitted.length === 0 ? counted : own.view())
  const lines: string[] = []
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => lines.push(line) })
  const membership = { ...membershipOf(log, ann), acceptsInviter }
  const trust = new PeerTrust({ clock, telemetry, membership, log: { ...own, view, submit } })
  t.teardown(() => trust.close())
  const settled = async (): Promise<void> => {
    for (let before = -1; before !== pending.size; ) {
      before = pending.size
      await Promise.allSettled(pending)
      // The listeners of a submission run after it.
      await new Promise(setImmediate)
    }
  }
  return { log, trust, lines, reads: () => reads, settled }
}

test('a newcomer by a code of its own person signs once that it accepts its inviter', async (t) => {
  const { log, trust, settled } = sceneOf(t, { acceptsInviter: true })
  t.alike([trust.of(owner.id), trust.of(bea.id), trust.of(ann.id)], ['mine', 'guest', 'mine'], 'before any entry')
  trust.start()
  log.changed()
  log.changed()
  await settled()
  t.alike(
    log.submitted.map((body) => body.kind === 'trust' && [body.mesh, body.nodeKey, body.trust, body.serial]),
    [[MESH, owner.id, 'mine', 1]]
  )
  log.changed()
  await settled()
  t.is(log.submitted.length, 1)
  t.is(trust.of(owner.id), 'mine')
})

test('a newcomer by any other code signs nothing, and neither does one that rated its inviter itself', async (t) => {
  const guest = sceneOf(t)
  guest.trust.start()
  guest.log.changed()
  await guest.settled()
  t.alike([guest.log.submitted, guest.trust.of(owner.id)], [[], 'guest'])

  const own = sceneOf(t, { acceptsInviter: true })
  t.is(await own.trust.set(owner.id, 'guest'), true)
  own.trust.start()
  own.log.changed()
  await own.settled()
  t.alike([own.log.submitted.length, own.trust.of(owner.id)], [1, 'guest'])
})

test('an acceptance that the log did not take is submitted again with the next change, and the failure is logged', async (t) => {
  const faults = [new NodeError('TIMEOUT', 'no writer took the entry'), new NodeError('TIMEOUT', 'nor now')]
  const { log, trust, lines, settled } = sceneOf(t, { acceptsInviter: true, faults })
  trust.start()
  await settled()
  t.alike([log.submitted.length, lines.length], [0, 1])
  t.ok(lines[0]?.includes('no writer took the entry'), lines[0])
  log.changed()
  await settled()
  log.changed()
  await settled()
  t.alike([log.submitted.length, lines.length], [1, 2])
})

test('a closed one follows the log no more', async (t) => {
  const { log, trust, settled } = sceneOf(t, {
    acceptsInviter: true,
    faults: [new NodeError('TIMEOUT', 'no writer took the entry')]
  })
  trust.start()
  await settled()
  trust.close()
  log.changed()
  await settled()
  t.is(log.submitted.length, 0)
})

test('of ratings set at the same time none is lost, and the last one about a member counts', async (t) => {
  const { trust, log, settled } = sceneOf(t, { acceptsInviter: true })
  trust.start()
  const set = [
    trust.set(owner.id, 'guest'),
    trust.set(bea.id, 'mine'),
    trust.set(bea.id, 'guest'),
    trust.set(bea.id, 'mine')
  ]
  t.alike(await Promise.all(set), [true, true, true, true])
  await settled()
  t.alike([trust.of(owner.id), trust.of(bea.id)], ['guest', 'mine'])
  t.is(await trust.set(bea.id, 'mine'), false, 'an entry says so already')
  t.is(log.submitted.length, 5)
})

test('a rating that the log does not take fails with the error of the log, and the next one is submitted', async (t) => {
  const { trust } = sceneOf(t, { faults: [new NodeError('OVERLOADED', 'the mesh log takes no more')] })
  const [first, second] = [trust.set(bea.id, 'mine'), trust.set(bea.id, 'mine')]
  await failsWith(t, 'OVERLOADED', () => first)
  t.is(await second, true)
  t.is(trust.of(bea.id), 'mine')
})

test('a view is searched once, for any number of messages', (t) => {
  const { trust, reads } = sceneOf(t)
  for (let i = 0; i < 1000; i++) trust.of([owner, ann, bea][i % 3]?.id ?? '')
  t.is(reads(), 1)
})
