import { backoffMs } from '../../../kit/backoff.js'
import { type AbortSignalLike, type Clock, wait } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import { fromUtf8, type NodeId, utf8 } from '../../../kit/ids.js'
import { isRecord, parseJson, SIZED_LIMITS } from '../../../kit/json.js'
import type { CallItem, CallPiece, CallRequest, MemberCalls } from '../../../ports/member-calls.js'
import { MESH_PARAMETERS } from './mesh-binding.js'
import { readMeshUrl } from './mesh-uri.js'
import { RemoteFault } from '../remote/remote-fault.js'
import type { GuardedFetch } from '../net/ssrf-fetch.js'

/** How long a broken call is resumed, since its last piece; in milliseconds. */
export const RETAKE_MS = 60_000
/** Backoff between resumes. */
const RETAKES = { baseMs: 50, maxMs: 2000 }
/** Request headers that are service parameters. */
const PARAMETERS: ReadonlySet<string> = new Set(['a2a-version', 'a2a-extensions', 'last-event-id'])
/** Methods that resume a stream, by the method that began it. */
const SUBSCRIBE: Readonly<Record<string, string>> = {
  SendStreamingMessage: 'SubscribeToTask',
  SubscribeToTask: 'SubscribeToTask',
  'message/stream': 'tasks/resubscribe',
  'tasks/resubscribe': 'tasks/resubscribe'
}

