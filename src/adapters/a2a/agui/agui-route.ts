import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../../kit/clock.js'
import type { Gateway } from '../../../ports/gateway.js'
import { errorEvent } from './agui-events.js'
import { readAguiInput } from './agui-input.js'
import { type AguiCaller, beginRun, eventsOf } from './agui-run.js'
import { answerStream } from '../server/event-stream.js'
import { A2AFault, faultOf } from '../server/fault.js'
import { answerJson, checkType, type GatewayCall } from '../server/gateway-route.js'
import { parsedBody } from '../server/json-rpc.js'
import type { StreamItem } from '../server/operations.js'

/** Dependencies of {@link AguiRoute}. */
export interface AguiRouteDeps {
  readonly gateway: Gateway
  readonly clock: Clock
}

/** Answers `POST` of a `RunAgentInput` with the events of its run (SSE binding of AG-UI 1.0). */
export class AguiRoute {
  readonly #deps: AguiRouteDeps

  constructor(deps: AguiRouteDeps) {
    this.#deps = deps
  }

  /**
   * `agent`: of the URL; null: the input names one.
   * @throws HttpError for a body that is too large or breaks off; other errors are answered.
   */
  async handle(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    call: GatewayCall,
    agent: string | null
  ): Promise<void> {
    const { gateway, clock } = this.#deps
    const body = request.method === 'POST' ? await call.readBody() : null
    const caller: AguiCaller = { gateway, by: call.principal, agent, signal: call.signal }
    try {
      if (body === null) throw new A2AFault('METHOD_NOT_FOUND', 'a run is asked for with POST')
      checkType(request)
      const begun = await beginRun(readAguiInput(parsedBody(body)), caller)
      await answerStream(response, itemsOf(eventsOf(begun, caller)), {
        clock,
        encode: (value) => value,
        encodeFault: (error) => {
          const { kind, message } = faultOf(error)
          return errorEvent(message, kind)
        }
      })
    } catch (error) {
      // A request refused before its run began has no stream.
      const fault = faultOf(error)
      answerJson(response, fault.status, fault.toRest())
    }
  }
}

/** The events have no ids: a broken stream cannot be resumed. */
async function* itemsOf(events: AsyncIterable<object>): AsyncIterable<StreamItem> {
  for await (const value of events) yield { id: null, value }
}
