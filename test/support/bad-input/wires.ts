/** Wires over HTTP. */
export const HTTP_WIRES = ['JSON-RPC 1.0', 'JSON-RPC 0.3', 'REST 1.0', 'REST 0.3', 'facade', 'AG-UI'] as const
/** Those and the mesh binding: all by which somebody asks the node. */
export const IN_WIRES = [...HTTP_WIRES, 'mesh'] as const
/** Where the node asks others. */
export const OUT_WIRES = ['imported card', 'call <card URL>'] as const

/** One of the wires over HTTP. */
export type HttpWire = (typeof HTTP_WIRES)[number]
/** One that the A2A protocol is spoken on, over HTTP. */
export type A2AWire = Exclude<HttpWire, 'facade' | 'AG-UI'>

/** A request. */
export interface BadRequest {
  readonly place: string
  /** Default: POST where there is a body, else GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** As it is, or as JSON. */
  readonly body?: string | Buffer | object
  /** Default: alice. */
  readonly by?: 'alice' | 'bob'
}

/** What a message may have beside its text. */
export interface Saying {
  readonly id?: string
  readonly task?: string
  readonly stream?: boolean
  readonly agent?: string
  /** Members of its configuration. */
  readonly configuration?: object
}

let said = 0

/**
 * A request with a message, as each wire has it; it is answered as soon as its task has begun or ended, whatever the
 * wire does.
 */
export function saying(wire: HttpWire, text: string, more: Saying = {}): BadRequest {
  const { id = `m-${++said}`, task, stream = false, agent = 'talk', configuration = {} } = more
  const at = `/agents/${agent}`
  const head = { messageId: id, ...(task === undefined ? {} : { taskId: task }) }
  switch (wire) {
    case 'JSON-RPC 1.0':
      return rpc(stream ? 'SendStreamingMessage' : 'SendMessage', { ...v1(head, text), configuration }, at)
    case 'JSON-RPC 0.3':
      return rpc(stream ? 'message/stream' : 'message/send', { ...v03(head, text), configuration }, at)
    case 'REST 1.0':
      return { place: `${at}/message:${stream ? 'stream' : 'send'}`, body: { ...v1(head, text), configuration } }
    case 'REST 0.3': {
      const message = { ...head, role: 'ROLE_USER', content: [{ text }] }
      return {
        place: `${at}/v1/message:${stream ? 'stream' : 'send'}`,
        body: { message, configuration: { blocking: true, ...configuration } }
      }
    }
    case 'facade':
      return { place: `${at}/${stream ? 'stream' : 'run'}`, body: { prompt: text } }
    case 'AG-UI':
      return { place: `${at}/agui`, body: run(`thread-${id}`, [{ id, role: 'user', content: text }]) }
  }
}

/** A message in 1.0. */
export function v1(head: object, text: string): object {
  return { message: { ...head, role: 'ROLE_USER', parts: [{ text }] } }
}

/** A message in 0.3. */
export function v03(head: object, text: string): object {
  return { message: { kind: 'message', ...head, role: 'user', parts: [{ kind: 'text', text }] } }
}

/** A request of JSON-RPC. */
export function rpc(method: string, params?: unknown, place = '/agents/talk'): BadRequest {
  return { place, body: { jsonrpc: '2.0', id: 7, method, params } }
}

/** A run of AG-UI. */
export function run(threadId: string, messages: readonly object[], more: object = {}): object {
  return { threadId, runId: `run-${++said}`, messages, tools: [], context: [], state: {}, forwardedProps: {}, ...more }
}

/**
 * What a wire said of a request: `done`, or its status and what tells the kind of the error; what is no error in its
 * shape is told as it is.
 */
export function told(
  wire: HttpWire,
  { status, type, text }: { readonly status: number; readonly type: string; readonly text: string }
): string {
  const error03 = wire === 'JSON-RPC 0.3' && type === 'text/event-stream' ? onlyError(text) : null
  if (error03 !== null) return told(wire, { status, type: 'application/json', text: error03 })
  if (status === 200 && type === 'text/event-stream') return toldOfStream(text)
  const json = type.startsWith('application/') ? parsed(text) : null
  if (json === null) return `no JSON: ${status} ${type} ${text.slice(0, 300)}`
  const error = json['error'] as Json | string | undefined
  if (status === 200 && error === undefined) return 'done'
  return (
    (type === 'application/json' ? shaped(wire, status, json) : null) ??
    `out of shape: ${status} ${type} ${text.slice(0, 300)}`
  )
}

type Json = Record<string, unknown>

function shaped(wire: HttpWire, status: number, json: Json): string | null {
  const names = Object.keys(json).sort().join()
  const error = json['error'] as Json
  if (wire === 'facade')
    return typeof json['error'] === 'string' &&
      typeof json['message'] === 'string' &&
      /^(code,)?(details,)?error,message$/.test(names)
      ? `${status} ${json['error']}`
      : null
  if (wire.startsWith('JSON-RPC'))
    return names === 'error,id,jsonrpc' && json['jsonrpc'] === '2.0' && 'id' in json
      ? `${status} ${String(error['code'])} ${reasonIn(error['data'])}`
      : null
  if (wire === 'REST 0.3')
    return names === 'code,data,message' ? `${status} ${String(json['code'])} ${reasonIn(json['data'])}` : null
  return names === 'error' && error['code'] === status
    ? `${status} ${String(error['status'])} ${reasonIn(error['details'])}`
    : null
}

function reasonIn(details: unknown): string {
  const [info] = [details].flat() as readonly Json[]
  return info?.['@type'] === 'type.googleapis.com/google.rpc.ErrorInfo' && info['domain'] === 'a2a-protocol.org'
    ? String(info['reason'])
    : 'no reason'
}

/** The data of a stream whose only event is an error, as 0.3 answers; null for another one. */
function onlyError(text: string): string | null {
  return /^data: ({.*"error":.*})\n\n$/.exec(text)?.[1] ?? null
}

/** A stream is done when it ended; one that broke off says so in its last event. */
function toldOfStream(text: string): string {
  const [last = ''] = text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .slice(-1)
  return /"error"|RUN_ERROR|^event: error/.test(last) ? `stream: ${last}` : 'done'
}

function parsed(text: string): Json | null {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}
