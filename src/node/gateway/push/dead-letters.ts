import type { DeadLetter } from '../../../domain/gateway/push.js'
import { DEAD_RANGE, type NoticeName, noticeId, noticeNameOf, PUSH_KEYS } from '../../../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import type { Ledger, LedgerChange } from '../../../ports/ledger.js'
import { ledgerEntries } from '../../ledger/scan.js'

/** The most dead letters; beyond it the oldest of the owner with the most is dropped. */
export const MAX_DEAD_LETTERS = 5000
/** The most dead letters of one owner; beyond it its oldest is dropped. */
export const MAX_DEAD_LETTERS_OF_ONE = 1000
/** How long dead letters are kept, in milliseconds. */
export const DEAD_LETTER_MS = 604_800_000

/** A notification, and the owner of its task. */
export interface OwnedNotice extends NoticeName {
  readonly owner: string
}

interface KeptLetter extends OwnedNotice {
  readonly deadAt: number
}

/** The notifications that failed for good: bounded in number, by owner and in all, and in age. */
export class DeadLetters {
  readonly #ledger: Ledger
  /** By id, oldest first. */
  readonly #kept = new Map<string, KeptLetter>()
  /** Ids by owner, oldest first. */
  readonly #owners = new Map<string, Set<string>>()
  #pushedOut = 0

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Reads the stored dead letters. `ownerOf`: owner of a task. @throws NodeError STORE_DAMAGED */
  async start(ownerOf: (task: string) => string): Promise<void> {
    const found: KeptLetter[] = []
    for await (const { key, value } of ledgerEntries(this.#ledger, DEAD_RANGE)) {
      const [name, letter] = [noticeNameOf(key), decodeRecord<DeadLetter>(value)]
      if (name !== null && letter !== null) found.push({ ...name, owner: ownerOf(letter.task), deadAt: letter.deadAt })
    }
    for (const one of found.sort((a, b) => a.deadAt - b.deadAt)) this.#put(one)
  }

  /** All ids, oldest first. */
  ids(): IterableIterator<string> {
    return this.#kept.keys()
  }

  /** True for the id of a dead letter. */
  has(id: string): boolean {
    return this.#kept.has(id)
  }

  /** The number of dead letters. */
  get size(): number {
    return this.#kept.size
  }

  /** The number of letters dropped for space since the start. */
  get pushedOut(): number {
    return this.#pushedOut
  }

  /** Adds a letter. Returns the changes that store it, and drop one when there are too many. */
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

  /** The ids of a hook's letters. */
  of(hook: string): string[] {
    return [...this.#kept].flatMap(([id, one]) => (one.hook === hook ? [id] : []))
  }

  /** The ids of expired letters. */
  past(now: number): string[] {
    return [...this.#kept].flatMap(([id, { deadAt }]) => (deadAt < now - DEAD_LETTER_MS ? [id] : []))
  }

  /** The ledger changes that remove letters; they stay in memory until {@link forget}. */
  removal(ids: readonly string[]): LedgerChange[] {
    return ids.flatMap((id) => {
      const one = this.#kept.get(id)
      return one === undefined ? [] : [{ key: PUSH_KEYS.dead(one.hook, one.generation), value: null }]
    })
  }

  /** Forgets removed letters. */
  forget(ids: readonly string[]): void {
    for (const id of ids) {
      const owner = this.#kept.get(id)?.owner ?? ''
      const own = this.#owners.get(owner)
      own?.delete(id)
      if (own?.size === 0) this.#owners.delete(owner)
      this.#kept.delete(id)
    }
  }

  /** A stored letter with its name; null for an unknown id. */
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

  /**
   * After a new letter of `owner`: the ids of the owner over a limit, oldest first; empty when no limit is exceeded.
   */
  #crowded(owner: string): Iterable<string> {
    const own = this.#owners.get(owner)
    if (own !== undefined && own.size > MAX_DEAD_LETTERS_OF_ONE) return own
    if (this.#kept.size <= MAX_DEAD_LETTERS) return []
    return [...this.#owners.values()].reduce((most, one) => (one.size > most.size ? one : most))
  }
}
