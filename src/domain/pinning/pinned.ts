import { NodeError } from '../../kit/errors.js'

/** Who put something into force: the config that names its sha256, the first sight of it, or a person who looked at it. */
export type PinnedBy = 'config' | 'first-sight' | 'accepted'

/** What others say of themselves and is in force, with who put it there. */
export type Kept<T> = T & { readonly by: PinnedBy }

/** What the home has of it: `lost` is one that was there and cannot be read, so that nothing is trusted at first sight again. */
export type Remembered<T> = { readonly kind: 'none' | 'lost' } | { readonly kind: 'kept'; readonly accepted: Kept<T> }

/** What is pinned, and by what. */
export interface PinRules<T> {
  /** sha256 of the only thing that may be in force; null: the one seen first. */
  readonly pin: string | null
  hash(value: T): string
  /** Nothing to trust: whoever comes up slowly would be pinned to it. */
  isNothing(value: T): boolean
}

/** Something that others may change at any time, and that a person relies on: what is seen first is in force until a person accepts another. */
export class Pinned<T> {
  readonly #rules: PinRules<T>
  #accepted: Kept<T> | null = null
  #seen: T | null = null
  #isLost = false

  constructor(rules: PinRules<T>) {
    this.#rules = rules
  }

  /** Begins with what the home has of it. */
  restore(remembered: Remembered<T>): void {
    this.#isLost = remembered.kind === 'lost'
    if (remembered.kind === 'kept' && this.#isPinned(remembered.accepted)) this.#accepted = remembered.accepted
  }

  /** Takes what is seen now. Gives what is to be kept when it comes into force by itself, else null. */
  take(value: T): Kept<T> | null {
    this.#seen = value
    const { pin, isNothing } = this.#rules
    if (pin !== null) return this.#isPinned(value) && this.isPending ? this.#accept('config') : null
    return this.#accepted === null && !this.#isLost && !isNothing(value) ? this.#accept('first-sight') : null
  }

  /** Puts into force what a person accepted. */
  accept(accepted: Kept<T>): void {
    this.#isLost = false
    this.#accepted = accepted
  }

  /** What was seen last; null: nothing yet. */
  get seen(): T | null {
    return this.#seen
  }

  /** What is in force; null: nothing yet. */
  get accepted(): Kept<T> | null {
    return this.#accepted
  }

  /** Is what was seen last something else than what is in force, or does nobody know what that was? */
  get isPending(): boolean {
    if (this.#seen === null) return false
    return this.#isLost || this.#accepted === null || this.#rules.hash(this.#accepted) !== this.#rules.hash(this.#seen)
  }

  /** sha256 of what is in force, and who put it there; null while there is nothing. */
  pinned(): { readonly hash: string; readonly by: PinnedBy } | null {
    return this.#accepted === null ? null : { hash: this.#rules.hash(this.#accepted), by: this.#accepted.by }
  }

  /** What was in force was lost, so that what is seen waits for a person. */
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

/** What a person wants to be put into force, and what there is. */
export interface Acceptance {
  /** Of the server or agent. */
  readonly name: string
  /** Where the config pins it: `mcp.servers.<name>.pin`. */
  readonly setting: string
  /** What it is: `tool list`, `card`. */
  readonly thing: string
  /** sha256 that the person looked at. */
  readonly accept: string
  readonly pin: string | null
  /** sha256 of what waits; null: nothing does. */
  readonly pending: string | null
  /** sha256 of what is in force. */
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
  throw new NodeError('CONFLICT', `${name} does not give the ${thing} with the sum ${accept} now: look at what it gives, and accept that`, {
    next
  })
}
