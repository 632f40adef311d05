import type { Socket } from 'node:net'
import type { HttpRefusal } from './authority.js'
import { HttpError } from './http-error.js'

const REASONS = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' } as const
type HttpStatus = keyof typeof REASONS

const REFUSALS: Readonly<Record<HttpStatus, HttpRefusal & { readonly code: string }>> = {
  400: { status: 400, rule: 'http-malformed', code: 'MALFORMED', reason: 'the request is not well-formed HTTP' },
  408: { status: 408, rule: 'http-slow', code: 'TIMEOUT', reason: 'the request did not come in time' },
  431: { status: 431, rule: 'http-size', code: 'HEADERS_TOO_LARGE', reason: 'the headers are too large' }
}

/**
 * Ends a connection that Node's parser gave up. It closes at once when the client broke off or an answer is under way,
 * else after time to read the answer. Returns null when there is nothing to audit: the client broke off or sent
 * nothing.
 */
export function refuseConnection(
  error: NodeJS.ErrnoException,
  socket: Socket,
  { hasBegun, drainMs, shape }: { readonly hasBegun: boolean; readonly drainMs: number; shape(error: HttpError): void }
): HttpRefusal | null {
  const status = statusOf(error)
  if (status === null || !socket.writable || hasBegun) {
    socket.destroy()
    return null
  }
  const { code, ...refusal } = REFUSALS[status]
  const reported = new HttpError(status, { code, message: `refused: ${refusal.reason}` })
  shape(reported)
  const { body } = reported
  const head = `HTTP/1.1 ${status} ${REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  socket.end(`${head}Cache-Control: no-store\r\nConnection: close\r\n\r\n${body.toString()}`)
  const timer = setTimeout(() => socket.destroy(), drainMs)
  socket.once('close', () => clearTimeout(timer))
  return socket.bytesRead === 0 ? null : refusal
}

function statusOf({ code = '' }: NodeJS.ErrnoException): HttpStatus | null {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  return code.startsWith('HPE_') ? 400 : null
}
