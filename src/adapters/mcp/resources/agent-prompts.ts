import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import { NodeError } from '../../../kit/errors.js'
import type { AgentPrompt } from '../../../ports/agent-runtime.js'
import type { NodeApi } from '../../../ports/node-api.js'
import { agentChanges, type FollowDeps } from './followed-watch.js'
import { ListChanges } from './list-changes.js'
import type { PromptSource } from './prompt-source.js'
import { PublishedNames } from '../tools/published-names.js'

/** The prompts in the files of this node's agents: `agent.prompt`, published as tools are. */
export class AgentPrompts implements PromptSource {
  readonly #api: NodeApi
  readonly #changes: ListChanges

  constructor(deps: FollowDeps) {
    this.#api = deps.api
    const agents = agentChanges(deps, { origin: 'local' })
    this.#changes = new ListChanges({ onChange: (changed) => agents.on(changed) }, async () => [
      ...(await this.#read()).prompts
    ])
  }

  onChange(changed: () => void): () => void {
    return this.#changes.on(changed)
  }

  async list(): Promise<readonly Prompt[]> {
    const { prompts, names } = await this.#read()
    const shown = [...prompts].map(([canonical, { description, arguments: given }]) => ({
      name: names.published(canonical),
      description,
      arguments: given.map((one) => ({ ...one }))
    }))
    return shown.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async get(name: string, args: Readonly<Record<string, string>>): Promise<GetPromptResult | undefined> {
    const { prompts, names } = await this.#read()
    const prompt = prompts.get(names.resolve(name) ?? name)
    if (prompt === undefined) return undefined
    const text = renderPrompt(prompt, args)
    return { description: prompt.description, messages: [{ role: 'user', content: { type: 'text', text } }] }
  }

  async #read(): Promise<{ readonly prompts: ReadonlyMap<string, AgentPrompt>; readonly names: PublishedNames }> {
    const { agents } = await this.#api.call('agents.list', { origin: 'local' })
    const [prompts, names] = [new Map<string, AgentPrompt>(), new PublishedNames()]
    for (const { address, id } of agents) {
      const detail = await this.#api.call('agents.show', { agent: address }).catch(() => null)
      for (const prompt of detail?.prompts ?? []) {
        prompts.set(`${id}.${prompt.name}`, prompt)
        names.add(`${id}.${prompt.name}`)
      }
    }
    return { prompts, names }
  }
}

/**
 * Replaces every `{name}` of a prompt's arguments by its value, in one pass. Braces inside values stay as they are, and
 * so do braces of unknown names. An optional argument without a value becomes empty.
 * @throws NodeError INVALID_INPUT when a required argument is missing
 */
export function renderPrompt(
  { name, arguments: known, template }: AgentPrompt,
  args: Readonly<Record<string, string>>
): string {
  const missing = known.filter((one) => one.required && !Object.hasOwn(args, one.name)).map((one) => one.name)
  if (missing.length > 0)
    throw new NodeError('INVALID_INPUT', `the prompt ${name} needs ${missing.join(', ')}`, { data: { missing } })
  const names = new Set(known.map((one) => one.name))
  return template.replaceAll(/\{([A-Za-z0-9_-]{1,64})\}/g, (whole, word: string) => {
    if (!names.has(word)) return whole
    return Object.hasOwn(args, word) ? String(args[word]) : ''
  })
}
