import { backoffMs } from '../../../kit/backoff.js'
import { type AbortSignalLike, type Clock, wait } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import { fromUtf8, type NodeId, utf8 } from '../../../kit/ids.js'
import { isRecord, parseJson } from '../../../kit/json.js'
import type { CallItem, CallPiece, CallRequest, MemberCalls } from '../../../ports/member-calls.js'
import { MESH_PARAMETERS } from './mesh-binding.js'
import { readMeshUrl } from './mesh-uri.js'
import { RemoteFault } from '../remote/remote-fault.js'
import type { GuardedFetch } from '../net/ssrf-fetch.js'

/** How long a call that was cut off is taken up again, since anything last came of it; in milliseconds. */
export const RETAKE_MS = 60_000
/** Waits before it is taken up again. */
const RETAKES = { baseMs: 50, maxMs: 2000 }
/** Header names of requests that are service parameters. */
const PARAMETERS: ReadonlySet<string> = new Set(['a2a-version', 'a2a-extensions', 'last-event-id'])
/** How a stream is taken up again, by how it was begun. */
const SUBSCRIBE: Readonly<Record<string, string>> = {
  SendStreamingMessage: 'SubscribeToTask',
  SubscribeToTask: 'SubscribeToTask',
  'message/stream': 'tasks/resubscribe',
  'tasks/resubscribe': 'tasks/resubscribe'
}

/** States of 1.0 in which a task waits for its client. */
const ASKING: ReadonlySet<unknown> = new Set(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'])

/** The way to other members. */
export interface MeshReach {
  readonly calls: Pick<MemberCalls, 'open'>
  readonly clock: Clock
  /** The member that a URL names, by key or name. @throws NodeError PEER_NOT_FOUND, AMBIGUOUS_NAME, USAGE for this node itself */
  peer(node: string): NodeId
}

/**
 * Calls a member, and again when its link is cut or its node dies: what was sent is done once, since its message has an id; a
 * stream is taken up behind its last event, so that none comes twice and none is missing.
 * @throws NodeError as {@link MemberCalls.open}, once it cannot be taken up again
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
        // What a cut stream is taken up by goes on where that one ends.
        if (request !== call.request && progress.isAtRest) return
      }
      return
    } catch (error) {
      if (progress.isAtRest) return
      const { code } = asNodeError(error)
      // What never got there is told at once; once it did, the link is waited for.
      if (code === 'CHANNEL_CLOSED') since ??= clock.monotonic()
      const mayAgain = since !== null && (code === 'CHANNEL_CLOSED' || code === 'PEER_OFFLINE' || code === 'OVERLOADED')
      if (!mayAgain || signal?.aborted === true || clock.monotonic() - (since ?? 0) > RETAKE_MS) throw error
      await wait(clock, backoffMs(RETAKES, retakes++), signal)
    }
  }
}

/** What came of a request, and the request that goes on with it. */
class CallProgress {
  request: CallRequest
  readonly #rpc: Record<string, unknown>
  #taskId: string | null = null
  #last: CallItem | null = null

  constructor(request: CallRequest) {
    this.request = request
    const parsed = parseJson(fromUtf8(request.body))
    this.#rpc = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
    const { params } = this.#rpc
    if (isRecord(params) && typeof params['id'] === 'string') this.#taskId = params['id']
  }

  /** Has a stream that a message of 1.0 began come to its end, since its task waits for its client? A subscription has none there. */
  get isAtRest(): boolean {
    return this.#rpc['method'] === 'SendStreamingMessage' && this.#last !== null && ASKING.has(stateIn(this.#last.body))
  }

  take(piece: CallPiece): void {
    if (piece.type !== 'item' || piece.generation === null) return
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

/** The state that an item of 1.0 tells. */
function stateIn(body: Uint8Array): unknown {
  const { task, statusUpdate } = resultIn(body)
  const reported = statusUpdate ?? task
  const status = isRecord(reported) ? reported['status'] : null
  return isRecord(status) ? status['state'] : undefined
}

function resultIn(body: Uint8Array): Record<string, unknown> {
  const parsed = parseJson(fromUtf8(body))
  const result = parsed.ok && isRecord(parsed.value) ? parsed.value['result'] : null
  return isRecord(result) ? result : {}
}

/** A `fetch` for the JSON-RPC clients of A2A whose URLs are of the binding. `agent`: in whose name; null: of the operator. */
export function meshFetch(reach: MeshReach, agent: string | null): GuardedFetch {
  return async (input, init = {}) => {
    const place = readMeshUrl(typeof input === 'string' ? input : input instanceof URL ? input.href : input.url)
    if (place === null || typeof init.body !== 'string') throw new RemoteFault('unsent', 'no request of the mesh binding')
    const parameters: Record<string, string> = agent === null ? {} : { [MESH_PARAMETERS.agent]: agent }
    for (const [name, value] of new Headers(init.headers)) if (PARAMETERS.has(name)) parameters[name] = value
    const request = { path: place.path, parameters, body: utf8(init.body) }
    const pieces = steadyCall(reach, { peer: peerOf(reach, place.node), request }, init.signal ?? undefined)[Symbol.asyncIterator]()
    const first = await pieces.next().catch((error: unknown) => Promise.reject(faultOfCall(error)))
    if (first.done === true && init.signal?.aborted === true) throw new DOMException('aborted', 'AbortError')
    if (first.done === true) return new Response('', { headers: { 'content-type': 'text/event-stream' } })
    if (first.value.type === 'answer') return new Response(fromUtf8(first.value.body), { headers: { 'content-type': 'application/json' } })
    return new Response(eventsOf(first.value, pieces), { headers: { 'content-type': 'text/event-stream' } })
  }
}

function peerOf(reach: MeshReach, node: string): NodeId {
  try {
    return reach.peer(node)
  } catch (error) {
    throw new RemoteFault('unsent', asNodeError(error).message)
  }
}

/** The items as server-sent events, as they are read. */
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
  // JSON may stand in several lines, an event may not.
  return utf8(`${id}data: ${fromUtf8(piece.body).replace(/[\r\n]+/g, ' ')}\n\n`)
}

/** A call that fails in the words of the client side. */
function faultOfCall(error: unknown): RemoteFault {
  const { code, message } = asNodeError(error)
  if (code === 'OVERLOADED') return new RemoteFault('busy', message)
  return new RemoteFault(code === 'CHANNEL_CLOSED' ? 'unknown' : 'unsent', message)
}
