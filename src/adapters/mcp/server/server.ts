import {
  type CallToolResult,
  ProtocolError,
  ResourceNotFoundError,
  Server,
  type ServerContext
} from '@modelcontextprotocol/server'
import type { Clock } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import { ASKING, type Elicited, Elicitation } from '../tools/elicitation.js'
import { ClientAsk } from '../tools/client-ask.js'
import { ClientLog } from '../tools/client-log.js'
import { canComplete, serveCompletions } from '../resources/completions.js'
import { correlationIdOf } from './json-rpc.js'
import { ListenedResources } from '../resources/listened-resources.js'
import { pageOf } from './pages.js'
import type { PromptSource } from '../resources/prompt-source.js'
import { progressTo } from './progress.js'
import { publishedTools, type SchemaForm } from '../tools/published-tools.js'
import type { RequestStates } from '../http/request-states.js'
import type { ResourceManager } from '../resources/resource-limits.js'
import type { SizedResult } from '../resources/large-results.js'
import { nameOf, type ResourceSource } from '../resources/resource-source.js'
import type { RunIds } from './run-ids.js'
import { errorFor } from './remote-client.js'
import { JSON_RPC, structuredErrorOf } from './structured-error.js'
import type { ToolLog } from './tool.js'
import type { ToolCatalog } from './tool-catalog.js'
import { ToolPipeline } from './tool-pipeline.js'
import type { OnCompleted } from './tool-record.js'

/** Resources of one client with notifications of changes, at most. */
const MAX_SUBSCRIPTIONS = 1024

/** Dependencies of a server. With a manual clock and ids that count, every answer is the same in each run. */
export interface McpDeps {
  readonly name: string
  readonly version: string
  /** Sent to the client at the handshake: how to use this server. */
  readonly instructions?: string
  readonly clock: Clock
  readonly ids: RunIds
  readonly log: ToolLog
  readonly tools: ToolCatalog
  readonly resources?: ResourceSource
  readonly prompts?: PromptSource
  /** Shared by all servers of the process. */
  readonly limits: ResourceManager
  /** Seals the states of handlers while their client is asked. */
  readonly states: RequestStates
  /** Bounds a result for its client, named as the client does; absent: results stay as they are. */
  readonly fit?: (sized: SizedResult) => CallToolResult
  /** `mcp.schemas`. Default fitted. */
  readonly schemas?: SchemaForm
  /** `tools.defaultTimeoutMs`. */
  readonly defaultTimeoutMs: number
  /** The client has no command line of this node. Default false. */
  readonly isRemote?: boolean
  /** Called with the record of each ended tool call. */
  readonly onCompleted?: OnCompleted
}

/** Awaits a value; a failure becomes an error of the protocol. */
type ProtocolGuard = <T>(given: T | Promise<T>) => Promise<T>

/** A source, and the guard of its answers. */
interface GuardedSource<S> {
  readonly source: S
  readonly guard: ProtocolGuard
}

type Listens = ConstructorParameters<typeof ListenedResources>[1]

/**
 * A server of one connection over the given parts: connect it to a transport, or give it to the SDK from a factory.
 * `listens`: parameters of its `subscriptions/listen` that are open.
 */
export function createMcpServer(deps: McpDeps, era: 'legacy' | 'modern', listens: Listens = () => []): Server {
  const { name, version, instructions, resources, prompts } = deps
  const server = new Server(
    { name, version },
    {
      capabilities: {
        tools: { listChanged: true },
        logging: {},
        ...(canComplete(deps) ? { completions: {} } : {}),
        ...(resources === undefined ? {} : { resources: { listChanged: true, subscribe: true } }),
        ...(prompts === undefined ? {} : { prompts: { listChanged: true } })
      },
      ...(instructions === undefined ? {} : { instructions }),
      inputRequired: ASKING
    }
  )
  const asking = new Elicitation(server, { states: deps.states, era })
  serveTools(server, deps, { asking, log: new ClientLog(server, era) })
  /** The source's URI of each resource, by the URI that the client gave. */
  const subscribed = new Map<string, string>()
  const guard = protocolErrors(deps)
  if (resources !== undefined) serveResources(server, { source: resources, guard }, subscribed)
  if (prompts !== undefined) servePrompts(server, { source: prompts, guard }, asking)
  if (canComplete(deps)) serveCompletions(server, { prompts, resources, complete: guard })
  tellChanges(server, deps, { era, subscribed, listens })
  return server
}

function serveTools(
  server: Server,
  deps: McpDeps,
  { asking, log }: { readonly asking: Elicitation; readonly log: ClientLog }
): void {
  const pipeline = new ToolPipeline(deps)
  const published = publishedTools(deps.tools, deps.schemas ?? 'fitted')
  server.setRequestHandler('tools/list', async ({ params }) => {
    const { items, nextCursor } = pageOf(await published(), params?.cursor)
    return nextCursor === undefined ? { tools: items } : { tools: items, nextCursor }
  })
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }, context) => {
    const { signal, _meta: meta } = context.mcpReq
    const about: Elicited = ['tools/call', name, args]
    const progress = progressTo(context)
    const answer = await pipeline.call({
      name,
      args,
      correlationId: correlationIdOf(meta),
      signal,
      progress: progress.report,
      lines: log.of(context),
      client: asking.client(context, about)
    })
    const pending = progress.beforeAnswer()
    if (pending !== null) await pending
    if (answer instanceof ClientAsk) return asking.ask(answer, about)
    if (deps.fit === undefined) return answer
    const tool = await deps.tools.find(name)
    return deps.fit({
      result: answer,
      client: asking.clientName(context),
      hasSchema: tool?.definition.outputSchema !== undefined
    })
  })
}

