import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpRoute } from './route.js'

/** How long a browser may remember what it was allowed, in seconds. */
const REMEMBER_SECONDS = '600'
/** A list of header names that a browser would send. */
const HEADER_NAMES = /^[A-Za-z0-9-]{1,64}(?:, ?[A-Za-z0-9-]{1,64}){0,31}$/

/** Lets a page of an origin that the config names read the answer. */
export function allowOrigin(response: ServerResponse, origin: string): void {
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', '*')
  response.setHeader('vary', 'origin')
}

/** Does a browser ask whether a page may send its request? */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

/** Answers a preflight. It comes without the token, so the browser learns only whether the path takes the method. */
export function answerPreflight(
  { headers }: IncomingMessage,
  response: ServerResponse,
  route: HttpRoute | undefined
): void {
  const names = headers['access-control-request-headers'] ?? ''
  if (route !== undefined) response.setHeader('access-control-allow-methods', route.methods.join(', '))
  if (HEADER_NAMES.test(names)) response.setHeader('access-control-allow-headers', names)
  response.setHeader('access-control-max-age', REMEMBER_SECONDS)
  response.writeHead(204).end()
}
