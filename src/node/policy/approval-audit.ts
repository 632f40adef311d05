import type { ErrorCode } from '../../kit/errors.js'
import { type NodeId, shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { addressText } from '../../domain/card/card.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Audit } from '../../ports/audit.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import type { AwaitingApproval } from '../messaging/inbound-message.js'
import type { Traffic } from '../observe/traffic.js'
import type { Waiting } from './pending-approvals.js'

/**
 * How the end of a wait goes on record: as an approval when a person decided on it, and as a refusal
 * when nobody did. A peer causes as many of those as it likes, and repeats of them share a line.
 */
export interface Noted {
  readonly kind: 'approval' | 'refusal'
  readonly why: string
}

/** Where approvals go on record. */
export interface ApprovalAuditDeps {
  readonly audit: Audit
  readonly directory: Directory
  readonly events: NodeEvents
  readonly telemetry: Telemetry
  readonly traffic: Traffic
  readonly self: NodeId
}

/** The record of what waited for a person: events, counts and the audit log. */
export class ApprovalAudit {
  readonly #deps: ApprovalAuditDeps

  constructor(deps: ApprovalAuditDeps) {
    this.#deps = deps
  }

  /** A message waits from now on. */
  asked({ incoming, rule, question }: AwaitingApproval): void {
    const { events, directory, telemetry } = this.#deps
    const { sender, recipient, header } = incoming
    const name = directory.namer()
    const from = { from: shown(name(sender)), fromKey: shortId(sender.nodeId) }
    const facts = { ...from, to: shown(name(recipient)), capability: question.capability, rule }
    events.add('approval', 'a message waits for approval: a2a-node approvals ls', facts)
    telemetry.log('info', 'a message waits for approval', { correlationId: header.correlationId ?? header.id, ...facts })
  }

  /** One that waited is not let in. */
  notPassed(one: Waiting, code: ErrorCode): void {
    const { telemetry, traffic } = this.#deps
    telemetry.count('messages_refused', code)
    traffic.refused(code, one.incoming.header)
  }

  /** A wait has ended. `code`: `ALLOWED` or why not. */
  ended(one: Waiting, outcome: { readonly code: string; readonly rule: string }, { kind, why }: Noted): void {
    const { audit, events, directory, telemetry, self } = this.#deps
    const { peer, sender, recipient, header } = one.incoming
    const what = one.question.capability === null ? '' : `: ${shown(one.question.capability, 128)}`
    telemetry.count('approvals', outcome.code)
    audit.append({
      kind,
      code: outcome.code,
      rule: outcome.rule,
      reason: `${one.id} ${why}${what}`,
      ...(peer === self ? {} : { peer }),
      sender: addressText(sender),
      recipient: addressText(recipient),
      messageType: header.type,
      sourceTier: tierText(one.question.sender.tier),
      targetTier: tierText(one.question.target.tier)
    })
    const name = directory.namer()
    events.add('approval', `a message that waited for approval: ${outcome.code}`, {
      id: one.id,
      why,
      from: shown(name(sender)),
      fromKey: shortId(sender.nodeId),
      to: shown(name(recipient))
    })
  }
}