function serveResources(
  server: Server,
  { source, guard }: GuardedSource<ResourceSource>,
  subscribed: Map<string, string>
): void {
  server.setRequestHandler('resources/list', async ({ params }) => {
    const { items, nextCursor } = pageOf(await guard(source.list()), params?.cursor)
    return nextCursor === undefined ? { resources: items } : { resources: items, nextCursor }
  })
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [...((await guard(source.templates?.())) ?? [])]
  }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }, { mcpReq }: ServerContext) => {
    const contents = await guard(source.read(uri, mcpReq.signal))
    if (contents === undefined) throw new ResourceNotFoundError(uri)
    return { contents }
  })
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, { mcpReq }: ServerContext) => {
    const name = await guard(nameOf(source, uri, mcpReq.signal))
    if (name === undefined) throw new ResourceNotFoundError(uri)
    if (!subscribed.has(uri) && subscribed.size >= MAX_SUBSCRIPTIONS) {
      throw new ProtocolError(JSON_RPC.INVALID_PARAMS, `at most ${MAX_SUBSCRIPTIONS} resources can be subscribed to`)
    }
    subscribed.set(uri, name)
    return {}
  })
  server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
    subscribed.delete(uri)
    return {}
  })
}

function servePrompts(server: Server, { source, guard }: GuardedSource<PromptSource>, asking: Elicitation): void {
  server.setRequestHandler('prompts/list', async ({ params }) => {
    const { items, nextCursor } = pageOf(await guard(source.list()), params?.cursor)
    return nextCursor === undefined ? { prompts: items } : { prompts: items, nextCursor }
  })
  server.setRequestHandler(
    'prompts/get',
    async ({ params: { name, arguments: args = {} } }, context: ServerContext) => {
      const about: Elicited = ['prompts/get', name, args]
      const prompt = await guard(
        source.get(name, args, { signal: context.mcpReq.signal, client: asking.client(context, about) })
      )
      if (prompt === undefined)
        throw new ProtocolError(JSON_RPC.INVALID_PARAMS, `there is no prompt ${JSON.stringify(name)}`)
      return prompt instanceof ClientAsk ? asking.ask(prompt, about) : prompt
    }
  )
}

/** Awaits a source; its error becomes an error of the protocol that carries the structured one. */
function protocolErrors(client: Pick<McpDeps, 'isRemote'>): ProtocolGuard {
  return async (given) => {
    try {
      return await given
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      const structured = errorFor(structuredErrorOf(error), client)
      const isTheirs = structured.code !== 'INTERNAL'
      throw new ProtocolError(
        isTheirs ? JSON_RPC.INVALID_PARAMS : JSON_RPC.INTERNAL_ERROR,
        asNodeError(error).message,
        structured
      )
    }
  }
}

/** Sends changes to the client, at most once a turn for each list, once it is ready for them. */
function tellChanges(server: Server, { tools, resources, prompts, log }: McpDeps, followed: FollowedResources): void {
  let isReady = followed.era === 'modern'
  const due = new Set<string>()
  const tell = (key: string, send: () => Promise<void>): void => {
    if (!isReady || due.has(key)) return
    due.add(key)
    queueMicrotask(() => {
      due.delete(key)
      if (server.transport === undefined) return
      send().catch((error: unknown) => log('debug', 'a change was not told', { reason: asNodeError(error).message }))
    })
  }
  server.oninitialized = () => {
    isReady = true
  }
  const ends = [
    tools.onChange(() => tell('tools', () => server.sendToolListChanged())),
    prompts?.onChange?.(() => tell('prompts', () => server.sendPromptListChanged())),
    resources === undefined
      ? undefined
      : followResources(resources, followed, {
          listChanged: () => tell('resources', () => server.sendResourceListChanged()),
          updated: (uri) => tell(`resource ${uri}`, () => server.sendResourceUpdated({ uri }))
        })
  ]
  server.onclose = () => {
    for (const end of ends) end?.()
  }
}

/** The resources that a client follows. */
interface FollowedResources {
  readonly era: 'legacy' | 'modern'
  /** The source's URI of each subscribed resource, by the URI that the client gave. */
  readonly subscribed: ReadonlyMap<string, string>
  readonly listens: Listens
}

/** Reports changes of resources by the URIs that the client gave. */
function followResources(
  resources: ResourceSource,
  { era, subscribed, listens }: FollowedResources,
  { listChanged, updated }: { listChanged(): void; updated(uri: string): void }
): (() => void) | undefined {
  const listened = new ListenedResources(resources, listens)
  return resources.onChange?.(
    (name) => {
      if (name === null) {
        listened.forget()
        listChanged()
      } else if (era === 'modern') listened.changed(name, updated)
      else for (const [uri, of] of subscribed) if (of === name) updated(uri)
    },
    () => (era === 'modern' ? listened.uris() : subscribed.values())
  )
}
