import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { IdSource } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { SCHEMA_VERSION, type A2AEnvelope, type EnvelopeMetadata, type MessageType } from './envelope.js'
import { assertHeader, headerOf, type EnvelopeHeader } from './header.js'

/** The caller's fields of a new envelope; the factory adds id, version and time. */
export interface EnvelopeParts {
  /** `agentId@nodeId`. */
  readonly sender: string
  /** `agentId@nodeId`, `*`, or a capability id with `metadata.routingHint`. */
  readonly recipient: string
  readonly type: MessageType
  readonly payload: unknown
  readonly correlationId?: string
  readonly metadata?: EnvelopeMetadata
}

/** The caller's fields of an answer. */
export interface ReplyParts {
  readonly type: MessageType
  readonly payload: unknown
  /** The answering agent; default the recipient of the request. Needed when that was `*` or a capability. */
  readonly sender?: string
  readonly metadata?: EnvelopeMetadata
}

/** The thread of a message: its correlation id, or its own id when it opens one. */
export function threadOf(header: Pick<EnvelopeHeader, 'id' | 'correlationId'>): string {
  return header.correlationId ?? header.id
}

/** Makes envelopes: unique ids and times come from the parts it is given. */
export class EnvelopeFactory {
  readonly #ids: IdSource
  readonly #clock: Pick<Clock, 'now'>

  constructor(ids: IdSource, clock: Pick<Clock, 'now'>) {
    this.#ids = ids
    this.#clock = clock
  }

  /**
   * A new envelope. A task-proposal without a correlation id opens a thread under its own id.
   * @throws NodeError INVALID_ENVELOPE naming the invalid part
   */
  create(parts: EnvelopeParts): A2AEnvelope {
    if (!isRecord(parts)) throw new NodeError('INVALID_ENVELOPE', 'an envelope is made of an object of parts')
    const id = this.#ids.next('msg')
    const correlationId = parts.correlationId ?? (parts.type === 'task-proposal' ? id : undefined)
    const envelope = {
      id,
      schemaVersion: SCHEMA_VERSION,
      sender: parts.sender,
      recipient: parts.recipient,
      ...(correlationId === undefined ? {} : { correlationId }),
      type: parts.type,
      timestamp: this.#clock.now(),
      payload: parts.payload,
      ...(parts.metadata === undefined ? {} : { metadata: parts.metadata })
    }
    assertHeader(headerOf(envelope))
    return envelope
  }

  /**
   * An answer to `request`, back to its sender and in its thread.
   * @throws NodeError INVALID_ENVELOPE as `create`, and when the sender is unknown: the request went to `*` or a
   * capability and none is given
   */
  reply(request: EnvelopeHeader, parts: ReplyParts): A2AEnvelope {
    if (!isRecord(request) || !isRecord(parts))
      throw new NodeError('INVALID_ENVELOPE', 'an answer is made of an envelope and an object of parts')
    const isNamed = request.recipient !== '*' && request.metadata?.routingHint === undefined
    const sender = parts.sender ?? (isNamed ? request.recipient : null)
    if (sender === null)
      throw new NodeError('INVALID_ENVELOPE', 'sender: an answer to a broadcast or a capability needs a sender')
    return this.create({
      sender,
      recipient: request.sender,
      type: parts.type,
      payload: parts.payload,
      correlationId: threadOf(request),
      ...(parts.metadata === undefined ? {} : { metadata: parts.metadata })
    })
  }
}
