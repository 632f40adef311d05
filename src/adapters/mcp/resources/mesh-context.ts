import type { CallToolResult } from '@modelcontextprotocol/server'
import { Abort } from '../../../kit/abort.js'
import { type AbortSignalLike, type Timer, wait } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { allowedNames } from '../../../kit/glob.js'
import type { AgentInfo } from '../../../ports/node-api.js'
import { contextId, type ContextMethod, servedContext } from '../imported/context-capability.js'
import { type ContextIndex, readIndex } from '../imported/context-index.js'
import { APPROVAL_WAIT, callAgent, callForContent, type ToolCallDeps } from '../tools/mesh-call.js'
import type { CallContext } from '../tools/asking-calls.js'
import { ClientAsk, type ClientSide } from '../tools/client-ask.js'
import { McpContent } from '../tools/mcp-content.js'
import { namesOf } from '../tools/tool-aliases.js'
import { agentChanges, type FollowDeps, SharedChanges } from './followed-watch.js'

/** Servers with resources or prompts that one caller sees, and their indexes in bytes, each at most. */
const MAX_SERVERS = 128
const MAX_INDEXES_BYTES = 16_777_216
/** How long a list waits for indexes of other nodes, in milliseconds. */
const PATIENCE_MS = 5000
/** Shortest and longest time after which an index that could not be had is asked for again, in milliseconds. */
const MIN_RETRY_MS = 5000
const MAX_RETRY_MS = 320_000
/** An index is fetched again after this multiple of the time that the last one took; until then the last one counts. */
const PAUSE_FACTOR = 4

/** Dependencies of {@link MeshContext}. */
export interface MeshContextDeps extends FollowDeps, ToolCallDeps {
  /** Globs of the tools that the client chose; a server without a chosen tool offers nothing. Absent or null: all. */
  readonly chosen?: readonly string[] | null
}

/** An agent of an MCP server with resources or prompts. */
export interface ServerAgent {
  readonly agent: AgentInfo
  readonly index: ContextIndex
}

/** One question to a server. */
export interface ContextQuestion {
  /** `id@node` of its agent. */
  readonly address: string
  readonly method: ContextMethod
  readonly params: Readonly<Record<string, unknown>>
  readonly signal: AbortSignalLike
}

interface KnownIndex {
  /** Of the agent's card when it was looked at. */
  revision: number
  /** The hash on the card; null: the agent serves none. */
  hash: string | null
  /** The index that was fetched last, and its hash; null: none yet. */
  index: ContextIndex | null
  fetched: string | null
  bytes: number
  /** Monotonic milliseconds before which it is not asked for again. */
  retryAt: number
  failures: number
}

/** In place of a list that a person would have to allow. */
const ASKS_PERSON = Symbol('asks a person')

const UNKNOWN: KnownIndex = {
  revision: -1,
  hash: null,
  index: null,
  fetched: null,
  bytes: 0,
  retryAt: Number.NEGATIVE_INFINITY,
  failures: 0
}

/**
 * Resources and prompts of the MCP servers that nodes import, as one caller sees them: the agents are asked as that
 * caller, so their nodes' rules decide. An index is fetched once for each hash that a card names.
 */
export class MeshContext {
  readonly #deps: MeshContextDeps
  readonly #fits: (name: string) => boolean
  readonly #known = new Map<string, KnownIndex>()
  readonly #changes: SharedChanges<void>
  #looking: Promise<readonly ServerAgent[]> | null = null
  /** Tells listeners to look again after a failure. */
  #again: Timer | null = null
  #tell: () => void = () => {}

