import type { IncomingMessage, ServerResponse } from 'node:http'
import type { NodeApi, Principal } from '../../../ports/node-api.js'
import { answerStream } from '../server/event-stream.js'
import { listedAgents, readAgentQuery } from './agent-list.js'
import { facadeAgent } from './facade-agents.js'
import { FacadeFault, facadeFaultOf } from './facade-fault.js'
import { type FacadeRequest, readFacadeBody, readFacadeQuery } from './facade-request.js'
import { FacadeRuns, type FacadeRunDeps } from './facade-run.js'
import { answerJson, checkType, type GatewayCall } from '../server/gateway-route.js'
import type { FacadeCall } from '../server/gateway-target.js'

/** A request to the facade, from the listener. */
export interface FacadeRequestCall extends GatewayCall {
  isStopping(): boolean
}

/** Dependencies of {@link FacadeRoute}. */
export interface FacadeDeps extends FacadeRunDeps {
  apiFor(principal: Principal): NodeApi
}

/** A recognized request to the facade. */
interface FacadeOperation {
  readonly asked: Exclude<FacadeCall, { kind: 'nothing' | 'wrong-method' }>
  /** Null for GET. */
  readonly body: Buffer | null
  /** Does it resume an ended stream, by `Last-Event-ID`? */
  readonly isComingAgain: boolean
}

/** Answers at `/agents`: plain JSON for clients without A2A. */
export class FacadeRoute {
  readonly #deps: FacadeDeps
  readonly #runs: FacadeRuns

  constructor(deps: FacadeDeps) {
    this.#deps = deps
    this.#runs = new FacadeRuns(deps)
  }

  /** @throws HttpError for a body that is too large or breaks off; other errors are answered. */
  async handle(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    call: FacadeRequestCall,
    asked: FacadeCall
  ): Promise<void> {
    const body = request.method === 'POST' ? await call.readBody() : null
    try {
      if (asked.kind === 'nothing') throw new FacadeFault('not_found', 'there is nothing at this path')
      if (asked.kind === 'wrong-method')
        throw new FacadeFault('method_not_allowed', `only ${asked.allow} may be used here`, {
          headers: { allow: asked.allow }
        })
      if (body !== null) checkType(request)
      await this.#answer(response, call, { asked, body, isComingAgain: request.headers['last-event-id'] !== undefined })
    } catch (error) {
      const fault = facadeFaultOf(error)
      if (fault.kind === 'internal_error') this.#deps.onUnexpected(fault)
      if (!response.headersSent)
        for (const [name, value] of Object.entries(fault.headers)) response.setHeader(name, value)
      answerJson(response, fault.status, fault.toBody())
    }
  }

  async #answer(
    response: ServerResponse,
    call: FacadeRequestCall,
    { asked, body, isComingAgain }: FacadeOperation
  ): Promise<void> {
    const { principal: by, signal, query } = call
    const api = this.#deps.apiFor(by)
    if (asked.kind === 'list') return answerJson(response, 200, await listedAgents(api, readAgentQuery(query)))
    const { agent } = asked
    if (asked.kind === 'show') return answerJson(response, 200, await facadeAgent(api, agent))
    if (body === null && isComingAgain) return endForGood(response)
    const request: FacadeRequest = body === null ? readFacadeQuery(query) : readFacadeBody(body)
    const caller = { by, api, agent, signal, isStopping: () => call.isStopping() }
    if (asked.kind === 'run') return answerJson(response, 200, await this.#runs.run(request, caller))
    await answerStream(response, await this.#runs.stream(request, caller), {
      clock: this.#deps.clock,
      encode: (value) => value,
      encodeFault: (error) => facadeFaultOf(error).toBody()
    })
  }
}

/** Answers 204, at which an EventSource stops. Else it reconnects after each stream and would run the agent again. */
function endForGood(response: ServerResponse): void {
  response.writeHead(204, { 'cache-control': 'no-store' }).end()
}
