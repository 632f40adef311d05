import { NodeError } from '../../kit/errors.js'

/** The source of a pin: the config that names its sha256, the first sight, or a person who reviewed it. */
export type PinnedBy = 'config' | 'first-sight' | 'accepted'

/** A pinned value and the source of its pin. */
export type Kept<T> = T & { readonly by: PinnedBy }

/** The stored pin of the home. `lost`: there was one that cannot be read, so first sight is not trusted again. */
export type Remembered<T> = { readonly kind: 'none' | 'lost' } | { readonly kind: 'kept'; readonly accepted: Kept<T> }

/** The expected hash and its source. */
export interface PinRules<T> {
  /** sha256 of the only thing that may be in force; null: the one seen first. */
  readonly pin: string | null
  hash(value: T): string
  /** Is the value empty? An empty value is not pinned: a slow server would stay pinned to it. */
  isNothing(value: T): boolean
  /**
   * The accepted value with members outside the hash that it lacks and the seen one of the same hash has; null: it
   * lacks none.
   */
  completed?(accepted: T, seen: T): T | null
}

/**
 * A remote value that may change at any time while a person relies on it. The first one seen stays pinned until a
 * person accepts another.
 */
export class Pinned<T> {
  readonly #rules: PinRules<T>
  #accepted: Kept<T> | null = null
  #seen: T | null = null
  #isLost = false

  constructor(rules: PinRules<T>) {
    this.#rules = rules
  }

  /** Starts from the stored pin of the home. A lost one does not matter where the config pins the value. */
  restore(remembered: Remembered<T>): void {
    this.#isLost = remembered.kind === 'lost' && this.#rules.pin === null
    if (remembered.kind === 'kept' && this.#isPinned(remembered.accepted)) this.#accepted = remembered.accepted
  }

  /** Takes the value seen now. Returns the value to store when it comes into force by itself, else null. */
  take(value: T): Kept<T> | null {
    this.#seen = value
    const { pin, isNothing } = this.#rules
    if (pin !== null && this.#isPinned(value) && this.isPending) return this.#accept('config')
    if (pin === null && this.#accepted === null && !this.#isLost && !isNothing(value))
      return this.#accept('first-sight')
    return this.#completed(value)
  }

  #completed(value: T): Kept<T> | null {
    if (this.#accepted === null || this.isPending) return null
    const completed = this.#rules.completed?.(this.#accepted, value) ?? null
    return completed === null ? null : (this.#accepted = { ...completed, by: this.#accepted.by })
  }

  /** Puts an accepted value into force. */
  accept(accepted: Kept<T>): void {
    this.#isLost = false
    this.#accepted = accepted
  }

  /** The value seen last; null: none yet. */
  get seen(): T | null {
    return this.#seen
  }

  /** The pinned value; null: none yet. */
  get accepted(): Kept<T> | null {
    return this.#accepted
  }

  /** Does the value seen last differ from the pinned one, or is the pinned one lost? */
  get isPending(): boolean {
    if (this.#seen === null) return false
    return this.#isLost || this.#accepted === null || this.#rules.hash(this.#accepted) !== this.#rules.hash(this.#seen)
  }

  /** sha256 of the pinned value, and the source of its pin; null without one. */
  pinned(): { readonly hash: string; readonly by: PinnedBy } | null {
    return this.#accepted === null ? null : { hash: this.#rules.hash(this.#accepted), by: this.#accepted.by }
  }

  /** The pinned value was lost, so the seen one waits for a person. */
  get isLost(): boolean {
    return this.#isLost
  }

  #accept(by: PinnedBy): Kept<T> | null {
    return this.#seen === null ? null : (this.#accepted = { ...this.#seen, by })
  }

  #isPinned(value: T): boolean {
    return this.#rules.pin === null || this.#rules.pin === this.#rules.hash(value)
  }
}

/** A person's acceptance and the current state. */
export interface Acceptance {
  /** Of the server or agent. */
  readonly name: string
  /** Where the config pins it: `mcp.servers.<name>.pin`. */
  readonly setting: string
  /** Its kind: `tool list`, `card`. */
  readonly thing: string
  /** sha256 that the person looked at. */
  readonly accept: string
  readonly pin: string | null
  /** sha256 of the waiting value; null: none. */
  readonly pending: string | null
  /** sha256 of the pinned value. */
  readonly pinned: string | null
  /** Why nothing is given now; null: it was given. */
  readonly fault: string | null
}

/** May it be put into force now? False: it is already. @throws NodeError CONFLICT when not */
export function mayAccept({ name, setting, thing, accept, pin, pending, pinned, fault }: Acceptance): boolean {
  if (pin !== null && pending !== null)
    throw new NodeError('CONFLICT', `the config pins another ${thing} of ${name}: set ${setting} to ${pending}`, {
      next: ['a2a-node config path', 'a2a-node tools ls']
    })
  const next = [`a2a-node tools refresh ${name}`]
  if (fault !== null) throw new NodeError('CONFLICT', `${name} gives no ${thing} now: ${fault}`, { next })
  if (pending === null && pinned === accept) return false
  if (pending === accept) return true
  throw new NodeError(
    'CONFLICT',
    `${name} gives another ${thing} now, not the one with the sum ${accept}: review it and accept its sum`,
    {
      next
    }
  )
}
