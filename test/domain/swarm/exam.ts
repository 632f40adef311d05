import assert from 'node:assert/strict'
import type { SwarmEffect, SwarmParts } from '../../../src/domain/swarm/machine.js'

type Item = Extract<SwarmEffect, { type: 'item' }>
type Done = Extract<SwarmEffect, { type: 'done' }>

interface Lease {
  readonly agent: string
  readonly attempt: number
}

/** Watches the effects of a swarm from outside and throws at the first that breaks a promise of the machine. */
export class SwarmExam {
  done: Done | null = null
  readonly outcomes = new Map<number, Item>()
  readonly #parts: SwarmParts
  readonly #open = new Map<number, Lease>()
  readonly #attempts = new Map<number, number>()
  readonly #failures = new Map<number, number>()
  readonly #slots = new Map<string, number>()
  readonly #finished = new Set<string>()

  constructor(parts: SwarmParts) {
    this.#parts = parts
  }

  accepted(agent: string, slots: number): void {
    this.#slots.set(agent, slots)
  }

  gone(agent: string): void {
    this.#slots.set(agent, 0)
  }

  /** A worker really did this run. */
  finished(agent: string, key: string): void {
    this.#finished.add(`${agent} ${key}`)
  }

  leases(agent: string): number {
    return [...this.#open.values()].filter((lease) => lease.agent === agent).length
  }

  see(effect: SwarmEffect): void {
    assert.equal(this.done, null, 'an effect after done')
    switch (effect.type) {
      case 'lease':
        return this.#lease(effect)
      case 'release':
        return this.#close(effect)
      case 'retry': {
        const failures = (this.#failures.get(effect.index) ?? 0) + 1
        this.#failures.set(effect.index, failures)
        assert.ok(failures <= this.#parts.retries, 'more retries than allowed')
        return this.#close(effect)
      }
      case 'item':
        return this.#item(effect)
      case 'done':
        return this.#done(effect)
    }
  }

  #lease({ index, agent, attempt }: Extract<SwarmEffect, { type: 'lease' }>): void {
    assert.equal(this.#open.has(index), false, 'two live leases of one item')
    assert.equal(this.outcomes.has(index), false, 'a lease of a finished item')
    assert.equal(attempt, (this.#attempts.get(index) ?? 0) + 1, 'attempts rise by one')
    assert.ok(this.leases(agent) < (this.#slots.get(agent) ?? 0), 'more leases than slots')
    assert.ok(this.#open.size < this.#parts.maxParallel, 'more leases than maxParallel')
    const pinnedTo = this.#parts.items[index]?.pinnedTo
    assert.ok(pinnedTo === undefined || pinnedTo === agent, 'a pinned item on another agent')
    this.#attempts.set(index, attempt)
    this.#open.set(index, { agent, attempt })
  }

  #close({ index, agent, attempt }: { index: number; agent: string; attempt: number }): void {
    assert.deepEqual(this.#open.get(index), { agent, attempt }, 'the end of a lease that is not live')
    this.#open.delete(index)
  }

  #item(item: Item): void {
    assert.equal(this.outcomes.has(item.index), false, 'two outcomes of one item')
    this.outcomes.set(item.index, item)
    const { index, agent, attempt, error } = item
    if (item.status === 'completed') {
      assert.equal(item.result, `${agent} ${index}/${attempt}`)
      assert.ok(this.#finished.has(`${agent} ${index}/${attempt}`), 'a result that nobody worked for')
      return this.#close(item)
    }
    if (error?.code !== 'TASK_FAILED') return assert.equal(this.#open.has(index), false)
    assert.equal(this.#failures.get(index) ?? 0, this.#parts.retries, 'failed before its retries were used')
    this.#close(item)
  }

  #done(done: Done): void {
    this.done = done
    const total = this.#parts.items.length
    const completed = [...this.outcomes.values()].filter((one) => one.status === 'completed').length
    assert.deepEqual(done.counts, { total, completed, failed: this.outcomes.size - completed })
    assert.equal(this.#open.size, 0, 'done with live leases')
    if (done.status === 'canceled') return
    assert.equal(this.outcomes.size, total, 'done before every item had its outcome')
    assert.equal(done.status, completed === total ? 'completed' : completed === 0 ? 'failed' : 'partial')
  }
}
