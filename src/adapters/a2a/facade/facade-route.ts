import type { IncomingMessage, ServerResponse } from 'node:http'
import type { NodeApi, Principal } from '../../../ports/node-api.js'
import { answerStream } from '../server/event-stream.js'
import { facadeAgent, facadeAgents } from './facade-agents.js'
import { FacadeFault, facadeFaultOf } from './facade-fault.js'
import { type FacadeRequest, readFacadeBody, readFacadeQuery } from './facade-request.js'
import { FacadeRuns, type FacadeRunDeps } from './facade-run.js'
import { agentPath, checkType, type GatewayCall } from '../server/gateway-route.js'

/** What a request asks of the facade. */
export type FacadeCall =
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'run' | 'stream'; readonly agent: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wrong-method'; readonly allow: string }

/** What the facade is told of a request, as the listener tells it. */
export interface FacadeRequestCall extends GatewayCall {
  isStopping(): boolean
}

/** What answering at `/agents` needs. */
export interface FacadeDeps extends FacadeRunDeps {
  apiFor(principal: Principal): NodeApi
}

const NOTHING: FacadeCall = { kind: 'nothing' }
const METHODS: Readonly<Record<'run' | 'stream', readonly string[]>> = { run: ['POST'], stream: ['GET', 'POST'] }

/**
 * What a method and a path ask of the facade: `/agents`, `/agents/{name}`, `/agents/{name}/run`, `/agents/{name}/stream`, and the
 * same below `/v1`. Null for paths below `/agents` that are others': those of the A2A protocol.
 */
export function facadeCall(method: string, path: string): FacadeCall | null {
  const isTwin = path.startsWith('/v1/')
  const plain = isTwin ? path.slice('/v1'.length) : path
  if (plain === '/agents') return method === 'GET' ? { kind: 'list' } : { kind: 'wrong-method', allow: 'GET' }
  const other = isTwin ? NOTHING : null
  const at = plain.startsWith('/agents/') ? agentPath(plain, '/agents/') : null
  if (at === null) return other
  const { agent, path: rest } = at
  if (rest === '') return method === 'GET' ? { kind: 'show', agent } : isTwin ? { kind: 'wrong-method', allow: 'GET' } : null
  if (rest !== '/run' && rest !== '/stream') return other
  const kind = rest === '/run' ? 'run' : 'stream'
  const allowed = METHODS[kind]
  return allowed.includes(method) ? { kind, agent } : { kind: 'wrong-method', allow: allowed.join(', ') }
}

/** A request that is one of the facade's. */
interface FacadeOperation {
  readonly asked: Exclude<FacadeCall, { kind: 'nothing' | 'wrong-method' }>
  /** Null of a GET. */
  readonly body: Buffer | null
  /** Does it go on after an event of a stream that is over? */
  readonly isComingAgain: boolean
}

/** Answers at `/agents`: plain JSON for clients that know no protocol. */
export class FacadeRoute {
  readonly #deps: FacadeDeps
  readonly #runs: FacadeRuns

  constructor(deps: FacadeDeps) {
    this.#deps = deps
    this.#runs = new FacadeRuns(deps)
  }

  /** @throws HttpError for a body that is too large or breaks off; all else is answered here. */
  async handle(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    call: FacadeRequestCall,
    asked: FacadeCall
  ): Promise<void> {
    const body = request.method === 'POST' ? await call.readBody() : null
    try {
      if (asked.kind === 'nothing') throw new FacadeFault('not_found', 'there is nothing at this path')
      if (asked.kind === 'wrong-method')
        throw new FacadeFault('method_not_allowed', `only ${asked.allow} may be used here`, { headers: { allow: asked.allow } })
      if (body !== null) checkType(request)
      await this.#answer(response, call, { asked, body, isComingAgain: request.headers['last-event-id'] !== undefined })
    } catch (error) {
      const fault = facadeFaultOf(error)
      if (fault.kind === 'internal_error') this.#deps.onUnexpected(fault)
      answer(response, { status: fault.status, headers: fault.headers, value: fault.toBody() })
    }
  }

  async #answer(response: ServerResponse, call: FacadeRequestCall, { asked, body, isComingAgain }: FacadeOperation): Promise<void> {
    const { principal: by, signal, query } = call
    const api = this.#deps.apiFor(by)
    if (asked.kind === 'list') return answer(response, { status: 200, value: { agents: await facadeAgents(api) } })
    const { agent } = asked
    if (asked.kind === 'show') return answer(response, { status: 200, value: await facadeAgent(api, agent) })
    if (body === null && isComingAgain) return endForGood(response)
    const request: FacadeRequest = body === null ? readFacadeQuery(query) : readFacadeBody(body)
    const caller = { by, api, agent, signal, isStopping: () => call.isStopping() }
    if (asked.kind === 'run') return answer(response, { status: 200, value: await this.#runs.run(request, caller) })
    await answerStream(response, await this.#runs.stream(request, caller), {
      clock: this.#deps.clock,
      encode: (value) => value,
      encodeFault: (error) => facadeFaultOf(error).toBody()
    })
  }
}

/** An EventSource comes again by itself whenever its stream has ended: to run the agent anew is not what its page asked for. It stops at 204. */
function endForGood(response: ServerResponse): void {
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}

function answer(
  response: ServerResponse,
  { status, value, headers = {} }: { readonly status: number; readonly value: unknown; readonly headers?: Readonly<Record<string, string>> }
): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const body = Buffer.from(JSON.stringify(value))
  const all = { 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store', ...headers }
  response.writeHead(status, all).end(body)
}