/** States of 1.0 in which a task waits for its client. */
const ASKING: ReadonlySet<unknown> = new Set(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'])

/** Access to other members. */
export interface MeshReach {
  readonly calls: Pick<MemberCalls, 'open'>
  readonly clock: Clock
  /**
   * The member that a URL names, by key or name.
   * @throws NodeError PEER_NOT_FOUND, AMBIGUOUS_NAME, USAGE for this node itself
   */
  peer(node: string): NodeId
}

/**
 * Calls a member, and again when its link is cut or its node dies. The message id ensures that the message is done
 * once. A stream resumes after its last event, without gaps or duplicates.
 * @throws NodeError as {@link MemberCalls.open}, when it cannot be resumed
 */
export async function* steadyCall(
  { calls, clock }: Pick<MeshReach, 'calls' | 'clock'>,
  call: { readonly peer: NodeId; readonly request: CallRequest },
  signal?: AbortSignalLike
): AsyncIterable<CallPiece> {
  const progress = new CallProgress(call.request)
  let retakes = 0
  let since: number | null = null
  for (;;) {
    const { request } = progress
    try {
      for await (const piece of calls.open(call.peer, request, signal)) {
        progress.take(piece)
        retakes = 0
        since = clock.monotonic()
        yield piece
        // A resumed subscription would continue beyond the end of the original stream.
        if (request !== call.request && progress.isAtRest) return
      }
      return
    } catch (error) {
      if (progress.isAtRest) return
      const { code } = asNodeError(error)
      // A call that never reached the member fails at once; one that did waits for the link.
      if (code === 'CHANNEL_CLOSED') since ??= clock.monotonic()
      const mayAgain = since !== null && (code === 'CHANNEL_CLOSED' || code === 'PEER_OFFLINE' || code === 'OVERLOADED')
      if (!mayAgain || signal?.aborted === true || clock.monotonic() - (since ?? 0) > RETAKE_MS) throw error
      await wait(clock, backoffMs(RETAKES, retakes++), signal)
    }
  }
}

/** The progress of a request, and the request that resumes it. */
class CallProgress {
  request: CallRequest
  readonly #rpc: Record<string, unknown>
  #taskId: string | null = null
  #last: CallItem | null = null
  #isAnswered = false

  constructor(request: CallRequest) {
    this.request = request
    const parsed = parseJson(fromUtf8(request.body), SIZED_LIMITS)
    this.#rpc = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
    const { params } = this.#rpc
    if (isRecord(params) && typeof params['id'] === 'string') this.#taskId = params['id']
  }

  /**
   * Has a stream begun by a message ended: with a message, or since its task waits for its client? Subscriptions go on
   * there.
   */
  get isAtRest(): boolean {
    if (this.#isAnswered) return true
    return this.#rpc['method'] === 'SendStreamingMessage' && this.#last !== null && ASKING.has(stateIn(this.#last.body))
  }

  take(piece: CallPiece): void {
    if (piece.type !== 'item') return
    // Its only item without a place in the log of a task is a message.
    if (piece.generation === null) return void (this.#isAnswered = true)
    this.#last = piece
    this.#taskId ??= taskIdIn(piece.body)
    const { method, id } = this.#rpc
    const subscribe = typeof method === 'string' ? SUBSCRIBE[method] : undefined
    if (this.#taskId === null || subscribe === undefined) return
    const { path, parameters } = this.request
    this.request = {
      path,
      parameters: { ...parameters, 'last-event-id': String(piece.generation) },
      body: utf8(JSON.stringify({ jsonrpc: '2.0', id, method: subscribe, params: { id: this.#taskId } }))
    }
  }
}

/** The task of the first item of a stream, in either version. */
function taskIdIn(body: Uint8Array): string | null {
  const result = resultIn(body)
  const task = isRecord(result['task']) ? result['task'] : result
  return typeof task['id'] === 'string' ? task['id'] : null
}

/** The state in an item of 1.0. */
function stateIn(body: Uint8Array): unknown {
  const { task, statusUpdate } = resultIn(body)
  const reported = statusUpdate ?? task
  const status = isRecord(reported) ? reported['status'] : null
  return isRecord(status) ? status['state'] : undefined
}

function resultIn(body: Uint8Array): Record<string, unknown> {
  const parsed = parseJson(fromUtf8(body), SIZED_LIMITS)
  const result = parsed.ok && isRecord(parsed.value) ? parsed.value['result'] : null
  return isRecord(result) ? result : {}
}

/** Settings of {@link meshFetch}. */
export interface MeshFetchOptions {
  /** The calling agent; null: the operator. */
  readonly agent: string | null
  /** Most bytes of a response. */
  readonly maxBytes: number
}

/** A `fetch` over the mesh for JSON-RPC clients of A2A. */
export function meshFetch(reach: MeshReach, { agent, maxBytes }: MeshFetchOptions): GuardedFetch {
  return async (input, init = {}) => {
    const place = readMeshUrl(typeof input === 'string' ? input : input instanceof URL ? input.href : input.url)
    if (place === null || typeof init.body !== 'string')
      throw new RemoteFault('unsent', 'no request of the mesh binding')
    const parameters: Record<string, string> = agent === null ? {} : { [MESH_PARAMETERS.agent]: agent }
    for (const [name, value] of new Headers(init.headers)) if (PARAMETERS.has(name)) parameters[name] = value
    const request = { path: place.path, parameters, body: utf8(init.body) }
    const answers = steadyCall(reach, { peer: peerOf(reach, place.node), request }, init.signal ?? undefined)
    const pieces = bounded(answers, maxBytes)[Symbol.asyncIterator]()
    const first = await pieces.next().catch((error: unknown) => Promise.reject(faultOfCall(error)))
    if (first.done === true && init.signal?.aborted === true) throw new DOMException('aborted', 'AbortError')
    if (first.done === true) return new Response('', { headers: { 'content-type': 'text/event-stream' } })
    if (first.value.type === 'answer')
      return new Response(fromUtf8(first.value.body), { headers: { 'content-type': 'application/json' } })
    return new Response(eventsOf(first.value, pieces), { headers: { 'content-type': 'text/event-stream' } })
  }
}

async function* bounded(pieces: AsyncIterable<CallPiece>, maxBytes: number): AsyncIterable<CallPiece> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.body.byteLength
    if (bytes > maxBytes) throw new RemoteFault('answered', `its answer has more than ${maxBytes} bytes`)
    yield piece
  }
}

function peerOf(reach: MeshReach, node: string): NodeId {
  try {
    return reach.peer(node)
  } catch (error) {
    throw new RemoteFault('unsent', asNodeError(error).message)
  }
}

/** The items as server-sent events, with backpressure. */
function eventsOf(first: CallPiece, rest: AsyncIterator<CallPiece>): ReadableStream<Uint8Array> {
  let next: CallPiece | null = first
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = next === null ? await rest.next() : { done: false, value: next }
          next = null
          if (piece.done === true) controller.close()
          else controller.enqueue(eventOf(piece.value))
        } catch (error) {
          controller.error(faultOfCall(error))
        }
      },
      cancel: async () => void (await rest.return?.())
    },
    { highWaterMark: 0 }
  )
}

function eventOf(piece: CallPiece): Uint8Array {
  const id = piece.type === 'item' && piece.generation !== null ? `id: ${piece.generation}\n` : ''
  // JSON may have several lines, the data of an event one.
  return utf8(`${id}data: ${fromUtf8(piece.body).replace(/[\r\n]+/g, ' ')}\n\n`)
}

/** Converts the error of a call to a RemoteFault. */
function faultOfCall(error: unknown): RemoteFault {
  if (error instanceof RemoteFault) return error
  const { code, message } = asNodeError(error)
  if (code === 'OVERLOADED') return new RemoteFault('busy', message)
  return new RemoteFault(code === 'CHANNEL_CLOSED' ? 'unknown' : 'unsent', message)
}
