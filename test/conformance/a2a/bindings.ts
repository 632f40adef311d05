import { EventSourceParserStream } from 'eventsource-parser/stream'
import { isRecord } from '../../../src/kit/json.js'
import type { OperationName } from './cases.js'

/** An answer of the node, without what its binding wraps around it. */
export interface CaseAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** Its error; null: it has none. */
  readonly error: WireError | null
}

/** An error of any binding. */
export interface WireError {
  /** Its name in the specification; `unknown` for all others, and where number, status and reason do not agree. */
  readonly type: string
  readonly code: number
  readonly message: unknown
  readonly details: unknown
}

/** Where a request goes, as whom, and until when. */
export interface Target {
  /** URL of the agent. */
  readonly url: string
  /** null: no token. */
  readonly token: string | null
  readonly signal: AbortSignal
}

/** Events of a stream, as the data model has them. */
export type CaseStream = AsyncIterable<Readonly<Record<string, unknown>>>

/** One way to ask an agent. */
export interface Binding {
  readonly name: 'jsonrpc' | 'rest'
  /** Does an operation that has one answer. */
  ask(operation: OperationName, params: Params, target: Target): Promise<CaseAnswer>
  /** Begins a stream; an answer when there is none. */
  stream(operation: OperationName, params: Params, target: Target): Promise<CaseStream | CaseAnswer>
}

type Params = Readonly<Record<string, unknown>>

/** Errors of the specification (A2A 1.0.1, section 5.4). */
const ERRORS: Readonly<Record<string, { readonly rpc: number; readonly http: number; readonly reason: string }>> = {
  TaskNotFoundError: { rpc: -32_001, http: 404, reason: 'TASK_NOT_FOUND' },
  TaskNotCancelableError: { rpc: -32_002, http: 400, reason: 'TASK_NOT_CANCELABLE' },
  PushNotificationNotSupportedError: { rpc: -32_003, http: 400, reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' },
  UnsupportedOperationError: { rpc: -32_004, http: 400, reason: 'UNSUPPORTED_OPERATION' },
  ContentTypeNotSupportedError: { rpc: -32_005, http: 400, reason: 'CONTENT_TYPE_NOT_SUPPORTED' },
  InvalidAgentResponseError: { rpc: -32_006, http: 500, reason: 'INVALID_AGENT_RESPONSE' },
  ExtensionSupportRequiredError: { rpc: -32_008, http: 400, reason: 'EXTENSION_SUPPORT_REQUIRED' },
  VersionNotSupportedError: { rpc: -32_009, http: 400, reason: 'VERSION_NOT_SUPPORTED' },
  InvalidParamsError: { rpc: -32_602, http: 400, reason: 'INVALID_PARAMS' }
}

const JSON_TYPE = 'application/json'

/** The headers that each request has. */
export function headersOf(token: string | null): Record<string, string> {
  return {
    'a2a-version': '1.0',
    'content-type': JSON_TYPE,
    ...(token === null ? {} : { authorization: `Bearer ${token}` })
  }
}

/** Reads an answer that is no stream. `open` takes the binding's wrapping away. */
export async function readAnswer(response: Response, open: (body: unknown) => unknown): Promise<CaseAnswer> {
  const text = await response.text()
  const headers = Object.fromEntries(response.headers)
  const body: unknown = text === '' ? {} : JSON.parse(text)
  const error = isRecord(body) && isRecord(body['error']) ? errorOf(body['error'], response.status) : null
  return { status: response.status, headers, body: error === null ? open(body) : body, error }
}

function errorOf(error: Readonly<Record<string, unknown>>, status: number): WireError {
  const details = error['data'] ?? error['details']
  const code = Number(error['code'])
  const reason = Array.isArray(details)
    ? details.filter(isRecord).find((one) => String(one['@type']).endsWith('.ErrorInfo'))?.['reason']
    : undefined
  const isRpc = code < 0
  const [type = 'unknown'] =
    Object.entries(ERRORS).find(
      ([, one]) => one.reason === reason && (isRpc ? one.rpc === code : one.http === status && code === status)
    ) ?? []
  return { type, code, message: error['message'], details }
}

/** The events of a response; each is opened. Reads until the end or the signal. */
export async function* eventsIn(
  response: Response,
  open: (data: unknown) => Readonly<Record<string, unknown>>
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  if (response.body === null) return
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  for await (const { data } of events as unknown as AsyncIterable<{ data: string }>) yield open(JSON.parse(data))
}

/** Is it a stream? */
export function isStream(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
}

let asked = 0

/** JSON-RPC at the URL of the agent. */
export const JSON_RPC: Binding = {
  name: 'jsonrpc',
  async ask(operation, params, target) {
    if (operation === 'GetAgentCard') return await cardAnswer(target)
    const id = `r${++asked}`
    return await readAnswer(await postRpc({ id, operation, params }, target), (body) => resultOf(body, id))
  },
  async stream(operation, params, target) {
    const id = `r${++asked}`
    const response = await postRpc({ id, operation, params }, target)
    if (!isStream(response)) return await readAnswer(response, (body) => resultOf(body, id))
    return eventsIn(response, (body) => resultOf(body, id) as Readonly<Record<string, unknown>>)
  }
}

function postRpc(
  { id, operation: method, params }: { id: string; operation: string; params: Params },
  { url, token, signal }: Target
): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
  return fetch(url, { method: 'POST', headers: headersOf(token), body, signal })
}

