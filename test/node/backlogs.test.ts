import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { Backlogs, type Ending } from '../../src/node/backlogs.js'
import { holds } from '../support/holds.js'

interface Answer {
  readonly peer: string
  readonly bytes: number
  readonly expiresAt: number
}

const MiB = 1024 * 1024

/** Backlogs that note what became of each answer. */
function noted(): { backlogs: Backlogs<Answer>; ends: Map<Answer, Ending[]> } {
  const ends = new Map<Answer, Ending[]>()
  const backlogs = new Backlogs<Answer>((answer, ending) => void ends.set(answer, [...(ends.get(answer) ?? []), ending]))
  return { backlogs, ends }
}

const peers = ['p', 'q', 'r']
const step = fc.oneof(
  fc.record({ do: fc.constant('wait' as const), peer: fc.constantFrom(...peers), mib: fc.nat(12), lifeMs: fc.nat(200_000) }),
  fc.record({ do: fc.constantFrom('send' as const, 'hand' as const, 'refuse' as const, 'fail' as const), peer: fc.constantFrom(...peers) }),
  fc.record({ do: fc.constantFrom('wake' as const, 'forget' as const), peer: fc.constantFrom(...peers) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.nat(70_000) })
)

test('whatever happens, each answer is in one place, ends once, is never sent past its time, and the bounds hold', async (t) => {
  const property = fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
    const { backlogs, ends } = noted()
    let [now, ids] = [0, 0]
    const all: Answer[] = []
    const out = new Set<Answer>()
    const handed = new Map<string, { id: string; answer: Answer }[]>()
    for (const one of steps) {
      switch (one.do) {
        case 'wait': {
          const answer = { peer: one.peer, bytes: one.mib * MiB, expiresAt: now + one.lifeMs }
          all.push(answer)
          backlogs.wait(one.peer, answer, now)
          break
        }
        case 'send':
        case 'hand': {
          const answer = backlogs.next(one.peer, now)
          if (answer === null) break
          assert.ok(answer.peer === one.peer && answer.expiresAt > now)
          if (one.do === 'send') out.add(answer)
          else {
            const id = `m${ids++}`
            backlogs.hand(one.peer, { id, answer }, now)
            handed.set(one.peer, [...(handed.get(one.peer) ?? []), { id, answer }])
          }
          break
        }
        case 'refuse': {
          const first = handed.get(one.peer)?.shift()
          if (first === undefined) break
          const isKept = backlogs.refused(one.peer, first.id, now)
          assert.equal(isKept, !ends.has(first.answer) || ['crowded', 'expired'].includes(ends.get(first.answer)?.[0] ?? ''))
          assert.ok(!backlogs.refused(one.peer, first.id, now), 'once')
          break
        }
        case 'fail':
          backlogs.backOff(one.peer, now)
          assert.equal(backlogs.next(one.peer, now), null)
          break
        case 'pass':
          now += one.ms
          for (const peer of backlogs.tick(now)) assert.ok(peers.includes(peer))
          break
        default:
          backlogs[one.do](one.peer)
      }
      for (const list of ends.values()) assert.equal(list.length, 1, 'ends once')
      for (const answer of out) assert.ok(!ends.has(answer))
    }
    now += 10_000_000
    for (const peer of peers) backlogs.wake(peer)
    backlogs.tick(now)
    assert.equal(backlogs.waiting, 0)
    for (const answer of all) assert.ok(out.has(answer) !== ends.has(answer), 'nothing is lost without an ending')
  })
  await holds(t, property, 500)
})

test('what waits is bounded in number and bytes; who has most loses its oldest, and nobody else anything', async (t) => {
  const sizes = fc.array(fc.tuple(fc.constantFrom(...peers), fc.integer({ min: 1, max: 8 })), { minLength: 1, maxLength: 60 })
  const property = fc.property(sizes, (list) => {
    const { backlogs, ends } = noted()
    const of = new Map<string, Answer[]>()
    for (const [peer, mib] of list) {
      const answer = { peer, bytes: mib * MiB, expiresAt: 1 }
      of.set(peer, [...(of.get(peer) ?? []), answer])
      backlogs.wait(peer, answer, 0)
      const kept = [...of.values()].flat().filter((one) => !ends.has(one))
      assert.ok(kept.reduce((sum, one) => sum + one.bytes, 0) <= 32 * MiB)
      assert.equal(backlogs.waiting, kept.length)
    }
    for (const answers of of.values()) {
      const lost = answers.filter((one) => ends.has(one))
      assert.deepEqual(lost, answers.slice(0, lost.length), 'the oldest')
      if (answers.reduce((sum, one) => sum + one.bytes, 0) <= (32 * MiB) / peers.length) assert.equal(lost.length, 0)
    }
  })
  await holds(t, property, 200)
})

test('what one peer may still refuse never pushes out what waits, and goes itself without a loss', (t) => {
  const { backlogs, ends } = noted()
  const waiting = { peer: 'p', bytes: 30 * MiB, expiresAt: 1e9 }
  backlogs.wait('p', waiting, 0)
  for (let i = 0; i < 3000; i++) {
    const answer = { peer: 'q', bytes: MiB, expiresAt: 1e9 }
    backlogs.hand(`q${i % 12}`, { id: `m${i}`, answer }, 0)
  }
  t.absent(ends.has(waiting))
  t.is(ends.size, 3000 - 32)
  t.ok([...ends.values()].every(([ending]) => ending === 'taken'))
})

test('each wait for the same peer is twice the last, up to a minute, until what is carried shows that the way is free', (t) => {
  const { backlogs } = noted()
  const answer = { peer: 'p', bytes: 1, expiresAt: Number.POSITIVE_INFINITY }
  let now = 0
  const waitMs = (): number => {
    const from = now
    backlogs.refused('p', 'm', now)
    while (backlogs.next('p', now) === null) {
      now += 500
      backlogs.tick(now)
    }
    backlogs.hand('p', { id: 'm', answer }, now)
    return now - from
  }
  backlogs.hand('p', { id: 'm', answer }, now)
  t.alike(
    Array.from({ length: 8 }, () => waitMs()),
    [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
  )
  now += 5000
  backlogs.tick(now)
  backlogs.hand('p', { id: 'm', answer }, now)
  t.is(waitMs(), 1000)
})

test('no more answers are with neighbours at once than an honest one carries meanwhile', (t) => {
  const { backlogs } = noted()
  const give = (now: number): number => {
    let given = 0
    for (let next = backlogs.next('p', now); next !== null; next = backlogs.next('p', now))
      backlogs.hand('p', { id: `m${now}_${given++}`, answer: next }, now)
    return given
  }
  for (let i = 0; i < 600; i++) backlogs.wait('p', { peer: 'p', bytes: 1, expiresAt: 1e9 }, 0)
  t.is(give(0), 250)
  t.absent(backlogs.isOpen('p', 0), 'others wait behind them')
  t.alike(backlogs.tick(4999), [])
  t.alike(backlogs.tick(5000), ['p'])
  t.is(give(5000), 250)
})
