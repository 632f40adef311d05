import { createMemoryLedger } from '../support/memory-ledger.js'
import type { Clock } from '../../src/kit/clock.js'
import { NodeError } from '../../src/kit/errors.js'
import type { Ledger, LedgerChange } from '../../src/ports/ledger.js'
import type { Random } from './random.js'
import { madeChanges } from '../support/ledger-changes.js'

/** A commit that was called and is not durable yet. */
interface Waiting {
  readonly changes: readonly LedgerChange[]
  readonly resolve: () => void
  readonly reject: (error: NodeError) => void
}

/** What a disk needs. */
export interface DiskParts {
  readonly clock: Clock
  readonly random: Random
  /** Changes are durable from now on, whether their caller learns it or not. */
  onDurable(changes: readonly LedgerChange[]): void
  onRefused(changes: readonly LedgerChange[]): void
}

/**
 * The disk of a node: commits become durable later, in order, several at once; those that are not are lost when the
 * process ends.
 */
export class Disk {
  /** While true every commit is refused. */
  isFull = false
  readonly #parts: DiskParts
  #durable = createMemoryLedger()
  #waiting: Waiting[] = []
  #process = 0

  constructor(parts: DiskParts) {
    this.#parts = parts
  }

  /** The ledger of a process that begins now. */
  open(): Ledger {
    const process = ++this.#process
    const whileAlive = <T>(value: Promise<T>): Promise<T> =>
      value.then((read) => (process === this.#process ? read : never<T>()))
    return {
      get: (key) => this.#read(() => whileAlive(this.#durable.get(key))),
      list: (range) => this.#read(() => whileAlive(this.#durable.list(range))),
      commit: (changes) => (process === this.#process ? this.#commit(madeChanges(changes)) : never()),
      compact: () => Promise.resolve(),
      size: () => this.#durable.size(),
      close: () => Promise.resolve()
    }
  }

  /**
   * The process ends: some of what waited, from the first on, has become durable all the same; nobody is told. Returns
   * how many.
   */
  kill(): number {
    this.#process++
    const kept = this.#parts.random.int(0, this.#waiting.length)
    for (const { changes } of this.#waiting.splice(0).slice(0, kept)) this.#apply(changes)
    return kept
  }

  /** All that was on it is lost, while no process runs. */
  lose(): void {
    this.#durable = createMemoryLedger()
  }

  #commit(changes: readonly LedgerChange[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, resolve, reject })
      if (this.#waiting.length === 1) this.#sync()
    })
  }

  #sync(): void {
    const { clock, random } = this.#parts
    const process = this.#process
    clock.after(random.is(0.1) ? random.int(5, 200) : random.next() * 3, () => {
      if (process !== this.#process) return
      // What was called before a failure is told fails with it.
      const all = this.#waiting
      const group = all.splice(0, this.isFull ? all.length : random.int(1, all.length))
      for (const { changes, resolve, reject } of group) {
        if (this.isFull) {
          this.#parts.onRefused(changes)
          reject(new NodeError('DISK_FULL', 'no space left'))
          continue
        }
        this.#apply(changes)
        resolve()
      }
      if (all.length > 0) this.#sync()
    })
  }

  #apply(changes: readonly LedgerChange[]): void {
    void this.#durable.commit(changes)
    this.#parts.onDurable(changes)
  }

  /** Most reads are answered at once, some later. */
  #read<T>(read: () => Promise<T>): Promise<T> {
    const { clock, random } = this.#parts
    if (!random.is(0.2)) return read()
    return new Promise((resolve) => clock.after(random.next() * 2, () => resolve(read())))
  }
}

/** What a process that has ended waits for. */
function never<T>(): Promise<T> {
  return new Promise(() => {})
}