function resultOf(body: unknown, id: string): unknown {
  if (!isRecord(body) || body['jsonrpc'] !== '2.0' || body['id'] !== id || !('result' in body))
    throw new Error(`no answer of JSON-RPC to ${id}: ${JSON.stringify(body).slice(0, 300)}`)
  return body['result'] ?? {}
}

async function cardAnswer({ url, token, signal }: Target): Promise<CaseAnswer> {
  const response = await fetch(`${url}/.well-known/agent-card.json`, { headers: headersOf(token), signal })
  return await readAnswer(response, (body) => body)
}

/** REST below the URL of the agent. */
export const REST: Binding = {
  name: 'rest',
  async ask(operation, params, target) {
    if (operation === 'GetAgentCard') return await cardAnswer(target)
    return await readAnswer(await askRest(operation, params, target), (body) => body)
  },
  async stream(operation, params, target) {
    const response = await askRest(operation, params, target)
    if (!isStream(response)) return await readAnswer(response, (body) => body)
    return eventsIn(response, (body) => body as Readonly<Record<string, unknown>>)
  }
}

/** Method, path, and whether the other parameters are the body. Names in braces are parameters. */
const ROUTES: Readonly<Record<string, readonly [method: string, path: string, hasBody?: boolean]>> = {
  SendMessage: ['POST', '/message:send', true],
  SendStreamingMessage: ['POST', '/message:stream', true],
  GetTask: ['GET', '/tasks/{id}'],
  ListTasks: ['GET', '/tasks'],
  CancelTask: ['POST', '/tasks/{id}:cancel', true],
  SubscribeToTask: ['GET', '/tasks/{id}:subscribe'],
  CreateTaskPushNotificationConfig: ['POST', '/tasks/{taskId}/pushNotificationConfigs', true],
  GetTaskPushNotificationConfig: ['GET', '/tasks/{taskId}/pushNotificationConfigs/{id}'],
  ListTaskPushNotificationConfigs: ['GET', '/tasks/{taskId}/pushNotificationConfigs'],
  DeleteTaskPushNotificationConfig: ['DELETE', '/tasks/{taskId}/pushNotificationConfigs/{id}'],
  GetExtendedAgentCard: ['GET', '/extendedAgentCard']
}

function askRest(operation: OperationName, params: Params, { url, token, signal }: Target): Promise<Response> {
  const [method, path, hasBody = false] = ROUTES[operation] ?? ['GET', '/']
  const left = { ...params }
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(left[name])
    delete left[name]
    return encodeURIComponent(value)
  })
  const query = new URLSearchParams(
    Object.entries(left).map(([name, value]): [string, string] => [name, String(value)])
  )
  const search = hasBody || query.size === 0 ? '' : `?${query.toString()}`
  const body = hasBody ? { body: JSON.stringify(left) } : {}
  return fetch(url + place + search, { method, headers: headersOf(token), signal, ...body })
}
