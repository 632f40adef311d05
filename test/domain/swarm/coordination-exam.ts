import assert from 'node:assert/strict'
import type { CandidateEffect } from '../../../src/domain/swarm/coordination-candidate.js'

/** Watches who coordinates a swarm from outside, and throws at the first that breaks a promise. */
export class CoordinationExam {
  /** Digests of accepted outcomes, by index. */
  readonly accepted = new Map<number, string>()
  /** Who began to coordinate, in order. */
  readonly begun: { readonly node: string; readonly epoch: number }[] = []
  readonly #areClocksGood: boolean

  /**
   * `areClocksGood`: rates are within the bound; else two may think at once that they have the lease, but never accept
   * twice.
   */
  constructor(areClocksGood: boolean) {
    this.#areClocksGood = areClocksGood
  }

  holders(nodes: readonly string[]): void {
    if (this.#areClocksGood) assert.ok(nodes.length <= 1, `${nodes.join(' and ')} hold the lease at once`)
  }

  see(node: string, effect: Exclude<CandidateEffect, { type: 'tell' }>, isCoordinating: boolean): void {
    if (effect.type === 'ended') return assert.equal(isCoordinating, false)
    assert.ok(isCoordinating, `${node} accepts without the lease`)
    const { epoch } = effect
    if (effect.type === 'accepted') {
      assert.deepEqual(
        { node, epoch },
        this.begun.findLast((one) => one.node === node),
        'accepted in the epoch of its lease'
      )
      for (const { index, digest } of effect.items) {
        if (this.#areClocksGood) assert.equal(this.accepted.has(index), false, `item ${index} is accepted twice`)
        this.#accept(index, digest)
      }
      return
    }
    assert.equal(
      this.begun.find((one) => one.epoch === epoch),
      undefined,
      'one epoch has one coordinator'
    )
    this.begun.push({ node, epoch })
    if (this.#areClocksGood)
      for (const index of this.accepted.keys()) assert.ok(effect.accepted.has(index), `${index} is forgotten`)
    for (const [index, digest] of effect.accepted) this.#accept(index, digest)
  }

  #accept(index: number, digest: string): void {
    assert.equal(this.accepted.get(index) ?? digest, digest, `item ${index} has two outcomes`)
    this.accepted.set(index, digest)
  }
}
