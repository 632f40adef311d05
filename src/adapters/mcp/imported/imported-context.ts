import { isToolContent } from '../../../domain/task/tool-content.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { ImportCalls } from '../../../ports/imports.js'
import { CONTEXT_METHODS, MAX_WATCH_URIS } from './context-capability.js'
import type { ContextConnection, ReadMethod, ReadRun } from './context-connection.js'
import { type ContextIndex, indexHash, NO_CONTEXT } from './context-index.js'
import { ContextWatches } from './context-watches.js'
import { CARD_INSTRUCTIONS, type OfferedContext } from './imported-card.js'
import { failedCall, ImportedFault } from './imported-fault.js'
import { outcomeOf } from './imported-result.js'

/** How long a call waits for a server that comes up, in milliseconds. */
const READY_WAIT_MS = 10_000

/** A connection with resources and prompts. */
interface ContextLink {
  readonly context: ContextConnection
}

/** How one call reaches the server, and its end. */
export interface ContextCall extends ReadRun {
  readonly link: ImportCalls<ContextLink>
  readonly signal: AbortSignal
}

/** Dependencies of {@link ImportedContext}. */
export interface ImportedContextDeps {
  /** The server's name. */
  readonly name: string
  readonly maxOutputBytes: number
  readonly clock: Clock
}

/** Resources, prompts and completions of an imported server, for MCP clients here and on other nodes. */
export class ImportedContext {
  readonly #deps: ImportedContextDeps
  readonly #watches: ContextWatches
  #index: ContextIndex = NO_CONTEXT

  constructor(deps: ImportedContextDeps) {
    this.#deps = deps
    this.#watches = new ContextWatches(deps.clock)
  }

  /** The lists that were read last. */
  get index(): ContextIndex {
    return this.#index
  }

  /** The server gave these lists now. */
  take(index: ContextIndex): void {
    this.#index = index
    this.#watches.prune()
  }

  /** The index with the instructions in force; null: nothing that a card does not hold. */
  offered(instructions: string): OfferedContext | null {
    const index = { ...this.#index, instructions }
    const { resources, templates, prompts } = index
    const isNothing = resources.length + templates.length + prompts.length === 0
    return isNothing && instructions.length <= CARD_INSTRUCTIONS ? null : { index, hash: indexHash(index) }
  }

  /** Runs one of {@link CONTEXT_METHODS}. Never rejects. `offered`: the index that the card stands for. */
  async call(
    { input, peer }: Pick<AgentTask, 'input' | 'peer'>,
    call: ContextCall,
    offered: ContextIndex
  ): Promise<AgentOutcome> {
    const { method, params = {} } = isRecord(input) ? input : {}
    if (!isRecord(params)) return refused('params must be an object')
    switch (CONTEXT_METHODS.find((one) => one === method)) {
      case 'list':
        return { ok: true, result: offered }
      case 'read':
        return this.#judged(await this.#asked('resources/read', only(params, 'uri'), call), contentsOf)
      case 'prompt':
        return this.#judged(await this.#asked('prompts/get', only(params, 'name', 'arguments'), call), messagesOf)
      case 'complete':
        return this.#judged(
          await this.#asked('completion/complete', only(params, 'ref', 'argument', 'context'), call),
          completionOf
        )
      case 'watch':
        return await this.#watched(params, peer ?? '', call)
      default:
        return refused(`method must be one of ${CONTEXT_METHODS.join(', ')}`)
    }
  }

  async #watched(params: Readonly<Record<string, unknown>>, peer: string, call: ContextCall): Promise<AgentOutcome> {
    const given: unknown = params['uris']
    const uris = Array.isArray(given) ? (given as readonly unknown[]).filter((uri) => typeof uri === 'string') : []
    if (uris.length > MAX_WATCH_URIS) return refused(`at most ${MAX_WATCH_URIS} uris`)
    const answer = await this.#try(call, (context) => this.#watches.watch({ context, peer, uris }))
    return answer instanceof ImportedFault
      ? failedCall(this.#deps.name, answer)
      : { ok: true, result: { revisions: answer } }
  }

  /** Only reads, so it is asked again when the session was lost. */
  async #asked(
    method: ReadMethod,
    params: Record<string, unknown>,
    call: ContextCall
  ): Promise<Record<string, unknown> | ImportedFault> {
    const ask = async (): Promise<unknown> => await this.#try(call, (context) => context.read(method, params, call))
    const first = await ask()
    const isLost = first instanceof ImportedFault && first.kind === 'session' && !call.signal.aborted
    const answer = isLost ? await ask() : first
    if (answer instanceof ImportedFault) return answer
    return isRecord(answer) ? answer : new ImportedFault('answered', 'its answer is no object')
  }

  async #try<T>(
    { link, signal }: ContextCall,
    run: (context: ContextConnection) => Promise<T>
  ): Promise<T | ImportedFault> {
    const connection = await link.ready(READY_WAIT_MS, signal)
    if (typeof connection === 'string') return new ImportedFault('unsent', connection)
    const end = link.calling()
    try {
      return await run(connection.context)
    } catch (error) {
      const fault = error instanceof ImportedFault ? error : new ImportedFault('unknown', messageOf(error))
      if (signal.aborted || fault.kind === 'unknown') link.doubt()
      return fault
    } finally {
      end()
    }
  }

  #judged(
    answer: Record<string, unknown> | ImportedFault,
    resultOf: (answer: Record<string, unknown>) => object | null
  ): AgentOutcome {
    if (answer instanceof ImportedFault) return failedCall(this.#deps.name, answer)
    const result = resultOf(answer)
    if (result === null)
      return {
        ok: false,
        code: 'INVALID_OUTPUT',
        message: `the answer of the MCP server ${this.#deps.name} is invalid`
      }
    return outcomeOf(result, this.#deps.maxOutputBytes)
  }
}

function refused(message: string): AgentOutcome {
  return { ok: false, code: 'TASK_FAILED', message, retryable: false }
}

function only(params: Readonly<Record<string, unknown>>, ...names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])))
}

/** Contents of a resource as embedded resources; null: they are none. */
function contentsOf({ contents }: Record<string, unknown>): object | null {
  if (!Array.isArray(contents)) return null
  const result = { content: (contents as readonly unknown[]).map((resource) => ({ type: 'resource', resource })) }
  return isToolContent(result) ? result : null
}

/** Messages of a prompt: their contents, and their roles beside them; null: they are none. */
function messagesOf({ description, messages }: Record<string, unknown>): object | null {
  if (!Array.isArray(messages)) return null
  const all = (messages as readonly unknown[]).map((one) => (isRecord(one) ? one : {}))
  const roles = all.map(({ role }) => role)
  const about = typeof description === 'string' ? { description } : {}
  const result = { content: all.map(({ content }) => content), structuredContent: { roles, ...about } }
  return isToolContent(result) && roles.every((role) => role === 'user' || role === 'assistant') ? result : null
}

function completionOf({ completion }: Record<string, unknown>): object | null {
  if (!isRecord(completion) || !Array.isArray(completion['values'])) return null
  const { values, total, hasMore } = completion
  const structuredContent = {
    values: (values as readonly unknown[]).filter((one) => typeof one === 'string'),
    ...(typeof total === 'number' ? { total } : {}),
    ...(typeof hasMore === 'boolean' ? { hasMore } : {})
  }
  return { content: [], structuredContent }
}
