import { Pinned } from '../../../domain/pinning/pinned.js'
import { allowedNames } from '../../../kit/glob.js'
import type { ToolListChange } from '../../../ports/imported-tools.js'
import { changeOf, type ImportedList, type ImportedTool, listHash } from './imported-list.js'
import type { Accepted, PinnedList, ToolList } from './imported-pin.js'

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
  readonly #isAllowed: (name: string) => boolean
  readonly #pinned: Pinned<ToolList>
  #listed: ImportedList | null = null

  constructor({ tools, pin }: OfferRules) {
    this.#isAllowed = allowedNames(tools)
    this.#pinned = new Pinned({
      pin,
      hash: (list) => listHash(this.#allowed(list.tools)),
      isNothing: (list) => list.tools.length === 0
    })
  }

  /** Begins with what the home has of it. */
  restore(remembered: PinnedList): void {
    this.#pinned.restore(remembered)
  }

  /** Takes what the server lists now. Gives what is to be kept when it comes into force by itself, else null. */
  take(list: ImportedList): Accepted | null {
    this.#listed = list
    return this.#pinned.take({ tools: list.tools })
  }

  /** What the server lists now, as it is kept once a person has accepted it. */
  listed(): Accepted {
    return { tools: this.#listed?.tools ?? [], by: 'accepted' }
  }

  /** Puts a list into force that a person accepted. */
  accept(accepted: Accepted): void {
    this.#pinned.accept(accepted)
  }

  /** What the server lists now, where that is not what is in force or nobody knows; null: it is, or nothing was listed yet. */
  pending(): Pending | null {
    const { seen, accepted, isLost } = this.#pinned
    if (seen === null) return null
    const next = this.#allowed(seen.tools)
    const change = changeOf(this.#allowed(accepted?.tools ?? []), next)
    if (change === null && !isLost) return null
    return { hash: listHash(next), change: change ?? { added: [], removed: [], changed: [] } }
  }

  /** Tools that may be called. */
  offered(): readonly ImportedTool[] {
    const there = this.#listed === null ? null : new Set(this.#listed.tools.map(({ name }) => name))
    return this.#allowed(this.#pinned.accepted?.tools ?? []).filter(({ name }) => there === null || there.has(name))
  }

  /** Tools that are known and not offered, each with the reason. */
  withheld(): readonly {
    readonly name: string
    readonly description: string
    readonly inputSchema: ImportedTool['inputSchema']
    readonly reason: string
  }[] {
    const offered = new Set(this.offered().map(({ name }) => name))
    const known = new Map([...(this.#pinned.accepted?.tools ?? []), ...(this.#listed?.tools ?? [])].map((tool) => [tool.name, tool]))
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
    return this.#pinned.pinned()
  }

  /** The list that was in force was lost, so that the one of the server waits for a person. */
  get isLost(): boolean {
    return this.#pinned.isLost
  }

  #allowed(tools: readonly ImportedTool[]): readonly ImportedTool[] {
    return tools.filter(({ name }) => this.#isAllowed(name))
  }
}
