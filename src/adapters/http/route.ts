import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AbortSignalLike } from '../../kit/clock.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { LongLine } from '../../kit/lines.js'
import type { Principal } from '../../ports/node-api.js'
import type { HttpError } from './http-error.js'
import type { SkipLimits } from './skipped-body.js'

/** The parsed request that a handler gets beside Node's own objects. */
export interface HttpCall {
  /** As it came, without the query; never decoded. */
  readonly path: string
  /** Without the `?`. */
  readonly query: string
  /**
   * Aborts when the client has hung up, its token ends or the node stops. An answer that goes on afterwards is cut: at
   * once when the token ended, after a second when the node stops.
   */
  readonly signal: AbortSignalLike
  /** Calls back when it aborts, at once when it has. */
  onAbort(run: () => void): void
  /** Did it abort because the node stops? The client may still get an answer then. */
  isStopping(): boolean
  /**
   * The whole body.
   * @throws HttpError 413 when it is larger than the route takes; 400 when the client hung up in it.
   */
  readBody(): Promise<Buffer>
  /** Reads past a body that `readBody` refused as too large; keeps its edges, null beyond the limits. Never rejects. */
  skipBody(limits: SkipLimits): Promise<LongLine | null>
}

/** A request whose token was good. */
export interface TokenCall extends HttpCall {
  readonly principal: Principal
  /** Calls back once when its token ends, also after the answer; at once when it has. */
  onTokenEnd(run: () => void): Unsubscribe
}

interface RouteShape {
  /** In upper case; HEAD is served only where it is named. */
  readonly methods: readonly string[]
  /** Largest body in bytes; default {@link BODY_MAX}. */
  readonly maxBodyBytes?: number
  /**
   * The handler reads every body, so that it can give its own answer to a larger one. Default: the listener refuses it
   * first.
   */
  readonly readsLargeBodies?: true
  /**
   * The body of an error that the listener answers with here, in the words of the protocol of the place; null: as
   * everywhere.
   */
  readonly errorBody?: (error: HttpError, request: RefusedHttpRequest) => object | null
  /**
   * Bytes of the body that the listener reads of a request that it refuses with 401 or 429, for an `errorBody` with the
   * id of the request. Only JSON that comes within a second is read. Of a body that is too large (413) it reads the
   * edges. Default: 0, neither.
   */
  readonly refusedBodyBytes?: (request: Pick<RefusedHttpRequest, 'method' | 'path'>) => number
}

/** A request that the listener answers with an error. */
export interface RefusedHttpRequest {
  readonly method: string
  readonly path: string
  /** Null when it was not read. */
  readonly body: Buffer | null
  /** Of a body that is too large; absent or null when they were not read. */
  readonly edges?: LongLine | null
}

/**
 * One path; or with `prefix` every path that begins so, with `suffix` only those with one segment between the two. A
 * whole path wins before any prefix, a prefix with a suffix before one without, then the longest.
 */
export type RoutePlace =
  | { readonly path: string; readonly prefix?: never; readonly suffix?: never }
  | { readonly prefix: string; readonly suffix?: string; readonly path?: never }

/** Without a token. It shows nothing that a stranger must not know. */
export type PublicRoute = RouteShape &
  RoutePlace & {
    readonly isPublic: true
    /** Is it answered however often an address asks? Default: no. */
    readonly isUnlimited?: true
    readonly handle: (request: IncomingMessage, response: ServerResponse, call: HttpCall) => unknown
  }

/** Behind a token. */
export type TokenRoute = RouteShape &
  RoutePlace & {
    readonly isPublic?: false
    readonly isUnlimited?: never
    readonly handle: (request: IncomingMessage, response: ServerResponse, call: TokenCall) => unknown
  }

/**
 * One path of the listener. An HttpError that `handle` throws before it answers is the answer; any other error is 500
 * INTERNAL without details.
 */
export type HttpRoute = PublicRoute | TokenRoute

/** Largest body of a route that names no other bound, in bytes. */
export const BODY_MAX = 1_048_576

/** The routes of a listener, found by path. */
export class HttpRouteTable {
  readonly #exact = new Map<string, HttpRoute>()
  readonly #prefixes: { readonly prefix: string; readonly suffix: string | undefined; readonly route: HttpRoute }[] = []

  constructor(routes: readonly HttpRoute[]) {
    for (const route of routes) {
      if (route.path !== undefined) this.#exact.set(route.path, route)
      else this.#prefixes.push({ prefix: route.prefix, suffix: route.suffix, route })
    }
    const isOpen = (suffix: string | undefined): number => (suffix === undefined ? 1 : 0)
    this.#prefixes.sort(
      (one, other) => isOpen(one.suffix) - isOpen(other.suffix) || other.prefix.length - one.prefix.length
    )
  }

  /** The route of a path; undefined for none. */
  find(path: string): HttpRoute | undefined {
    return this.#exact.get(path) ?? this.#prefixes.find((place) => isAt(path, place))?.route
  }
}

function isAt(
  path: string,
  { prefix, suffix }: { readonly prefix: string; readonly suffix: string | undefined }
): boolean {
  if (!path.startsWith(prefix)) return false
  if (suffix === undefined) return true
  const end = path.length - suffix.length
  return end > prefix.length && path.endsWith(suffix) && path.indexOf('/', prefix.length) >= end
}

/** `GET /health`: it is there. Tells nothing of the node. */
export function healthRoute(): HttpRoute {
  const body = Buffer.from('{"status":"ok"}')
  return {
    path: '/health',
    methods: ['GET', 'HEAD'],
    isPublic: true,
    // Probes may share the address of a proxy with its clients, and an answer costs no more than a refusal.
    isUnlimited: true,
    handle: (_request, response) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store' }
      response.writeHead(200, headers).end(body)
    }
  }
}
