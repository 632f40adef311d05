import { messageOf } from '../kit/errors.js'
import { AddressLimit } from '../adapters/http/address-limit.js'
import { type HttpListener, startHttpListener } from '../adapters/http/listener.js'
import { healthRoute, type HttpRoute } from '../adapters/http/route.js'
import type { RateLimitSetting } from '../config/guardrails.js'
import { listenAddress } from '../config/public-url.js'
import type { RateLimit } from '../kit/rate.js'
import type { Tokens } from '../node/access/tokens.js'
import type { NodeDeps } from '../node/dependencies.js'
import type { Problem } from '../ports/node-api.js'
import type { OpenedGrpc } from './grpc/open-grpc.js'
import type { OpenedOAuth } from './open-oauth.js'
import type { StartDeps } from './open-home.js'
import type { LimitedRequests } from '../adapters/http/limited-requests.js'

/**
 * Binds the HTTP listener of the config; null when it has none. It serves nothing yet, so that a port conflict fails
 * the start before a mesh is founded or an invite used. @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID
 */
async function bindHttp({ options, unwind }: StartDeps, addressLimit: AddressLimit): Promise<HttpListener | null> {
  const { listen, hosts, origins, publicUrl, maxConnections } = options.config.http
  const address = listen === null ? null : listenAddress(listen)
  if (address === null) return null
  const listener = await startHttpListener({
    ...address,
    hosts,
    origins,
    publicUrl,
    limits: { maxConnections },
    addressLimit
  })
  unwind.add('HTTP listener', () => listener.close())
  return listener
}

/** Makes the limits of the config for client addresses, of all listeners together. */
function openAddressLimit({ options, clock }: StartDeps, limited: LimitedRequests): AddressLimit {
  const { anonymousLimit, wrongTokenLimit } = options.config.http
  const rates = { anonymous: rateOf(anonymousLimit), wrongToken: rateOf(wrongTokenLimit) }
  return new AddressLimit(rates, { clock, onRefused: (refused) => limited.add(refused) })
}

/** The listeners of a node that serve nothing yet. */
interface BoundListeners {
  readonly http: HttpListener | null
  readonly grpc: OpenedGrpc | null
  /** Why they may be unsafe or unreachable. */
  readonly problems: readonly Problem[]
}

/**
 * Binds the listeners of the config. Without a gRPC listener nothing of gRPC is loaded.
 * @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID
 */
export async function bindListeners(deps: StartDeps, limited: LimitedRequests): Promise<BoundListeners> {
  const addressLimit = openAddressLimit(deps, limited)
  const http = await bindHttp(deps, addressLimit)
  const isOff = deps.options.config.a2a.grpc === null
  const grpc = isOff ? null : await (await import('./grpc/open-grpc.js')).bindGrpc(deps, addressLimit)
  return { http, grpc, problems: [...exposureProblems(deps, http), ...(grpc?.problems ?? [])] }
}

function rateOf({ perMinute, burst }: RateLimitSetting): RateLimit {
  return { perSecond: perMinute / 60, burst }
}

/** URL of the listener for clients, as in cards and tokens. */
export function publicBase({ options }: StartDeps, { url }: HttpListener): string {
  return options.config.http.publicUrl ?? url
}

/**
 * Opens the OAuth server; null when disabled. It is loaded only when enabled: it costs more than the rest of the
 * gateway.
 */
export async function loadOAuth(deps: StartDeps, own: NodeDeps, listener: HttpListener): Promise<OpenedOAuth | null> {
  if (!deps.options.config.a2a.oauth.enabled) return null
  const { openOAuth } = await import('./open-oauth.js')
  return await openOAuth(deps, own, listener)
}

const SET_URL = 'set http.publicUrl to the URL by which they reach it'

/** The problem of a listener that other machines reach, for `status`; none with `http.publicUrl`, which means it. */
function exposureProblems({ options }: Pick<StartDeps, 'options'>, listener: HttpListener | null): Problem[] {
  if (listener === null || !listener.isExposed || options.config.http.publicUrl !== null) return []
  const place = listener.boundUrl.slice('http://'.length)
  const cards = listener.isWildcard ? '; agent cards name 127.0.0.1, which is another machine there' : ''
  return [
    {
      code: 'HTTP_EXPOSED',
      message: `other machines reach HTTP at ${place}, unencrypted (each request needs a token)${cards}: serve this machine alone, or ${SET_URL}`,
      next: `a2a-node stop && a2a-node start --http ${place.slice(place.lastIndexOf(':') + 1)}`
    }
  ]
}

/** The services over HTTP. */
interface ServedHttp {
  readonly listener: HttpListener
  readonly tokens: Pick<Tokens, 'admit'>
  readonly audit: NodeDeps['audit']
  /** Beside `/health`. */
  readonly routes: readonly HttpRoute[]
  readonly oauth: OpenedOAuth | null
}

/** Starts serving over HTTP. */
export function openHttp(
  { options, telemetry, unwind }: StartDeps,
  { listener, tokens, audit, routes, oauth }: ServedHttp
): void {
  // It closes first, since its routes use the node.
  unwind.add('HTTP listener', () => listener.close())
  if (listener.isExposed)
    telemetry.log('warn', 'HTTP is served beyond this machine, unencrypted; every request needs a token', {
      url: listener.boundUrl
    })
  if (listener.isWildcard && options.config.http.publicUrl === null)
    telemetry.log(
      'warn',
      `agent cards name 127.0.0.1, and clients elsewhere would look for this node on their own machine: ${SET_URL}`
    )
  listener.open({
    routes: [healthRoute(), ...routes],
    admit: (token) => tokens.admit(token) ?? oauth?.admit(token) ?? null,
    ...(oauth === null ? {} : { resourceMetadata: oauth.resourceMetadata }),
    onRefusal: ({ rule, reason }) => audit.append({ kind: 'control', code: 'FORBIDDEN', rule, reason }),
    onFault: (error) => telemetry.log('error', 'an HTTP request failed', { reason: messageOf(error) })
  })
}
