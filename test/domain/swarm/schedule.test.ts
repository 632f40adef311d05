import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { createSwarm, stepSwarm, type SwarmInput, type SwarmState } from '../../../src/domain/swarm/machine.js'
import { holds } from '../../support/holds.js'

const LEASE_MS = 1000
const AGENTS = ['a@one', 'b@one', 'c@two', 'd@three']

type Move =
  | { readonly type: 'join' | 'left' | 'beat' | 'done'; readonly agent: string }
  | { readonly type: 'pass'; readonly ms: number }

const arbMoves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    fc.record({ type: fc.constantFrom('join', 'left', 'beat', 'done'), agent: fc.constantFrom(...AGENTS) }),
    fc.record({ type: fc.constant('pass'), ms: fc.integer({ min: 1, max: 1200 }) })
  ),
  { minLength: 30, maxLength: 80 }
)

function hostOf(agent: string): string {
  return agent.slice(agent.indexOf('@') + 1)
}

/**
 * Watches from outside: who holds what, who is there, and which nodes have missed heartbeats since they were last
 * heard.
 */
class Watched {
  readonly #state: SwarmState
  readonly #open = new Map<number, { readonly agent: string; readonly attempt: number }>()
  readonly #present = new Set<string>()
  readonly #silentUntil = new Map<string, number>()
  #now = 0
  misses = 0

  constructor() {
    const items = Array.from({ length: 40 }, (_, i) => ({ name: `item ${i}` }))
    this.#state = createSwarm({ id: 's', items, maxParallel: 8, retries: 2, deadlineAt: 1e9, leaseMs: LEASE_MS }, 0)
  }

  move(move: Move): void {
    if (move.type === 'pass') {
      this.#now += move.ms
      return this.#do({ type: 'tick' })
    }
    const { agent } = move
    const held = [...this.#open]
      .filter(([, lease]) => lease.agent === agent)
      .map(([index, { attempt }]) => ({ index, attempt }))
    const [first] = held
    if (move.type === 'join') this.#present.add(agent)
    if (move.type === 'left') this.#present.delete(agent)
    if (move.type === 'join' || (first !== undefined && move.type !== 'left')) this.#silentUntil.delete(hostOf(agent))
    if (move.type === 'join') this.#do({ type: 'accepted', agent, slots: 2 })
    else if (move.type === 'left') this.#do({ type: 'gone', agents: [agent], reason: 'its node is gone' })
    else if (move.type === 'beat') this.#do({ type: 'heartbeat', leases: held })
    else if (first !== undefined) {
      this.#open.delete(first.index)
      this.#do({ type: 'result', ...first, agent, outcome: { ok: true, result: 1 } })
    }
  }

  #do(input: SwarmInput): void {
    for (const effect of stepSwarm(this.#state, input, this.#now).effects) {
      if (effect.type === 'release') {
        this.#open.delete(effect.index)
        if (!effect.reason.startsWith('no heartbeat')) continue
        this.misses++
        this.#silentUntil.set(hostOf(effect.agent), this.#now + LEASE_MS)
      }
      if (effect.type !== 'lease') continue
      this.#open.set(effect.index, effect)
      const isSilent = (agent: string): boolean => (this.#silentUntil.get(hostOf(agent)) ?? 0) > this.#now
      const others = [...this.#present].filter((agent) => !isSilent(agent))
      assert.ok(!isSilent(effect.agent) || others.length === 0, `${effect.agent} is silent, and ${others.join()} there`)
    }
  }
}

test('no lease goes to a node that has just missed heartbeats while others are there', async (t) => {
  let misses = 0
  await holds(
    t,
    fc.property(arbMoves, (moves) => {
      const watched = new Watched()
      for (const move of moves) watched.move(move)
      misses += watched.misses
    }),
    300
  )
  t.ok(misses > 100, `heartbeats were missed ${misses} times`)
})

test('a silent node gets work again when nobody else is there, and after a lease span', (t) => {
  const items = Array.from({ length: 9 }, (_, i) => ({ name: `item ${i}` }))
  const state = createSwarm({ id: 's', items, maxParallel: 8, retries: 2, deadlineAt: 1e9, leaseMs: LEASE_MS }, 0)
  const leased = (input: SwarmInput, now: number): string[] =>
    stepSwarm(state, input, now).effects.flatMap((effect) => (effect.type === 'lease' ? [effect.agent] : []))
  t.alike(leased({ type: 'accepted', agent: 'a@one', slots: 1 }, 0), ['a@one'])
  t.alike(leased({ type: 'tick' }, 1000), [], 'it rests')
  t.alike(leased({ type: 'tick' }, 1250), ['a@one'], 'it is the only one')
  t.alike(leased({ type: 'accepted', agent: 'b@two', slots: 1 }, 1300), ['b@two'])
  t.alike(leased({ type: 'heartbeat', leases: [{ index: 1, attempt: 1 }] }, 2200), [])
  t.alike(leased({ type: 'tick' }, 2250), [])
  t.alike(leased({ type: 'tick' }, 3000), [], 'the other is there, though busy')
  t.alike(leased({ type: 'heartbeat', leases: [{ index: 1, attempt: 1 }] }, 3100), [])
  t.alike(leased({ type: 'tick' }, 3250), ['a@one'])
})

test('a node is no longer silent when another agent of it sends a heartbeat', (t) => {
  const items = Array.from({ length: 9 }, (_, i) => ({ name: `item ${i}` }))
  const state = createSwarm({ id: 's', items, maxParallel: 8, retries: 2, deadlineAt: 1e9, leaseMs: LEASE_MS }, 0)
  const leased = (input: SwarmInput, now: number): string[] =>
    stepSwarm(state, input, now).effects.flatMap((effect) => (effect.type === 'lease' ? [effect.agent] : []))
  const agents = ['a@one', 'b@one', 'c@two'].map((agent) => ({ agent, slots: 1 }))
  t.alike(leased({ type: 'recruited', agents }, 0), ['a@one', 'b@one', 'c@two'])
  const beat = (index: number): SwarmInput => ({ type: 'heartbeat', leases: [{ index, attempt: 1 }] })
  for (const index of [1, 2]) t.alike(leased(beat(index), 600), [])
  t.alike(leased({ type: 'tick' }, 1000), [])
  t.alike(leased({ type: 'tick' }, 1250), [])
  t.alike(leased(beat(1), 1300), ['a@one'])
})
