import type http from 'node:http'
import type { Duplex } from 'node:stream'
import { NodeError } from '../../kit/errors.js'
import type { Principal } from '../../ports/node-api.js'
import { callerOf } from './caller-terms.js'
import { type ControlRefusal, refusalOf } from './guard.js'
import { HTTP_STATUS } from './status.js'
import { CALLER_PARAM, OPEN_PATH } from './wire.js'

/** Context in which a stream is opened. */
export interface OpenContext {
  readonly principal: Principal
  readonly protocols?: Readonly<Record<string, (stream: Duplex, principal: Principal) => void>>
  /** Aborts when the server closes: every stream ends then. */
  readonly closing: AbortSignal
  onRefusal?(refusal: ControlRefusal): void
}

/** An HTTP request that asks for another protocol. */
export interface UpgradeRequest {
  readonly request: http.IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/** Answers a request for a stream: 101 and raw bytes from there on, or an error as every other request gets it. */
export function answerOpen({ request, socket, head }: UpgradeRequest, context: OpenContext): void {
  socket.on('error', () => socket.destroy())
  const refusal = refusalOf(request)
  if (refusal !== null) {
    context.onRefusal?.(refusal)
    return refuse(socket, new NodeError('FORBIDDEN', `refused: ${refusal.reason}`), refusal.status)
  }
  const [pathname = '', query = ''] = (request.url ?? '').split('?', 2)
  const name = pathname.startsWith(OPEN_PATH) ? pathname.slice(OPEN_PATH.length) : ''
  const serve =
    context.protocols !== undefined && Object.hasOwn(context.protocols, name) ? context.protocols[name] : undefined
  if (serve === undefined || request.headers.upgrade !== name) {
    return refuse(socket, new NodeError('USAGE', 'the control API has no such stream'))
  }
  const caller = callerOf(context.principal, new URLSearchParams(query).get(CALLER_PARAM))
  if (caller === null) return refuse(socket, new NodeError('USAGE', 'the terms of the caller are malformed'))
  if (context.closing.aborted) return refuse(socket, new NodeError('NODE_NOT_RUNNING', 'the node stops'))
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${name}\r\n\r\n`)
  if (head.length > 0) socket.unshift(head)
  const end = (): void => void socket.destroy()
  context.closing.addEventListener('abort', end)
  socket.once('close', () => context.closing.removeEventListener('abort', end))
  serve(socket, caller)
}

function refuse(socket: Duplex, error: NodeError, status: number = HTTP_STATUS[error.code]): void {
  const body = Buffer.from(JSON.stringify({ error: error.toBody() }))
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.toString()}`
  )
}