  constructor(deps: MeshContextDeps) {
    this.#deps = deps
    this.#fits = allowedNames(deps.chosen ?? null)
    const agents = agentChanges(deps, {})
    this.#changes = new SharedChanges((tell) => {
      this.#tell = () => tell()
      const end = agents.on(() => tell())
      return () => {
        this.#tell = () => {}
        deps.clock.clear(this.#again)
        this.#again = null
        end()
      }
    })
  }

  /** Calls back when agents changed, so that {@link servers} may differ; returns the function that ends it. */
  onChange(changed: () => void): () => void {
    return this.#changes.on(changed)
  }

  /** The agents that are online, each with its index; without those that refuse the caller or do not answer in time. */
  async servers(): Promise<readonly ServerAgent[]> {
    // Lists are read together: they share one look.
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return await this.#looking
  }

  /** Is it the address of a server's agent, online or not, as of the last look? */
  isServer(address: string): boolean {
    return (this.#known.get(address)?.hash ?? null) !== null
  }

  /** Asks a server for content of MCP. @throws NodeError of the refused or failed call */
  async content({ address, method, params, signal }: ContextQuestion): Promise<CallToolResult> {
    const asked = await this.#content({ address, method, params }, { abortSignal: signal, progress: () => {} })
    return contentIn(asked, address)
  }

  /** The same for a client that the server may ask something first. @throws NodeError of the refused or failed call */
  async contentFor(question: ContextQuestion, client: ClientSide): Promise<CallToolResult | ClientAsk> {
    const { api, asking } = this.#deps
    const { address, signal: abortSignal } = question
    const context = { abortSignal: abortSignal as AbortSignal, client, lines: null, progress: () => {} }
    const start = (followed: CallContext): Promise<unknown> => this.#content(question, followed)
    const asked = await (asking === undefined ? start(context) : asking(api, context, start))
    return asked instanceof ClientAsk ? asked : contentIn(asked, address)
  }

  /** Asks a server for a plain value. @throws NodeError of the refused or failed call */
  async value({ address, method, params, signal }: ContextQuestion): Promise<unknown> {
    const call = callOf({ address, method, params })
    return await callAgent(this.#deps, call, { abortSignal: signal, progress: () => {} })
  }

  #isChosen(agent: AgentInfo): boolean {
    const { id, node, capabilities, origin } = agent
    return capabilities.some((capability) => {
      const name = origin === 'local' ? capability : `${id}@${node.name}.${capability}`
      return namesOf({ name, capability, agent }).some(this.#fits)
    })
  }

  async #content(question: Omit<ContextQuestion, 'signal'>, context: CallContext): Promise<unknown> {
    return await callForContent(this.#deps, callOf(question), context)
  }

  async #look(): Promise<readonly ServerAgent[]> {
    const { agents } = await this.#deps.api.call('agents.list', {})
    const visible = new Set(agents.map(({ address }) => address))
    for (const address of this.#known.keys()) if (!visible.has(address)) this.#known.delete(address)
    const all = agents.filter(
      (agent) => agent.status !== 'offline' && agent.capabilities.includes(contextId(agent.id)) && this.#isChosen(agent)
    )
    const serving = inTurns(all).slice(0, MAX_SERVERS)
    await this.#fetch(serving)
    return serving.flatMap((agent) => {
      const { index, hash } = this.#known.get(agent.address) ?? UNKNOWN
      return index === null || hash === null ? [] : [{ agent, index }]
    })
  }

  /** Fetches missing indexes, for a bounded time. */
  async #fetch(serving: readonly AgentInfo[]): Promise<void> {
    const { clock } = this.#deps
    const ended = new Abort()
    const fetches = serving.map((agent) => this.#update(agent, ended))
    await Promise.race([Promise.all(fetches), wait(clock, PATIENCE_MS, ended)])
    ended.abort()
  }

  async #update(agent: AgentInfo, signal: AbortSignalLike): Promise<void> {
    const { address, revision, id } = agent
    const known = this.#known.get(address) ?? { ...UNKNOWN }
    this.#known.set(address, known)
    try {
      if (known.revision !== revision) {
        const detail = await this.#deps.api.call('agents.show', { agent: address })
        const hash = detail.capabilities.map((one) => servedContext(id, one)).find((one) => one !== null) ?? null
        // A card that always names another list is asked no sooner for it.
        Object.assign(known, { hash, revision: detail.revision })
      }
      if (known.hash === null || known.fetched === known.hash) return
      const { clock } = this.#deps
      const from = clock.monotonic()
      if (known.retryAt > from) return this.#lookAfter(known.retryAt - from)
      await this.#read(agent, known, signal)
      const now = clock.monotonic()
      known.retryAt = now + PAUSE_FACTOR * (now - from)
    } catch {
      // It went away in between, is busy, or refuses this caller.
      this.#failed(known)
    }
  }

  /** Asks nothing that the rules of this node refuse: each refusal would be audited. */
  async #read({ address, id }: AgentInfo, known: KnownIndex, signal: AbortSignalLike): Promise<void> {
    const { hash } = known
    const { refused } = await this.#deps.api.call('message.judge', { agent: address, capabilities: [contextId(id)] })
    if (refused.length > 0) return void Object.assign(known, { index: null, fetched: null, bytes: 0 })
    const answer = await this.#listed(address, signal)
    // A list is no reason to ask a person again and again: it is asked for when the card names another.
    if (answer === ASKS_PERSON) return void Object.assign(known, { index: null, fetched: hash, bytes: 0 })
    const index = await readIndex(answer)
    const bytes = Buffer.byteLength(JSON.stringify(index))
    const others = [...this.#known.values()].reduce((sum, one) => sum + (one === known ? 0 : one.bytes), 0)
    const isFit = others + bytes <= MAX_INDEXES_BYTES
    Object.assign(known, { fetched: hash, failures: 0, ...(isFit ? { index, bytes } : { index: null, bytes: 0 }) })
  }

  async #listed(address: string, signal: AbortSignalLike): Promise<unknown> {
    const stop = new Abort()
    let isAsked = false
    const abort = (): void => stop.abort()
    signal.addEventListener('abort', abort)
    const progress = ({ message = '' }: { readonly message?: string }): void => {
      if (!message.startsWith(APPROVAL_WAIT)) return
      isAsked = true
      abort()
    }
    try {
      const call = callOf({ address, method: 'list', params: {} })
      return await callAgent(this.#deps, call, { abortSignal: stop, progress })
    } catch (error) {
      if (isAsked) return ASKS_PERSON
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  #failed(known: KnownIndex): void {
    const { clock } = this.#deps
    const delay = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** known.failures++)
    known.retryAt = clock.monotonic() + delay
    this.#lookAfter(delay)
  }

  #lookAfter(delayMs: number): void {
    this.#again ??= this.#deps.clock.after(delayMs, () => {
      this.#again = null
      this.#tell()
    })
  }
}

/** The agents of this node, then one of each node in turn, so that a node with many agents hides no other node. */
function inTurns(agents: readonly AgentInfo[]): readonly AgentInfo[] {
  const counts = new Map<string, number>()
  const turns = agents.map((agent) => {
    const turn = counts.get(agent.node.id) ?? 0
    counts.set(agent.node.id, turn + 1)
    return { agent, turn: agent.origin === 'local' ? -1 : turn }
  })
  return turns.sort((a, b) => a.turn - b.turn).map(({ agent }) => agent)
}

function contentIn(answer: unknown, address: string): CallToolResult {
  if (!(answer instanceof McpContent)) throw new NodeError('INVALID_OUTPUT', `${address} gave no content`)
  if (answer.failure !== null) throw answer.failure
  return answer.result
}

function callOf({ address, method, params }: Pick<ContextQuestion, 'address' | 'method' | 'params'>): {
  readonly agent: string
  readonly capability: string
  readonly input: unknown
  readonly timeoutMs?: number
} {
  const id = address.slice(0, address.lastIndexOf('@'))
  const isList = method === 'list'
  const call = { agent: address, capability: contextId(id), input: { method, params } }
  return isList ? { ...call, timeoutMs: PATIENCE_MS } : call
}
