import { pathIdFrom } from '../cards/card-interfaces.js'
import { facadeListenerFault, type ListenerError, listenerFault } from './listener-fault.js'
import { pathVersion } from './rest.js'

/** Protocols of a node over HTTP, each with answers in its own form. */
export type GatewayFace = 'mcp' | 'facade' | 'rpc' | 'rest' | 'rest-old' | 'agui' | 'card'

/** What a request asks of the facade. */
export type FacadeCall =
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'run' | 'stream'; readonly agent: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wrong-method'; readonly allow: string }

/** What a request is for. `agent`: of the URL, null for the node; `path`: the rest of the URL below it; `asked`: null beside the facade. */
export interface RouteTarget {
  readonly face: GatewayFace
  readonly agent: string | null
  readonly path: string
  readonly asked: FacadeCall | null
}

const NOTHING: FacadeCall = { kind: 'nothing' }
const METHODS: Readonly<Record<'run' | 'stream', readonly string[]>> = { run: ['POST'], stream: ['GET', 'POST'] }
/** Names below `/a2a/` of the protocol. An agent of such a name is reached below `/agents/`. */
const OWN_NAMES: ReadonlySet<string> = new Set(['tasks', 'message:send', 'message:stream', 'extendedAgentCard', 'card', 'v1'])

/** What a method and a path are for; null for the URL of no agent. The one place that reads paths of the gateway. */
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

/** What the listener refuses at a path of the gateway, in the form of its face; null: as everywhere. */
export function gatewayFault(error: ListenerError, { method, path }: { readonly method: string; readonly path: string }): object | null {
  const target = gatewayTarget(method, path)
  if (target === null) return null
  return target.face === 'facade' ? facadeListenerFault(error) : listenerFault(error, { method, path: target.path })
}

function bindingOf(path: string): GatewayFace {
  if (path === '') return 'rpc'
  return pathVersion(path, null) === '0.3' ? 'rest-old' : 'rest'
}

/**
 * What a method and a path ask of the facade: `/agents`, `/agents/{name}`, `/agents/{name}/run`, `/agents/{name}/stream`, and the
 * same below `/v1`. Null for other paths below `/agents`: those of the A2A protocol.
 */
export function facadeCall(method: string, path: string): FacadeCall | null {
  const isTwin = path.startsWith('/v1/')
  const plain = isTwin ? path.slice('/v1'.length) : path
  if (plain === '/agents') return method === 'GET' ? { kind: 'list' } : { kind: 'wrong-method', allow: 'GET' }
  const other = isTwin ? NOTHING : null
  const at = plain.startsWith('/agents/') ? agentPath(plain, '/agents/') : null
  if (at === null) return other
  const { agent, path: rest } = at
  if (rest === '') return method === 'GET' ? { kind: 'show', agent } : isTwin ? { kind: 'wrong-method', allow: 'GET' } : null
  if (rest !== '/run' && rest !== '/stream') return other
  const kind = rest === '/run' ? 'run' : 'stream'
  const allowed = METHODS[kind]
  return allowed.includes(method) ? { kind, agent } : { kind: 'wrong-method', allow: allowed.join(', ') }
}

/** The agent and the rest of a path below a prefix: `/agents/text/tasks` is `text` and `/tasks`. Null for no agent's. */
export function agentPath(path: string, prefix: string): { readonly agent: string; readonly path: string } | null {
  const rest = path.slice(prefix.length)
  const at = rest.indexOf('/')
  const agent = pathIdFrom(at === -1 ? rest : rest.slice(0, at)) ?? ''
  return agent === '' || agent.length > 256 ? null : { agent, path: at === -1 ? '' : rest.slice(at) }
}

/** The agent and the rest of `/a2a` or a path below it: a name of the protocol is the node's own. */
function nodePath(path: string): { readonly agent: string | null; readonly path: string } {
  const target = agentPath(path, '/a2a/')
  return target === null || OWN_NAMES.has(target.agent) ? { agent: null, path: path.slice('/a2a'.length) } : target
}
