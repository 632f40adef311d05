import type { ToolListChange } from '../../ports/imported-tools.js'
import { allowedNames, changeOf, type ImportedList, type ImportedTool, listHash } from './imported-list.js'
import type { Accepted, Remembered } from './imported-pin.js'

/** What the config says of the list of a server. */
export interface OfferRules {
  /** Globs; null: every tool. */
  readonly tools: readonly string[] | null
  /** sha256 of the only list that is offered; null: the one seen first. */
  readonly pin: string | null
}

/** A list that the server gives and that is not in force. */
export interface Pending {
  readonly hash: string
  readonly change: ToolListChange
}

/**
 * Which tools of a server are offered. The list seen first (or the one that the config pins) is in force until a person accepts
 * another; of it those are offered that the server still has. The server's own list decides nothing but that.
 */
export class ImportedOffer {
  readonly #rules: OfferRules
  readonly #isAllowed: (name: string) => boolean
  #accepted: Accepted | null = null
  #listed: ImportedList | null = null
  #isLost = false

  constructor(rules: OfferRules) {
    this.#rules = rules
    this.#isAllowed = allowedNames(rules.tools)
  }

  /** Begins with what the home has of it. */
  restore(remembered: Remembered): void {
    this.#isLost = remembered.kind === 'lost'
    if (remembered.kind === 'kept' && this.#isPinned(remembered.accepted.tools)) this.#accepted = remembered.accepted
  }

  /** Takes what the server lists now. Gives what is to be kept when it comes into force by itself, else null. */
  take(list: ImportedList): Accepted | null {
    this.#listed = list
    const { pin } = this.#rules
    if (pin !== null) return this.#isPinned(list.tools) && this.pending() !== null ? this.#accept('config') : null
    // Nothing to trust in an empty list: a server that comes up slowly would be pinned to it.
    return this.#accepted === null && !this.#isLost && list.tools.length > 0 ? this.#accept('first-sight') : null
  }

  /** What the server lists now, as it is kept once a person has accepted it. */
  listed(): Accepted {
    return { tools: this.#listed?.tools ?? [], by: 'accepted' }
  }

  /** Puts a list into force that a person accepted. */
  accept(accepted: Accepted): void {
    this.#isLost = false
    this.#accepted = accepted
  }

  /** What the server lists now, where that is not what is in force or nobody knows; null: it is, or nothing was listed yet. */
  pending(): Pending | null {
    if (this.#listed === null) return null
    const next = this.#allowed(this.#listed.tools)
    const change = changeOf(this.#allowed(this.#accepted?.tools ?? []), next)
    if (change === null && !this.#isLost) return null
    return { hash: listHash(next), change: change ?? { added: [], removed: [], changed: [] } }
  }

  /** Tools that may be called. */
  offered(): readonly ImportedTool[] {
    const there = this.#listed === null ? null : new Set(this.#listed.tools.map(({ name }) => name))
    return this.#allowed(this.#accepted?.tools ?? []).filter(({ name }) => there === null || there.has(name))
  }

  /** Tools that are known and not offered, each with the reason. */
  withheld(): readonly {
    readonly name: string
    readonly description: string
    readonly inputSchema: ImportedTool['inputSchema']
    readonly reason: string
  }[] {
    const offered = new Set(this.offered().map(({ name }) => name))
    const known = new Map([...(this.#accepted?.tools ?? []), ...(this.#listed?.tools ?? [])].map((tool) => [tool.name, tool]))
    const there = this.#listed === null ? null : new Set(this.#listed.tools.map(({ name }) => name))
    const withheld = [...known.values()].flatMap(({ name, description, inputSchema }) => {
      if (offered.has(name)) return []
      const isGone = there !== null && !there.has(name)
      const reason = !this.#isAllowed(name) ? 'not among `tools` of the config' : isGone ? 'the server has it no more' : 'not accepted yet'
      return [{ name, description, inputSchema, reason }]
    })
    return [...withheld, ...(this.#listed?.faults ?? []).map(({ name, reason }) => ({ name, description: '', inputSchema: {}, reason }))]
  }

  /** sha256 of the list in force, and who put it there; null while there is none. */
  pinned(): { readonly hash: string; readonly by: Accepted['by'] } | null {
    if (this.#accepted === null) return null
    return { hash: listHash(this.#allowed(this.#accepted.tools)), by: this.#accepted.by }
  }

  /** The list that was in force was lost, so that the one of the server waits for a person. */
  get isLost(): boolean {
    return this.#isLost
  }

  #accept(by: Accepted['by']): Accepted {
    return (this.#accepted = { tools: this.#listed?.tools ?? [], by })
  }

  #isPinned(tools: readonly ImportedTool[]): boolean {
    return this.#rules.pin === null || this.#rules.pin === listHash(this.#allowed(tools))
  }

  #allowed(tools: readonly ImportedTool[]): readonly ImportedTool[] {
    return tools.filter(({ name }) => this.#isAllowed(name))
  }
}
