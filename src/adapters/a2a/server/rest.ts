import { pathIdFrom } from '../cards/card-interfaces.js'
import { A2AFault } from './fault.js'
import { type Operation, REST } from './operations.js'
import { fieldName } from './proto-names.js'
import type { PushOperations } from '../push/push-operations.js'
import { isServiceParam, type ProtocolVersion } from './service-params.js'

/** A REST request as an operation. */
export interface RestCall {
  readonly operation: Operation
  /** Parameters of path and query, to merge with the body. */
  readonly params: Readonly<Record<string, unknown>>
  readonly hasBody: boolean
}

const OLD = /^\/v1(?=\/|$)/

/**
 * The version of a path below the URL of an agent. `asked`: the requested version, with which 0.3 paths may omit `/v1`.
 */
export function pathVersion(path: string, asked: ProtocolVersion | null): ProtocolVersion {
  return OLD.test(path) ? '0.3' : (asked ?? '1.0')
}

/** The parts of a REST request that determine its operation. */
export interface RestRequest {
  readonly method: string
  /** Below the URL of the agent. */
  readonly path: string
  readonly query: string
  readonly asked: ProtocolVersion | null
}

/** Query parameters that are numbers or booleans in the JSON of the protocol. */
const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize'])
const FLAGS: ReadonlySet<string> = new Set(['includeArtifacts'])

/**
 * The operation of a request below the URL of an agent, e.g. `GET` and `/tasks/task_1`. Below `/v1` the JSON is that of
 * 0.3. `/tasks/{id}/cancel`, `/tasks/{id}/subscribe` and `POST /tasks` to send are from the gateway's own
 * specification.
 * @throws A2AFault METHOD_NOT_FOUND, INVALID_PARAMS
 */
export function restCall({ method, path, query, asked }: RestRequest): RestCall {
  const version = pathVersion(path, asked)
  if (asked !== null && asked !== version)
    throw new A2AFault('METHOD_NOT_FOUND', 'this path is of A2A 0.3, and the request is of 1.0')
  const operations = REST[version]
  const rest = path.replace(OLD, '')
  const call = (operation: Operation, params: Record<string, unknown> = {}, hasBody = false): RestCall => ({
    operation,
    params,
    hasBody
  })
  const route = `${method} ${rest}`
  if (route === 'POST /message:send' || route === 'POST /tasks') return call(operations.send, {}, true)
  if (route === 'POST /message:stream') return call(operations.stream, {}, true)
  if (route === 'GET /tasks') return call(operations.list, paramsOf(query))
  if (route === 'GET /extendedAgentCard' || route === 'GET /card') return call(operations.card)
  const [, name = '', verb = ''] = /^\/tasks\/([^/:]+)(.*)$/.exec(rest) ?? []
  const id = pathIdFrom(name) ?? ''
  if (id === '') throw nothingThere()
  if (verb === '' && method === 'GET') return call(operations.get, { ...paramsOf(query), id })
  if ((verb === ':cancel' || verb === '/cancel') && method === 'POST') return call(operations.cancel, { id })
  if ((verb === ':subscribe' || verb === '/subscribe') && (method === 'GET' || method === 'POST'))
    return call(operations.subscribe, { id })
  if (verb.startsWith('/pushNotificationConfigs'))
    return pushCall(operations.push, { method, place: verb.slice('/pushNotificationConfigs'.length), id })
  throw nothingThere()
}

/**
 * `place`: the path below the configs of the task `id`: '', or `/` and the id of a config.
 * @throws A2AFault METHOD_NOT_FOUND
 */
function pushCall(
  { set, get, list, remove }: PushOperations,
  { method, place, id: taskId }: { readonly method: string; readonly place: string; readonly id: string }
): RestCall {
  if (place === '' && method === 'POST') return { operation: set, params: { taskId }, hasBody: true }
  if (place === '' && method === 'GET') return { operation: list, params: { taskId }, hasBody: false }
  const id = place.startsWith('/') && !place.includes('/', 1) ? (pathIdFrom(place.slice(1)) ?? '') : ''
  const operation = method === 'GET' ? get : method === 'DELETE' ? remove : null
  if (id === '' || operation === null) throw nothingThere()
  return { operation, params: { taskId, id }, hasBody: false }
}

function nothingThere(): A2AFault {
  return new A2AFault('METHOD_NOT_FOUND', 'there is nothing at this path')
}

function paramsOf(query: string): Record<string, unknown> {
  const params: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    const key = fieldName(name)
    if (key === '__proto__' || isServiceParam(key)) continue
    params[key] = NUMBERS.has(key) ? numberOf(value) : FLAGS.has(key) ? flagOf(value) : value
  }
  return params
}

/** Other texts stay, and the parameter is refused when read. */
function numberOf(text: string): number | string {
  return /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** Other texts stay, as in numberOf. */
function flagOf(text: string): boolean | string {
  return text === 'true' || (text === 'false' ? false : text)
}
