import test, { type Assert } from 'brittle'
import type { CallPart } from '../../../../src/domain/channel/call.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { utf8 } from '../../../../src/kit/ids.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { CALL_STALL_MS, InboundCalls } from '../../../../src/node/gateway/mesh/inbound-calls.js'
import { CALL_WINDOW_BYTES, MAX_CALLS } from '../../../../src/node/gateway/mesh/outbound-calls.js'
import type { CallAnswer, MemberCall } from '../../../../src/ports/member-calls.js'
import { ManualClock } from '../../../support/manual-clock.js'

const MIB = 1_048_576

/** Calls of members that read, or read nothing. */
class Scene {
  readonly clock = new ManualClock()
  readonly sent: { readonly peer: string; readonly part: CallPart }[] = []
  readonly calls: InboundCalls
  /** Members whose links have no room. */
  readonly full = new Set<string>()
  alone = false
  made = 0

  constructor(
    handler: (scene: Scene, call: MemberCall) => Promise<CallAnswer> = (scene) => Promise.resolve(scene.answer(MIB))
  ) {
    const send = (peer: string, part: CallPart): void => {
      if (this.full.has(peer)) throw new NodeError('OVERLOADED', 'no room')
      this.sent.push({ peer, part })
    }
    const telemetry = new MemoryTelemetry({ clock: this.clock, level: null, format: 'text', write: () => {} })
    this.calls = new InboundCalls({ clock: this.clock, telemetry, send, isAlone: () => this.alone })
    this.calls.serve((call) => handler(this, call))
  }

  answer(bytes: number): CallAnswer {
    return {
      body: () => {
        this.made++
        return new Uint8Array(bytes)
      }
    }
  }

  ask(peer: string, id: number, path = '/a2a'): void {
    this.calls.onCall(peer, { type: 'request', id, path, parameters: {}, body: utf8('{}') })
  }

  /** Lets time pass in small steps. */
  async pass(ms: number): Promise<void> {
    for (let at = 0; at <= ms; at += 50) {
      for (let i = 0; i < 500; i++) await Promise.resolve()
      this.clock.advance(50)
    }
  }

  bytesTo(peer: string): number {
    return this.sent.reduce(
      (sum, one) => sum + (one.peer === peer && 'body' in one.part ? one.part.body.byteLength : 0),
      0
    )
  }
}

test('of a member that reads nothing one answer is made, and the others once that is gone', async (t: Assert) => {
  const scene = new Scene()
  scene.full.add('eve')
  for (let id = 1; id <= MAX_CALLS; id++) scene.ask('eve', id)
  await scene.pass(1000)
  t.is(scene.made, 1)
  scene.ask('bob', 1)
  await scene.pass(0)
  t.is(scene.bytesTo('bob'), MIB, 'nobody else waits for her')
  scene.full.delete('eve')
  await scene.pass(35_000)
  t.is(scene.sent.filter(({ peer }) => peer === 'eve').length, MAX_CALLS)
  t.alike(
    scene.sent.filter(({ peer }) => peer === 'eve').map(({ part }) => part.id),
    Array.from({ length: MAX_CALLS }, (_, at) => at + 1),
    'in the order in which she asked'
  )
})

test('calls over the limit of a member leave nothing behind, whether it reads or not', async (t: Assert) => {
  const scene = new Scene()
  scene.full.add('eve')
  for (let id = 1; id <= 5000; id++) scene.ask('eve', id)
  await scene.pass(0)
  t.ok(scene.clock.pending <= MAX_CALLS, `${scene.clock.pending} timers`)
})

test('the data of an answer is read in its turn', async (t: Assert) => {
  let reading = 0
  let most = 0
  const scene = new Scene(async (self, call) => {
    await call.turn.take()
    most = Math.max(most, ++reading)
    for (let i = 0; i < 5; i++) await Promise.resolve()
    reading--
    return self.answer(10)
  })
  for (let id = 1; id <= MAX_CALLS; id++) scene.ask('eve', id)
  await scene.pass(10_000)
  t.alike([most, scene.made], [1, MAX_CALLS])
})

test('calls whose member hangs up before their turn read nothing', async (t: Assert) => {
  let reads = 0
  let goOn = (): void => {}
  const slow = new Promise<void>((resolve) => (goOn = resolve))
  const scene = new Scene(async (self, { turn }) => {
    await turn.take()
    reads++
    await slow
    return self.answer(10)
  })
  for (let id = 1; id <= MAX_CALLS; id++) scene.ask('eve', id)
  await scene.pass(0)
  for (let id = 2; id <= MAX_CALLS; id++) scene.calls.onCall('eve', { type: 'hangup', id })
  await scene.pass(0)
  goOn()
  await scene.pass(1000)
  t.is(reads, 1)
  scene.ask('eve', MAX_CALLS + 1)
  await scene.pass(1000)
  t.alike([reads, scene.made], [2, 2])
})

