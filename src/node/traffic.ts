import type { Clock } from '../kit/clock.js'
import type { ErrorCode } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { shown } from '../kit/text.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { tierText } from '../domain/routing/tier.js'
import type { Tier } from '../domain/routing/tier.js'
import type { Audit } from '../ports/audit.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { A2ALogEvent, A2AObservability, RoutingPath } from './observability.js'

/** What noting messages needs. */
export interface TrafficParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly audit: Audit
  readonly observability: A2AObservability
}

/** What is noted of a message. */
export type TrafficHeader = Pick<EnvelopeHeader, 'sender' | 'recipient' | 'type'> &
  Partial<Pick<EnvelopeHeader, 'id' | 'correlationId' | 'metadata'>>

/** A message that the rules let pass. */
export interface Passage {
  /** The other node; null within this one. */
  readonly peer: NodeId | null
  readonly header: TrafficHeader
  /** Effective tiers of sender and recipient. */
  readonly from: Tier
  readonly to: Tier
  /** The rule that let it pass. */
  readonly rule: string
  /** When its way through this node began, monotonic milliseconds. */
  readonly since: number
}

/** The one place where messages are counted, timed, told of and, across tiers, put on record: each once on each node. */
export class Traffic {
  readonly #parts: TrafficParts

  constructor(parts: TrafficParts) {
    this.#parts = parts
  }

  /** A message of this node was handed to the channel, or to the agent here. */
  sent(passage: Passage, path: RoutingPath): void {
    const { telemetry } = this.#parts
    const duration = this.#elapsed(passage)
    const { header } = passage
    telemetry.count('messages_sent', header.type)
    telemetry.time('routing_ms', duration)
    this.#emit('message-sent', header)
    this.#decided(header, path, duration)
    // Within this node the road in puts it on record.
    if (passage.peer !== null) this.#acrossTiers('sent', passage)
    this.#line('a message was sent', passage)
  }

  /** A message that could be read came in, whatever becomes of it. */
  received(header: TrafficHeader): void {
    this.#parts.telemetry.count('messages_received', header.type)
    this.#emit('message-received', header)
  }

  /** Bytes came in that are no message. */
  unreadable(): void {
    this.#parts.telemetry.count('messages_received', 'unreadable')
    this.#parts.observability.emit({ type: 'error', timestamp: this.#parts.clock.now(), success: false })
  }

  /** A message that came in goes to its agent. */
  delivered(passage: Passage): void {
    this.#parts.telemetry.count('messages_delivered', passage.header.type)
    // Of a message within this node the road out has told already.
    if (passage.peer !== null) this.#decided(passage.header, 'remote', this.#elapsed(passage))
    this.#acrossTiers(passage.peer === null ? 'local' : 'received', passage)
    this.#line('a message came in', passage)
  }

  /** A message of another node was carried on to a third. */
  passed(passage: Passage): void {
    this.#parts.telemetry.count('messages_passed_on', passage.header.type)
    this.#decided(passage.header, 'remote', this.#elapsed(passage))
    this.#acrossTiers('passed-on', passage)
    this.#line('a message was passed on', passage)
  }

  /** A message did not pass the rules, or could not be sent. */
  refused(code: ErrorCode, header: TrafficHeader, path: RoutingPath = pathOf(header)): void {
    const { telemetry } = this.#parts
    this.#decided(header, path, null)
    if (telemetry.logs('debug')) telemetry.log('debug', 'a message was refused', { code, ...lineFields(header) })
  }

  #elapsed({ since }: Passage): number {
    return Math.max(0, this.#parts.clock.monotonic() - since)
  }

  #emit(type: A2ALogEvent['type'], { id, sender, recipient, type: messageType }: TrafficHeader): void {
    const { observability, clock } = this.#parts
    observability.emit({ type, envelopeId: id, sender, recipient, messageType, timestamp: clock.now() })
  }

  /** `duration` is null for what did not pass. */
  #decided({ id, sender, recipient, type: messageType, metadata }: TrafficHeader, routingPath: RoutingPath, duration: number | null): void {
    this.#parts.observability.emit({
      type: 'routing-decision',
      envelopeId: id,
      sender,
      recipient,
      messageType,
      routingPath,
      hops: metadata?.hops,
      duration: duration ?? undefined,
      success: duration !== null,
      timestamp: this.#parts.clock.now()
    })
  }

  #acrossTiers(code: 'sent' | 'received' | 'local' | 'passed-on', { peer, header, from, to, rule }: Passage): void {
    if (from === to) return
    this.#parts.audit.append({
      kind: 'cross-tier',
      code,
      rule,
      ...(peer === null ? {} : { peer }),
      sender: header.sender,
      recipient: header.recipient,
      messageType: header.type,
      sourceTier: tierText(from),
      targetTier: tierText(to),
      ...hopsOf(header)
    })
  }

  #line(message: string, { header, rule }: Passage): void {
    const { telemetry } = this.#parts
    if (telemetry.logs('debug')) telemetry.log('debug', message, { ...lineFields(header), rule })
  }
}

function pathOf({ sender, recipient }: TrafficHeader): RoutingPath {
  const nodeOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1)
  return nodeOf(sender) === nodeOf(recipient) ? 'local' : 'remote'
}

/** The nodes that a message passed, as the audit log names them. */
export function hopsOf({ metadata }: TrafficHeader): { readonly hops?: string } {
  const { hops = [] } = metadata ?? {}
  return hops.length === 0 ? {} : { hops: hops.join(' ') }
}

/** What a log line says of a message: enough to follow its thread over all nodes. */
function lineFields({ id, correlationId, sender, recipient, type }: TrafficHeader): Record<string, unknown> {
  return {
    correlationId: safe(correlationId ?? id),
    message: safe(id),
    type,
    sender: shown(sender),
    recipient: shown(recipient)
  }
}

function safe(text: string | undefined): string | null {
  return text === undefined ? null : shown(text)
}
