import type { Clock } from '../../kit/clock.js'
import type { ErrorCode } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { parseAddress } from '../../domain/card/card.js'
import { decide, passedOver } from '../../domain/routing/decide.js'
import type { RoutingQuestion, RoutingRules, Verdict } from '../../domain/routing/decide.js'
import type { RoutingPolicy } from '../../domain/routing/policy-verdict.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { Audit } from '../../ports/audit.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import { hopsOf } from '../observe/traffic.js'
import type { Traffic, TrafficHeader } from '../observe/traffic.js'

/** The most refusals per second that become events; the audit log has all. */
const EVENTS_PER_SECOND = 20

/** Why a message does not pass, in this node's words. */
export interface Refusal {
  readonly code: ErrorCode
  readonly rule: string
  readonly reason: string
}

/** The header of a refused message; null when it could not be read. */
export type RefusedHeader = TrafficHeader | null

/** The source of a refused message. */
export interface RefusedFrom {
  /** Its node; null for a message of this node. */
  readonly peer: NodeId | null
  readonly header: RefusedHeader
  /** Effective tiers of sender and recipient, where known. */
  readonly from?: Tier
  readonly to?: Tier
}

/** The verdict of the rules on a message, and its time in monotonic milliseconds. */
export interface Decision {
  readonly verdict: Verdict
  readonly at: number
}

/** Dependencies of {@link AccessControl}. */
export interface AccessControlDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly audit: Audit
  readonly directory: Directory
  readonly events: NodeEvents
  readonly traffic: Traffic
  /** The rules in force now. */
  readonly rules: () => RoutingRules
}

/** The rules of this node, and the record of their refusals. */
export class AccessControl {
  readonly #deps: AccessControlDeps
  #policy: RoutingPolicy | null = null
  /** The rules in force with the policy, rebuilt only after a change. */
  #joined: { readonly rules: RoutingRules; readonly withPolicy: RoutingRules } | null = null
  /** The rules set by a program of this node. */
  #change: Partial<Omit<RoutingRules, 'policy'>> = {}
  #second = 0
  #inSecond = 0
  #unshown = 0

  constructor(deps: AccessControlDeps) {
    this.#deps = deps
  }

  /** Sets the node's own rules; null for none. */
  usePolicy(policy: RoutingPolicy | null): void {
    this.#policy = policy
    this.#joined = null
  }

  /** The rules in force now. */
  rules(): RoutingRules {
    const rules = this.meshRules()
    if (this.#joined?.rules !== rules)
      this.#joined = { rules, withPolicy: { ...rules, ...this.#change, policy: this.#policy } }
    return this.#joined.withPolicy
  }

  /** The rules of the mesh, without this node's policy and {@link setRules}. */
  meshRules(): RoutingRules {
    return this.#deps.rules()
  }

  /** Sets rules for this node until it stops, above those of the mesh; members not given stay. */
  setRules(change: Partial<Omit<RoutingRules, 'policy'>>): void {
    this.#change = { ...this.#change, ...change }
    this.#joined = null
  }

  /** True when replies must pass the rules themselves. */
  get isStrict(): boolean {
    return this.rules().replies === 'strict'
  }

  /** Decides on a message, and counts and times the decision. `since`: its arrival, in monotonic milliseconds. */
  decide(question: RoutingQuestion, since: number): Decision {
    const { clock, telemetry } = this.#deps
    const verdict = this.ask(question)
    const at = clock.monotonic()
    telemetry.count('routing_decisions', verdict.allowed ? 'allowed' : verdict.asks === true ? 'ask' : verdict.code)
    telemetry.time('routing_decision_ms', at - since)
    return { verdict, at }
  }

  /**
   * The rule that allows a message; null for a refused one or one that needs approval. Counts nothing: see
   * {@link passed}.
   */
  allows(question: RoutingQuestion): string | null {
    const verdict = this.ask(question)
    return verdict.allowed ? verdict.rule : null
  }

  /** Counts a message allowed by {@link allows}, with the duration of the decision. */
  passed(decisionMs: number): void {
    const { telemetry } = this.#deps
    telemetry.count('routing_decisions', 'allowed')
    telemetry.time('routing_decision_ms', decisionMs)
  }

  /** The verdict of the rules, without counting. */
  ask(question: RoutingQuestion): Verdict {
    return decide(this.rules(), question)
  }

  /** The `ask` rule that matches but has nobody to ask; null for none. */
  askedNobody(question: RoutingQuestion): Verdict | null {
    return passedOver(this.rules(), question)
  }

  /** The verdict without the policy of this node. */
  askTable(question: RoutingQuestion): Verdict {
    return decide({ ...this.rules(), policy: null }, question)
  }

  /**
   * Records a refusal: counted, in the audit log, among the events. For a message of this node, the record names the
   * other node as its peer. `strike`: a refusal that an honest peer cannot cause.
   */
  record(kind: 'refusal' | 'strike', refusal: Refusal, from: RefusedFrom): void {
    const { telemetry, audit } = this.#deps
    const { header, from: source, to } = from
    const peer = from.peer ?? otherNode(header)
    telemetry.count('messages_refused', refusal.code)
    audit.append({
      kind,
      ...refusal,
      ...(peer === null ? {} : { peer }),
      ...(header === null
        ? {}
        : { sender: header.sender, recipient: header.recipient, messageType: header.type, ...hopsOf(header) }),
      ...(source === undefined ? {} : { sourceTier: tierText(source) }),
      ...(to === undefined ? {} : { targetTier: tierText(to) })
    })
    if (header !== null) this.#deps.traffic.refused(refusal.code, header)
    this.#tell(refusal, from)
  }

  /** Limits the events, so that many refusals do not push out all others. */
  #tell({ code, rule, reason }: Refusal, { peer, header }: RefusedFrom): void {
    const { clock, directory, events } = this.#deps
    const second = Math.floor(clock.monotonic() / 1000)
    if (second !== this.#second) this.#inSecond = 0
    this.#second = second
    if (++this.#inSecond > EVENTS_PER_SECOND) {
      this.#unshown++
      return
    }
    const name = directory.namer()
    events.add('refusal', `a message was refused: ${reason}`, {
      code,
      rule,
      sender: header === null ? null : shown(name(header.sender)),
      recipient: header === null ? null : shown(name(header.recipient)),
      ...(peer === null ? {} : { peer: directory.ref(peer).name }),
      ...(this.#unshown === 0 ? {} : { notShownBefore: this.#unshown })
    })
    this.#unshown = 0
  }
}

/** The node that a message of this node was for; null within this one. */
function otherNode(header: RefusedHeader): NodeId | null {
  const to = header === null ? undefined : parseAddress(header.recipient)?.nodeId
  return to === undefined || to === parseAddress(header?.sender ?? '')?.nodeId ? null : to
}
