import { pathIdFrom } from '../cards/card-interfaces.js'
import { facadeListenerFault, type ListenerError, type ListenerRequest, listenerFault } from './listener-fault.js'
import { pathVersion } from './rest.js'

/** Protocols of a node over HTTP, each with its own form of answers. */
export type GatewayFace = 'mcp' | 'facade' | 'rpc' | 'rest' | 'rest-old' | 'agui' | 'card'

/** A request to the facade, by method and path. */
export type FacadeCall =
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'run' | 'stream'; readonly agent: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wrong-method'; readonly allow: string }

/**
 * The target of a request. `agent`: of the URL, null for the node; `path`: the rest below it; `asked`: null for other
 * faces than the facade.
 */
export interface RouteTarget {
  readonly face: GatewayFace
  readonly agent: string | null
  readonly path: string
  readonly asked: FacadeCall | null
}

const NOTHING: FacadeCall = { kind: 'nothing' }
const METHODS: Readonly<Record<'run' | 'stream', readonly string[]>> = { run: ['POST'], stream: ['GET', 'POST'] }
/** Names of the protocol below `/a2a/`. An agent with such a name is reached below `/agents/` only. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  'tasks',
  'message:send',
  'message:stream',
  'extendedAgentCard',
  'card',
  'v1'
])

/**
 * The target of a method and a path of the gateway; null below `/agents/` without a valid name. The only parser of its
 * paths.
 */
export function gatewayTarget(method: string, path: string): RouteTarget | null {
  const asked = facadeCall(method, path)
  if (asked !== null) return { face: 'facade', agent: null, path, asked }
  if (path === '/mcp' || path === '/agui') return { face: path === '/mcp' ? 'mcp' : 'agui', agent: null, path, asked }
  const isBelowAgents = path.startsWith('/agents/')
  const below = isBelowAgents ? agentPath(path, '/agents/') : nodePath(path)
  if (below === null) return null
  const isCard = path.startsWith('/a2a/') && path.endsWith('/card')
  const face = isCard ? 'card' : isBelowAgents && below.path === '/agui' ? 'agui' : bindingOf(below.path)
  return { face, ...below, asked }
}

/** An error of the listener in the form of the face at that path; null: the default form. */
export function gatewayFault(error: ListenerError, request: ListenerRequest): object | null {
  const { method, path } = request
  const target = gatewayTarget(method, path)
  if (target === null || (target.face === 'mcp' && method !== 'POST')) return null
  if (target.face === 'facade') return facadeListenerFault(error)
  return listenerFault(error, { ...request, path: target.face === 'mcp' ? '' : target.path })
}

/** Does a request get its answer in JSON-RPC, which names the id of the request? */
export function isRpcRequest({ method, path }: Pick<ListenerRequest, 'method' | 'path'>): boolean {
  const face = gatewayTarget(method, path)?.face
  return method === 'POST' && (face === 'rpc' || face === 'mcp')
}

function bindingOf(path: string): GatewayFace {
  if (path === '') return 'rpc'
  return pathVersion(path, null) === '0.3' ? 'rest-old' : 'rest'
}

/**
 * The request to the facade of a method and path: `/agents`, `/agents/{name}`, `/agents/{name}/run`,
 * `/agents/{name}/stream`, and the same below `/v1`. Null for other paths below `/agents`, which belong to A2A.
 */
export function facadeCall(method: string, path: string): FacadeCall | null {
  const isTwin = path.startsWith('/v1/')
  const plain = isTwin ? path.slice('/v1'.length) : path
  if (plain === '/agents') return method === 'GET' ? { kind: 'list' } : { kind: 'wrong-method', allow: 'GET' }
  const other = isTwin ? NOTHING : null
  const at = plain.startsWith('/agents/') ? agentPath(plain, '/agents/') : null
  if (at === null) return other
  const { agent, path: rest } = at
  if (rest === '')
    return method === 'GET' ? { kind: 'show', agent } : isTwin ? { kind: 'wrong-method', allow: 'GET' } : null
  if (rest !== '/run' && rest !== '/stream') return other
  const kind = rest === '/run' ? 'run' : 'stream'
  const allowed = METHODS[kind]
  return allowed.includes(method) ? { kind, agent } : { kind: 'wrong-method', allow: allowed.join(', ') }
}

/**
 * The agent and the rest of a path below a prefix: `/agents/text/tasks` is `text` and `/tasks`. Null without a valid
 * name.
 */
export function agentPath(path: string, prefix: string): { readonly agent: string; readonly path: string } | null {
  const rest = path.slice(prefix.length)
  const at = rest.indexOf('/')
  const agent = pathIdFrom(at === -1 ? rest : rest.slice(0, at)) ?? ''
  return agent === '' || agent.length > 256 ? null : { agent, path: at === -1 ? '' : rest.slice(at) }
}

/** The agent and the rest of `/a2a` or a path below it. Names of the protocol belong to the node itself. */
function nodePath(path: string): { readonly agent: string | null; readonly path: string } {
  const target = agentPath(path, '/a2a/')
  return target === null || OWN_NAMES.has(target.agent) ? { agent: null, path: path.slice('/a2a'.length) } : target
}
