import { nearest } from '../../../kit/text.js'
import { PublishedNames, publishedName } from '../tools/published-names.js'
import type { RegisteredTool, ToolDefinition, ToolSource } from './tool.js'

/** Names suggested for an unknown tool. */
const MAX_HINTS = 10

/** A tool and the name that clients see. */
export interface PublishedTool {
  readonly name: string
  readonly definition: ToolDefinition
}

/**
 * All tools of several sources under one list of published names. Of two with the same canonical name the earlier
 * source's counts.
 */
export class ToolCatalog {
  readonly #sources: readonly ToolSource[]
  readonly #ends: (() => void)[] = []
  #listed: readonly PublishedTool[] | null = null
  #change = 0

  constructor(sources: readonly ToolSource[]) {
    this.#sources = sources
    // A list is kept only while every source says when it changes.
    if (sources.every((source) => source.onChange !== undefined)) this.#ends.push(this.onChange(() => this.#changed()))
    else this.#change = Number.NaN
  }

  /** Sorted by published name, in the order of UTF-16 units. */
  async list(): Promise<readonly PublishedTool[]> {
    if (this.#listed !== null) return this.#listed
    const at = this.#change
    const lists = await Promise.all(this.#sources.map(async (source) => await source.list()))
    const listed = published(lists.flat())
    // NaN never equals itself, and a change meanwhile has raised the number.
    if (at === this.#change) this.#listed = listed
    return listed
  }

  /**
   * By canonical or published name, else by an alias; undefined also for a published name that two sources' tools would
   * share without a suffix.
   */
  find(name: string): RegisteredTool | undefined | Promise<RegisteredTool | undefined> {
    const [first] = this.#sources
    const got = first?.get(name)
    // Tools of the first source need no wait: most calls are of these.
    return got !== undefined && !(got instanceof Promise) && got.definition.name === name ? got : this.#search(name)
  }

  async #search(name: string): Promise<RegisteredTool | undefined> {
    const found: RegisteredTool[] = []
    for (const source of this.#sources) {
      const got = source.get(name)
      const tool = got instanceof Promise ? await got : got
      if (tool === undefined) continue
      if (tool.definition.name === name) return tool
      if (found.every((one) => one.definition.name !== tool.definition.name)) found.push(tool)
    }
    if (found.length > 0) return found.length === 1 ? found[0] : undefined
    for (const source of this.#sources) {
      const tool = await source.alias?.(name)
      if (tool !== undefined) return tool
    }
    return undefined
  }

  /** Does a tool have that name, or one that clients would see as the same? */
  async isTaken(name: string): Promise<boolean> {
    for (const source of this.#sources)
      for (const one of [name, publishedName(name)]) {
        const got = source.get(one)
        if ((got instanceof Promise ? await got : got) !== undefined) return true
      }
    return false
  }

  /** Suggestions for an unknown name: the names nearest to it, and the first of all. */
  async hint(name: string): Promise<Readonly<Record<string, unknown>>> {
    const names = (await this.list()).map((one) => one.name)
    const similar = nearest(name, names)
    return { didYouMean: similar, available: names.slice(0, MAX_HINTS), total: names.length }
  }

  /** Calls back when the list of a source changes; returns the function that ends it. */
  onChange(changed: () => void): () => void {
    const ends = this.#sources.map((source) => source.onChange?.(changed))
    return () => {
      for (const end of ends) end?.()
    }
  }

  /** Stops listening to its sources: from now on the list is made at each call. */
  close(): void {
    for (const end of this.#ends.splice(0)) end()
    this.#listed = null
    this.#change = Number.NaN
  }

  #changed(): void {
    this.#change++
    this.#listed = null
  }
}

function published(definitions: readonly ToolDefinition[]): readonly PublishedTool[] {
  const byName = new Map<string, ToolDefinition>()
  for (const one of definitions) if (!byName.has(one.name)) byName.set(one.name, one)
  const names = new PublishedNames()
  for (const name of byName.keys()) names.add(name)
  const listed = new Map<string, ToolDefinition>()
  for (const [name, definition] of byName) {
    const shownAs = names.published(name)
    // Two equal suffixed names can only be made on purpose: only one of the tools is shown.
    if (!listed.has(shownAs)) listed.set(shownAs, definition)
  }
  return [...listed.keys()].sort().map((name) => ({ name, definition: listed.get(name) as ToolDefinition }))
}