test('bytes that were read for an answer count like sent ones, also when the member hangs up meanwhile', async (t: Assert) => {
  let reads = 0
  const scene = new Scene(async (self, { turn, signal }) => {
    await turn.take()
    turn.read(MIB)
    if (++reads % 2 === 0) scene.calls.onCall('eve', { type: 'hangup', id: reads })
    if (signal.aborted) throw new Error('nobody asks any more')
    return self.answer(10)
  })
  for (let id = 1; id <= MAX_CALLS; id++) scene.ask('eve', id)
  await scene.pass(1000)
  t.ok(reads >= 2 && reads <= 5, `${reads} MiB in a second: 1 at once and 2 a second`)
  await scene.pass(35_000)
  t.is(reads, MAX_CALLS)
})

test('answers without a link have a limit for all members together; further ones are made anew once there is space', async (t: Assert) => {
  const scene = new Scene((self) => Promise.resolve(self.answer(15 * MIB)))
  const members = Array.from({ length: 6 }, (_, at) => `eve-${at}`)
  for (const [at, peer] of members.entries()) {
    scene.full.add(peer)
    scene.ask(peer, at)
  }
  await scene.pass(100)
  for (const peer of members) scene.full.delete(peer)
  await scene.pass(100)
  t.alike(
    members.map((peer) => scene.bytesTo(peer) / MIB),
    [15, 15, 15, 15, 0, 0],
    '60 of 64 MiB'
  )
  await scene.pass(2000)
  t.ok(members.every((peer) => scene.bytesTo(peer) === 15 * MIB))
  scene.full.add('eve-0')
  scene.ask('eve-0', 9)
  await scene.pass(2 * CALL_STALL_MS + 1000)
  t.absent(scene.calls.has('eve-0'), 'a follower that reads nothing for too long is not waited for')
})

test('a member over its share waits while others are served, and takes all that there is while nobody else is', async (t: Assert) => {
  const scene = new Scene()
  const ask = (): void => {
    for (let id = 1; id <= MAX_CALLS; id++) scene.ask('eve', scene.sent.length + id)
  }
  ask()
  await scene.pass(1000)
  const shared = scene.bytesTo('eve')
  t.ok(shared >= 2 * MIB && shared <= 5 * MIB, `${shared / MIB} MiB in a second: 1 at once and 2 a second`)
  await scene.pass(35_000)
  t.is(scene.bytesTo('eve'), MAX_CALLS * MIB, 'all of it comes')
  scene.alone = true
  ask()
  await scene.pass(1000)
  t.is(scene.bytesTo('eve'), 2 * MAX_CALLS * MIB)
})

test('a stream takes its turn for each item, so that a rare item delays nobody', async (t: Assert) => {
  const next: (() => void)[] = []
  async function* rare(): AsyncIterable<{ generation: number; body: () => Uint8Array }> {
    for (let generation = 1; ; generation++) {
      await new Promise<void>((resolve) => next.push(resolve))
      yield { generation, body: () => utf8('{}') }
    }
  }
  const scene = new Scene(async (self, call) => {
    await call.turn.take()
    call.turn.rest()
    return call.path === '/stream' ? { items: rare(), faultBody: () => utf8('{}') } : self.answer(10)
  })
  scene.ask('eve', 1, '/stream')
  await scene.pass(100)
  scene.ask('eve', 2)
  await scene.pass(100)
  next.pop()?.()
  await scene.pass(100)
  t.alike(
    scene.sent.map(({ part }) => [part.id, part.type]),
    [
      [2, 'answer'],
      [1, 'item']
    ]
  )
})

test('a stream whose caller reads slowly leaves the turn to the other calls of its member', async (t: Assert) => {
  const scene = new Scene((self, { path, turn }) => {
    async function* items(): AsyncIterable<{ generation: number; body: () => Uint8Array }> {
      for (let generation = 1; generation <= 2; generation++) {
        await turn.take()
        yield { generation, body: () => new Uint8Array(CALL_WINDOW_BYTES) }
      }
    }
    return Promise.resolve(path === '/stream' ? { items: items(), faultBody: () => utf8('{}') } : self.answer(10))
  })
  scene.alone = true
  scene.ask('eve', 1, '/stream')
  await scene.pass(100)
  scene.ask('eve', 2)
  await scene.pass(100)
  const parts = (): unknown[] => scene.sent.map(({ part }) => [part.id, part.type])
  t.alike(parts(), [
    [1, 'item'],
    [2, 'answer']
  ])
  scene.calls.onCall('eve', { type: 'credit', id: 1, bytes: CALL_WINDOW_BYTES })
  await scene.pass(100)
  t.alike(parts().slice(2), [
    [1, 'item'],
    [1, 'end']
  ])
})
