import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { isRecord } from '../../../kit/json.js'
import { defaultCapability } from '../../../domain/card/card.js'
import { requestPayloadSchema } from '../../../domain/task/payloads.js'
import type { RequestPayload } from '../../../domain/task/payloads.js'
import type { AgentHost } from '../../agents/agent-host.js'
import type { CheckShare } from '../../agents/check-share.js'
import type { Directory } from '../../cards/directory.js'
import type { InFlight } from './in-flight.js'
import type { InboundMessage } from '../../messaging/inbound-message.js'
import { sizeOf } from '../../../kit/size.js'

/** Bytes of the inputs of one peer's tasks in flight. */
const MAX_INPUT_BYTES_PER_PEER = 64 * 1024 * 1024
/** Bytes of the inputs of all tasks in flight. */
const MAX_INPUT_BYTES = 256 * 1024 * 1024

/** What deciding whether work is taken needs. */
export interface AdmissionsDeps {
  readonly checkShare: Pick<CheckShare, 'payerOf' | 'within'>
  readonly agents: Pick<AgentHost, 'inputFault'>
  readonly directory: Pick<Directory, 'card'>
  readonly inFlight: Pick<InFlight, 'load'>
  readonly limits: { readonly maxInFlight: number; readonly maxInFlightPerPeer: number }
  /** Does somebody else coordinate the swarm by now, as far as this node has promised? */
  isPast(peer: NodeId, swarm: string, epoch: number): boolean
  /** Makes bytes of attachments into base64 text, as agents get them. */
  toAgentJson(value: unknown): unknown
}

/** What a notification asks, beside its id and input. */
const NOTIFICATION = requestPayloadSchema.omit({ requestId: true, input: true }).parse({ attempt: 1, capability: null })

/** What a notification asks: the agent's default capability, for nobody who waits. */
export function notificationRequest({ header, payload }: Pick<InboundMessage, 'header' | 'payload'>): RequestPayload {
  return notificationPayload(header.id, isRecord(payload) && 'input' in payload ? payload.input : payload)
}

/** What is asked for without a message to be answered. */
export function notificationPayload(requestId: string, input: unknown, capability: string | null = null): RequestPayload {
  // Member by member: what is spread and added to is an object of another kind each time, and every call makes one.
  const { attempt, description, swarm, timeoutMs, ttlMs, allowRepeat, isQuery, isAgain, isUnrecorded } = NOTIFICATION
  return { requestId, attempt, capability, input, description, swarm, timeoutMs, ttlMs, allowRepeat, isQuery, isAgain, isUnrecorded }
}

/** Which work this node takes: what there is room for, and what its agent can begin with. */
export class Admissions {
  readonly #deps: AdmissionsDeps

  constructor(deps: AdmissionsDeps) {
    this.#deps = deps
  }

  /** The payload with its capability named and its input as agents get it, or why it is not taken. */
  check({ peer, recipient }: Pick<InboundMessage, 'peer' | 'recipient'>, payload: RequestPayload): RequestPayload | NodeError {
    const { agents, checkShare, directory, isPast, toAgentJson } = this.#deps
    if (payload.swarm !== null && payload.epoch !== undefined && isPast(peer, payload.swarm, payload.epoch))
      return new NodeError('CONFLICT', 'another node coordinates the swarm now')
    if (!this.#hasCapacity(peer, sizeOf(payload.input))) return new NodeError('OVERLOADED', 'too many tasks are in flight on this node')
    const { agentId } = recipient
    const card = directory.card(recipient)
    const capability = payload.capability ?? (card === undefined ? null : (defaultCapability(card)?.id ?? null))
    if (capability === null) return new NodeError('CAPABILITY_NOT_FOUND', `agent ${agentId} takes messages, but has no capability to call`)
    try {
      const input = toAgentJson(payload.input)
      const payer = checkShare.payerOf(payload.requestId, peer)
      const fault = checkShare.within(payer, () => agents.inputFault(agentId, capability, input))
      if (fault !== null) return fault
      return capability === payload.capability && input === payload.input ? payload : { ...payload, capability, input }
    } catch (error) {
      return error instanceof NodeError ? error : new NodeError('INTERNAL', messageOf(error), { cause: error })
    }
  }

  #hasCapacity(peer: string, bytes: number): boolean {
    const { inFlight, limits } = this.#deps
    const [all, ofPeer] = [inFlight.load(), inFlight.load(peer)]
    if (all.count >= limits.maxInFlight || ofPeer.count >= limits.maxInFlightPerPeer) return false
    return all.bytes + bytes <= MAX_INPUT_BYTES && ofPeer.bytes + bytes <= MAX_INPUT_BYTES_PER_PEER
  }
}
