import type { Mutable } from '../../kit/transient.js'
import { Stamps } from '../../kit/clock.js'
import type { Clock } from '../../kit/clock.js'
import { asNodeError, type ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { EnvelopeHeader } from '../../domain/envelope/codec.js'
import { nodeOfAddress } from '../../domain/card/card.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { Audit, AuditEvent } from '../../ports/audit.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { A2ALogEvent, A2AObservability, RoutingPath } from './observability.js'

/** Dependencies of {@link Traffic}. */
export interface TrafficDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly audit: Audit
  readonly observability: A2AObservability
}

/** The recorded fields of a message. */
export type TrafficHeader = Pick<EnvelopeHeader, 'sender' | 'recipient' | 'type'> &
  Partial<Pick<EnvelopeHeader, 'id' | 'correlationId' | 'metadata'>>

/** A message that passed the rules. */
export interface Passage {
  /** The other node; null within this one. */
  readonly peer: NodeId | null
  readonly header: TrafficHeader
  /** Effective tiers of sender and recipient. */
  readonly from: Tier
  readonly to: Tier
  /** The rule that let it pass. */
  readonly rule: string
  /**
   * When its way through this node began, and when it passed the rules or was handed on: monotonic milliseconds, the
   * latter just now.
   */
  readonly since: number
  readonly at: number
}

/** The one place where messages are counted, timed, logged and, across tiers, audited: each once on each node. */
export class Traffic {
  readonly #deps: TrafficDeps
  readonly #stamps: Stamps
  /** Errors of messages whose refusal is already reported. */
  readonly #reported = new WeakSet<Error>()

  constructor(deps: TrafficDeps) {
    this.#deps = deps
    this.#stamps = new Stamps(deps.clock)
  }

  /**
   * Reports a message passed to the channel or to the local agent. `path` null: this node's inbound pipeline reports
   * the decision.
   */
  sent(passage: Passage, path: RoutingPath | null): void {
    const { telemetry } = this.#deps
    const { header, since, at } = passage
    telemetry.count('messages_sent', header.type)
    telemetry.time('routing_ms', at - since)
    this.#emit('message-sent', header, { at, path: passage.peer === null ? 'local' : 'remote' })
    if (path !== null) this.#passedRules(passage, path)
    // Within this node, the inbound pipeline records it.
    if (passage.peer !== null) this.#acrossTiers('sent', passage)
    this.#line('a message was sent', passage)
  }

  /** Reports a readable message that came in, before any decision. `at`: monotonic milliseconds, just now. */
  received(header: TrafficHeader, at: number): void {
    this.#deps.telemetry.count('messages_received', header.type)
    this.#emit('message-received', header, { at, path: pathOf(header) })
  }

  /** Reports received bytes that are no message. */
  unreadable(): void {
    this.#deps.telemetry.count('messages_received', 'unreadable')
    this.#error('INVALID_ENVELOPE')
  }

  /**
   * Reports a message that goes to its agent. The outbound pipeline reports one within this node, unless it awaited
   * approval.
   */
  delivered(passage: Passage, isReportedOut = passage.peer === null): void {
    this.#deps.telemetry.count('messages_delivered', passage.header.type)
    if (!isReportedOut) this.#passedRules(passage, passage.peer === null ? 'local' : 'remote')
    this.#acrossTiers(passage.peer === null ? 'local' : 'received', passage)
    this.#line('a message came in', passage)
  }

  /** Reports a message relayed for another node. */
  passed(passage: Passage): void {
    this.#deps.telemetry.count('messages_passed_on', passage.header.type)
    this.#passedRules(passage, 'remote')
    this.#acrossTiers('passed-on', passage)
    this.#line('a message was passed on', passage)
  }

  /** Marks the error of a refusal that was reported by {@link refused}, and returns it. */
  reported<E extends Error>(error: E): E {
    this.#reported.add(error)
    return error
  }

  /**
   * Reports the error of a message of this node that could not be sent: once, though several callers may pass the same
   * error.
   * `header`: null for a message without a sound header.
   */
  notSent(error: unknown, header: TrafficHeader | null, path?: RoutingPath): void {
    if (error instanceof Error && this.#reported.has(error)) return
    if (error instanceof Error) this.#reported.add(error)
    const { code } = asNodeError(error)
    if (header === null) this.#error(code)
    else this.refused(code, header, path)
  }

  /** Reports a message that was refused. */
  refused(code: ErrorCode, header: TrafficHeader, path: RoutingPath = pathOf(header)): void {
    const { telemetry } = this.#deps
    this.#decided(header, path, { code, duration: null, timestamp: this.#deps.clock.now() })
    if (telemetry.logs('debug')) telemetry.log('debug', 'a message was refused', { code, ...lineFields(header) })
  }

  #error(code: ErrorCode): void {
    this.#deps.observability.emit({ type: 'error', code, timestamp: this.#deps.clock.now(), success: false })
  }

  #emit(
    type: A2ALogEvent['type'],
    header: TrafficHeader,
    { at, path }: { readonly at: number; readonly path: RoutingPath }
  ): void {
    const { id, sender, recipient, type: messageType } = header
    const timestamp = this.#stamps.of(at)
    this.#deps.observability.emit({
      type,
      envelopeId: id,
      sender,
      recipient,
      messageType,
      routingPath: path,
      timestamp
    })
  }

  #passedRules({ header, since, at }: Passage, path: RoutingPath): void {
    this.#decided(header, path, { code: undefined, duration: at - since, timestamp: this.#stamps.of(at) })
  }

  /** `duration`: null for a message that did not pass. */
  #decided(
    { id, sender, recipient, type: messageType, metadata }: TrafficHeader,
    routingPath: RoutingPath,
    {
      code,
      duration,
      timestamp
    }: { readonly code: ErrorCode | undefined; readonly duration: number | null; readonly timestamp: number }
  ): void {
    this.#deps.observability.emit({
      type: 'routing-decision',
      envelopeId: id,
      sender,
      recipient,
      messageType,
      routingPath,
      hops: metadata?.hops,
      duration: duration ?? undefined,
      success: duration !== null,
      code,
      timestamp
    })
  }

  #acrossTiers(code: 'sent' | 'received' | 'local' | 'passed-on', { peer, header, from, to, rule, at }: Passage): void {
    if (from === to) return
    const { sender, recipient, type: messageType } = header
    const [sourceTier, targetTier] = [tierText(from), tierText(to)]
    const event: Mutable<AuditEvent> = {
      kind: 'cross-tier',
      code,
      rule,
      sender,
      recipient,
      messageType,
      sourceTier,
      targetTier
    }
    if (peer !== null) event.peer = peer
    const { hops } = hopsOf(header)
    if (hops !== undefined) event.hops = hops
    this.#deps.audit.append(event, this.#stamps.of(at))
  }

  #line(message: string, { header, rule }: Passage): void {
    const { telemetry } = this.#deps
    if (telemetry.logs('debug')) telemetry.log('debug', message, { ...lineFields(header), rule })
  }
}

function pathOf({ sender, recipient }: TrafficHeader): RoutingPath {
  return nodeOfAddress(sender) === nodeOfAddress(recipient) ? 'local' : 'remote'
}

/** The nodes that relayed a message, in the form of the audit log. */
export function hopsOf({ metadata }: TrafficHeader): { readonly hops?: string } {
  const { hops = [] } = metadata ?? {}
  return hops.length === 0 ? {} : { hops: hops.join(' ') }
}

/** The log fields of a message: enough to follow its thread over all nodes. */
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
