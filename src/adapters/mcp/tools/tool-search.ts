import type MiniSearch from 'minisearch'
import { isRecord } from '../../../kit/json.js'
import type { ToolDefinition } from '../server/tool.js'
import { searchWords, stemsOf } from './search-words.js'

/** Tools in the result of a search, at most. */
export const MAX_HITS = 5
/** A hit with a smaller part of the best hit's score is left out. */
const CUT_OFF = 0.3
/** Tools that are indexed before other work gets a turn. */
const CHUNK = 200

/** Fields of a tool and the weight of a word in each. */
const BOOST = { name: 2, description: 1, parameters: 0.3, agent: 1, labels: 0.5 } as const

interface Indexed {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly parameters: string
  readonly agent: string
  readonly labels: string
}

/** Ranks tools by the words of a question (BM25). The index follows the list: only changed tools are indexed again. */
export class ToolSearch {
  #index: MiniSearch<Indexed> | null = null
  readonly #indexed = new Map<string, ToolDefinition>()
  /** Updates follow one another. */
  #updating: Promise<void> = Promise.resolve()

  /** The best tools for a question, best first: at most {@link MAX_HITS}, none far behind the best. */
  async find(question: string, tools: readonly ToolDefinition[]): Promise<readonly ToolDefinition[]> {
    this.#updating = this.#updating.then(
      () => this.#update(tools),
      () => this.#update(tools)
    )
    await this.#updating
    const { weights, meanings } = searchWords(question)
    const hits = (
      this.#index?.search([...weights.keys()].join(' '), {
        boost: BOOST,
        boostTerm: (term) => weights.get(term) ?? 1,
        prefix: (term) => term.length > 3,
        weights: { prefix: 0.4, fuzzy: 0.3 }
      }) ?? []
    ).map(({ id, score, queryTerms }) => {
      const met = meanings.filter((meaning) => queryTerms.some((term) => meaning.has(term))).length
      return { id: String(id), score: score * Math.sqrt(met / meanings.length) }
    })
    hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    const least = (hits[0]?.score ?? 0) * CUT_OFF
    return hits
      .slice(0, MAX_HITS)
      .filter(({ score }) => score >= least)
      .flatMap(({ id }) => this.#indexed.get(id) ?? [])
  }

  async #update(tools: readonly ToolDefinition[]): Promise<void> {
    // Loaded by the first search: most nodes list all of their tools.
    const index = (this.#index ??= await newIndex())
    const next = new Map(tools.map((tool) => [tool.name, tool]))
    for (const [name, tool] of this.#indexed) {
      if (next.get(name) === tool) continue
      index.discard(name)
      this.#indexed.delete(name)
    }
    const added = [...next.values()].filter(({ name }) => !this.#indexed.has(name))
    for (const tool of added) this.#indexed.set(tool.name, tool)
    await index.addAllAsync(added.map(indexed), { chunkSize: CHUNK })
  }
}

async function newIndex(): Promise<MiniSearch<Indexed>> {
  const { default: Index } = await import('minisearch')
  return new Index<Indexed>({
    fields: Object.keys(BOOST),
    tokenize: (text) => [...stemsOf(text)],
    processTerm: (term) => term,
    searchOptions: { tokenize: (text) => text.split(' ') }
  })
}

function indexed(definition: ToolDefinition): Indexed {
  const { name, description, purpose, inputSchema, source = '', labels = [], nodeArgument } = definition
  const { properties } = inputSchema
  const nodes = Array.isArray(nodeArgument?.schema['enum']) ? nodeArgument.schema['enum'] : []
  return {
    id: name,
    name: name.slice(name.lastIndexOf('.') + 1),
    description: purpose ?? description,
    parameters: isRecord(properties) ? Object.keys(properties).join(' ') : '',
    agent: [source, ...nodes].join(' '),
    labels: labels.join(' ')
  }
}
