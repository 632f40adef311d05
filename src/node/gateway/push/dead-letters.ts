import type { DeadLetter } from '../../../domain/gateway/push.js'
import { DEAD_RANGE, type NoticeName, noticeId, noticeNameOf, PUSH_KEYS } from '../../../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import type { Ledger, LedgerChange } from '../../../ports/ledger.js'
import { ledgerEntries } from '../../ledger/scan.js'

/** Notifications that nobody took which are kept; beyond it the oldest of whoever has the most goes. */
export const MAX_DEAD_LETTERS = 5000
/** The same of one caller; beyond it its oldest goes. */
export const MAX_DEAD_LETTERS_OF_ONE = 1000
/** How long they are kept, in milliseconds. */
export const DEAD_LETTER_MS = 604_800_000

/** A notification, and whose task it tells of. */
export interface OwnedNotice extends NoticeName {
  readonly owner: string
}

interface KeptLetter extends OwnedNotice {
  readonly deadAt: number
}

/** The notifications that nobody took: bounded in number, by caller and in all, and in age. */
export class DeadLetters {
  readonly #ledger: Ledger
  /** By id, the oldest first. */
  readonly #kept = new Map<string, KeptLetter>()
  /** Their ids by owner, the oldest first. */
  readonly #owners = new Map<string, Set<string>>()
  #pushedOut = 0

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Reads what there is. `ownerOf`: of a task. @throws NodeError STORE_DAMAGED */
  async start(ownerOf: (task: string) => string): Promise<void> {
    const found: KeptLetter[] = []
    for await (const { key, value } of ledgerEntries(this.#ledger, DEAD_RANGE)) {
      const [name, letter] = [noticeNameOf(key), decodeRecord<DeadLetter>(value)]
      if (name !== null && letter !== null) found.push({ ...name, owner: ownerOf(letter.task), deadAt: letter.deadAt })
    }
    for (const one of found.sort((a, b) => a.deadAt - b.deadAt)) this.#put(one)
  }

  /** The ids of those there are, the oldest first. */
  ids(): IterableIterator<string> {
    return this.#kept.keys()
  }

  /** Is there such a one? */
  has(id: string): boolean {
    return this.#kept.has(id)
  }

  /** How many there are. */
  get size(): number {
    return this.#kept.size
  }

  /** How many went because there were too many, since the start. */
  get pushedOut(): number {
    return this.#pushedOut
  }

  /** One more: what keeps it, and lets one go when there are too many. */
  add(name: OwnedNotice, letter: DeadLetter): LedgerChange[] {
    this.#put({ ...name, deadAt: letter.deadAt })
    const change = { key: PUSH_KEYS.dead(name.hook, name.generation), value: encodeRecord(letter) }
    const [oldest] = this.#crowded(name.owner)
    if (oldest === undefined) return [change]
    const removal = this.removal([oldest])
    this.forget([oldest])
    this.#pushedOut++
    return [change, ...removal]
  }

  /** The ids of those of a hook. */
  of(hook: string): string[] {
    return [...this.#kept].flatMap(([id, one]) => (one.hook === hook ? [id] : []))
  }

  /** The ids of those that are too old. */
  past(now: number): string[] {
    return [...this.#kept].flatMap(([id, { deadAt }]) => (deadAt < now - DEAD_LETTER_MS ? [id] : []))
  }

  /** What removes them; they are there until {@link forget}. */
  removal(ids: readonly string[]): LedgerChange[] {
    return ids.flatMap((id) => {
      const one = this.#kept.get(id)
      return one === undefined ? [] : [{ key: PUSH_KEYS.dead(one.hook, one.generation), value: null }]
    })
  }

  /** They are removed. */
  forget(ids: readonly string[]): void {
    for (const id of ids) {
      const owner = this.#kept.get(id)?.owner ?? ''
      const own = this.#owners.get(owner)
      own?.delete(id)
      if (own?.size === 0) this.#owners.delete(owner)
      this.#kept.delete(id)
    }
  }

  /** One as it is kept, with its name; null for none. */
  async read(id: string): Promise<(NoticeName & { readonly letter: DeadLetter }) | null> {
    const one = this.#kept.get(id)
    const bytes = one === undefined ? null : await this.#ledger.get(PUSH_KEYS.dead(one.hook, one.generation))
    const letter = bytes === null ? null : decodeRecord<DeadLetter>(bytes)
    return one === undefined || letter === null ? null : { hook: one.hook, generation: one.generation, letter }
  }

  #put(one: KeptLetter): void {
    const id = noticeId(one)
    this.#kept.set(id, one)
    this.#owners.set(one.owner, (this.#owners.get(one.owner) ?? new Set<string>()).add(id))
  }

  /** The ids of whoever has too many, after one more of an owner; empty when nobody has. */
  #crowded(owner: string): Iterable<string> {
    const own = this.#owners.get(owner)
    if (own !== undefined && own.size > MAX_DEAD_LETTERS_OF_ONE) return own
    if (this.#kept.size <= MAX_DEAD_LETTERS) return []
    return [...this.#owners.values()].reduce((most, one) => (one.size > most.size ? one : most))
  }
}
