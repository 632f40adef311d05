import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { addressed, type ContextItem } from '../imported/context-index.js'
import { ClientAsk } from '../tools/client-ask.js'
import { PublishedNames } from '../tools/published-names.js'
import { ToolAliases } from '../tools/tool-aliases.js'
import { type Complete, completionIn } from './completing.js'
import { ListChanges } from './list-changes.js'
import type { MeshContext, ServerAgent } from './mesh-context.js'
import type { PromptContext, PromptSource } from './prompt-source.js'

/** Prompts of one list, at most. */
const MAX_PROMPTS = 10_000

/** A prompt of a server. */
interface ServerPrompt {
  /** Canonical: `git.commit`, of another node `git@beta.commit`. */
  readonly name: string
  readonly agent: ServerAgent['agent']
  readonly item: ContextItem
}

/** Prompts of the MCP servers that nodes import, under names and aliases like those of tools. */
export class ServerPrompts implements PromptSource {
  readonly #context: MeshContext
  readonly #changes: ListChanges

  constructor(context: MeshContext) {
    this.#context = context
    this.#changes = new ListChanges(context, () => this.list())
  }

  onChange(changed: () => void): () => void {
    return this.#changes.on(changed)
  }

  async list(): Promise<readonly Prompt[]> {
    const { prompts, names } = await this.#read()
    const all = [...prompts.values()].map(({ name, agent: { address }, item }) => ({
      ...item,
      name: names.published(name),
      description: addressed(item, address)
    }))
    return all.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async get(
    name: string,
    args: Readonly<Record<string, string>>,
    { signal, client }: PromptContext
  ): Promise<GetPromptResult | ClientAsk | undefined> {
    const prompt = await this.#find(name)
    if (prompt === undefined) return undefined
    const { address } = prompt.agent
    const params = { name: prompt.item['name'], arguments: args }
    const answer = await this.#context.contentFor({ address, method: 'prompt', params, signal }, client)
    if (answer instanceof ClientAsk) return answer
    const { content, structuredContent } = answer
    const { roles, description } = isRecord(structuredContent) ? structuredContent : {}
    const messages = content.map((one, at) => {
      const role: unknown = Array.isArray(roles) ? (roles as readonly unknown[])[at] : null
      if (role !== 'user' && role !== 'assistant')
        throw new NodeError('INVALID_OUTPUT', `${address} gave no messages of a prompt`)
      return { role, content: one }
    })
    return { messages, ...(typeof description === 'string' ? { description } : {}) } as GetPromptResult
  }

  readonly complete: Complete = async (name, { argument, value, given }) => {
    const prompt = await this.#find(name)
    if (prompt === undefined) return undefined
    const params = {
      ref: { type: 'ref/prompt', name: prompt.item['name'] },
      argument: { name: argument, value },
      context: { arguments: given }
    }
    const { address } = prompt.agent
    const { signal } = new AbortController()
    return completionIn(await this.#context.value({ address, method: 'complete', params, signal }))
  }

  async #find(name: string): Promise<ServerPrompt | undefined> {
    const { prompts, names } = await this.#read()
    const canonical = names.resolve(name)
    if (canonical !== undefined) return prompts.get(canonical)
    const all = [...prompts.values()]
    const aliases = new ToolAliases(all.map((one) => ({ ...one, capability: String(one.item['name']) })))
    return prompts.get(aliases.resolve(name) ?? '')
  }

  async #read(): Promise<{ readonly prompts: ReadonlyMap<string, ServerPrompt>; readonly names: PublishedNames }> {
    const servers = await this.#context.servers()
    const [prompts, names] = [new Map<string, ServerPrompt>(), new PublishedNames()]
    for (const { agent, index } of servers) {
      for (const item of index.prompts) {
        const of = agent.origin === 'local' ? agent.id : `${agent.id}@${agent.node.name}`
        const name = `${of}.${String(item['name'])}`
        if (prompts.size >= MAX_PROMPTS || prompts.has(name)) continue
        prompts.set(name, { name, agent, item })
        names.add(name)
      }
    }
    return { prompts, names }
  }
}

/** Several sources of prompts as one; of two prompts of one name the earlier source's counts. */
export function joinPrompts(sources: readonly PromptSource[]): PromptSource {
  return {
    list: async () => {
      const all = new Map<string, Prompt>()
      for (const source of sources)
        for (const one of await source.list()) if (!all.has(one.name)) all.set(one.name, one)
      return [...all.values()]
    },
    get: async (name, args, context) => {
      for (const source of sources) {
        const prompt = await source.get(name, args, context)
        if (prompt !== undefined) return prompt
      }
      return undefined
    },
    complete: async (name, completing) => {
      for (const source of sources) {
        const values = await source.complete?.(name, completing)
        if (values !== undefined) return values
      }
      return undefined
    },
    onChange: (changed) => {
      const ends = sources.map((source) => source.onChange?.(changed))
      return () => {
        for (const end of ends) end?.()
      }
    }
  }
}
