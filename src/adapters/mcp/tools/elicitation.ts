import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  inputRequired,
  type InputRequiredResult,
  ProtocolError,
  type Server,
  type ServerContext
} from '@modelcontextprotocol/server'
import { clientSide, type ClientAsk, type ClientSide } from './client-ask.js'
import type { RequestStates } from '../http/request-states.js'
import { JSON_RPC } from '../server/structured-error.js'

/** Rounds of questions that one request of a client with a handshake may take. */
const MAX_ROUNDS = 8
/** How long such a client may take for an answer, in milliseconds. */
const ANSWER_MS = 300_000

/**
 * For the SDK, which asks clients with a handshake by its own requests and calls the handler again with the answers.
 */
export const ASKING = { maxRounds: MAX_ROUNDS, roundTimeoutMs: ANSWER_MS }

/** The parts of a request that its rounds have in common. */
export type Elicited = readonly [method: string, name: string, args: Readonly<Record<string, unknown>>]

/** Connects handlers that ask their client with the two forms of questions in the protocol. */
export class Elicitation {
  readonly #server: Server
  readonly #states: RequestStates
  readonly #era: 'legacy' | 'modern'

  constructor(server: Server, { states, era }: { readonly states: RequestStates; readonly era: 'legacy' | 'modern' }) {
    this.#server = server
    this.#states = states
    this.#era = era
  }

  /** The client of this request, for its handler. @throws ProtocolError for a state that this node did not seal */
  client({ mcpReq }: ServerContext, about: Elicited): ClientSide {
    const carried: unknown = mcpReq.requestState()
    const state = carried === undefined ? undefined : this.#opened(about, carried)
    const given = { answers: mcpReq.inputResponses, state }
    if (this.#era === 'modern') return clientSide(this.#declared(mcpReq.envelope), given)
    return clientSide(this.#declared(mcpReq.envelope), {
      ...given,
      ask: async (request) => await mcpReq.send(request as never, { timeout: ANSWER_MS, signal: mcpReq.signal })
    })
  }

  /** The name that the client of this request gave itself. */
  clientName({ mcpReq }: ServerContext): string | undefined {
    if (this.#era === 'legacy') return this.#server.getClientVersion()?.name
    const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope
    return (envelope?.[CLIENT_INFO_META_KEY] as Implementation | undefined)?.name
  }

  /** Questions in the form of the protocol. */
  ask({ requests, state }: ClientAsk, about: Elicited): InputRequiredResult {
    return inputRequired({
      inputRequests: { ...requests },
      ...(state === undefined ? {} : { requestState: this.#states.seal(about, state) })
    })
  }

  /** Since MCP 2026-07-28 each request carries the client's capabilities. */
  #declared(envelope: Readonly<Record<string, unknown>> | undefined): ClientCapabilities | undefined {
    if (this.#era === 'legacy') return this.#server.getClientCapabilities()
    return envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined
  }

  #opened(about: Elicited, carried: unknown): unknown {
    const opened = typeof carried === 'string' ? this.#states.open(about, carried) : null
    if (opened === null) throw new ProtocolError(JSON_RPC.INVALID_PARAMS, 'Invalid or expired requestState')
    return opened.value
  }
}
