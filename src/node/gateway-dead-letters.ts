import { Oldest } from '../kit/oldest.js'
import type { DeadLetter } from '../domain/gateway/push.js'
import { DEAD_RANGE, type NoticeName, noticeId, noticeNameOf, PUSH_KEYS } from '../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../domain/gateway/records.js'
import type { Ledger, LedgerChange } from '../ports/ledger.js'
import { ledgerEntries } from './ledger-entries.js'

/** Notifications that nobody took which are kept; beyond it the oldest goes. */
export const MAX_DEAD_LETTERS = 5000
/** How long they are kept, in milliseconds. */
export const DEAD_LETTER_MS = 604_800_000

/** The notifications that nobody took: bounded in number and age. */
export class DeadLetters {
  readonly #ledger: Ledger
  /** By id, the oldest first. */
  readonly #kept = new Map<string, NoticeName & { readonly deadAt: number }>()
  readonly #oldest = new Oldest(this.#kept)

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** Reads what there is. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const found: (NoticeName & { readonly deadAt: number })[] = []
    for await (const { key, value } of ledgerEntries(this.#ledger, DEAD_RANGE)) {
      const [name, letter] = [noticeNameOf(key), decodeRecord<DeadLetter>(value)]
      if (name !== null && letter !== null) found.push({ ...name, deadAt: letter.deadAt })
    }
    for (const one of found.sort((a, b) => a.deadAt - b.deadAt)) this.#kept.set(noticeId(one), one)
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

  /** One more: what keeps it, and lets the oldest go when there are too many. */
  add(name: NoticeName, letter: DeadLetter): LedgerChange[] {
    this.#kept.set(noticeId(name), { ...name, deadAt: letter.deadAt })
    const change = { key: PUSH_KEYS.dead(name.hook, name.generation), value: encodeRecord(letter) }
    const oldest = this.#kept.size > MAX_DEAD_LETTERS ? this.#oldest.next() : undefined
    if (oldest === undefined) return [change]
    const removal = this.removal([oldest])
    this.forget([oldest])
    return [change, ...removal]
  }

  /** The ids of those of a hook. */
  of(hook: string): string[] {
    return [...this.#kept].flatMap(([id, one]) => (one.hook === hook ? [id] : []))
  }

  /** The ids of those that are too old. */
  past(now: number): string[] {
    const ids: string[] = []
    for (const [id, { deadAt }] of this.#kept) {
      if (deadAt >= now - DEAD_LETTER_MS) break
      ids.push(id)
    }
    return ids
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
    for (const id of ids) this.#kept.delete(id)
  }

  /** One as it is kept, with its name; null for none. */
  async read(id: string): Promise<(NoticeName & { readonly letter: DeadLetter }) | null> {
    const one = this.#kept.get(id)
    const bytes = one === undefined ? null : await this.#ledger.get(PUSH_KEYS.dead(one.hook, one.generation))
    const letter = bytes === null ? null : decodeRecord<DeadLetter>(bytes)
    return one === undefined || letter === null ? null : { hook: one.hook, generation: one.generation, letter }
  }
}
