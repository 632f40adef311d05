import { NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { type AgentAddress, OPERATOR } from '../../../domain/card/card.js'
import { askedWork } from '../../../domain/policy/requested-work.js'
import type { Tier } from '../../../domain/routing/tier.js'
import type { Principal } from '../../../ports/node-api.js'
import type { NodeCore } from '../../node.js'
import type { Refusal } from '../../policy/access-control.js'

/** In whose name a member calls, as it says itself: never more than it has. */
export interface MemberClaims {
  /** The agent of its node that calls; absent: its operator. */
  readonly agent?: string
  readonly tier?: Tier
  readonly sandboxId?: string
}

const ASKED: Refusal = {
  code: 'POLICY_DENIED',
  rule: 'a2a over the mesh: nobody is asked',
  reason: 'a person of that node is asked about this, which waits for no A2A call: use a2a-node call with the agent, which does'
}

/**
 * A member as a caller of the gateway: as weak as its certificate, the card of the agent that it names, and what it claims.
 * @throws NodeError REVOKED, FORBIDDEN
 */
export function memberPrincipal({ directory }: Pick<NodeCore, 'directory'>, peer: NodeId, claims: MemberClaims): Principal {
  const agentId = claims.agent ?? OPERATOR
  if (directory.certificate(peer) === null) throw new NodeError('REVOKED', 'the caller is no member of the mesh')
  const party = directory.party({ agentId, nodeId: peer })
  if (party === null) throw new NodeError('FORBIDDEN', 'the agent that calls has no card that this node knows', { retryable: true })
  const { tier = party.tier, sandboxId = party.sandboxId } = claims
  if (tier < party.tier || (party.sandboxId !== null && sandboxId !== party.sandboxId))
    throw new NodeError('FORBIDDEN', 'the call claims another tier or sandbox than its caller has')
  return { kind: 'peer', name: directory.ref(peer).name, id: peer, agentId, tier, sandboxId, scopes: ['read', 'send'] }
}

/** The member that a caller of the gateway is; null for any other caller. */
export function memberBehind({ kind, id }: Principal): NodeId | null {
  return kind === 'peer' ? (id ?? null) : null
}

/** What is asked of an agent. */
export interface MemberWork {
  readonly address: AgentAddress
  /** Of the capability. */
  readonly capability: string
}

/**
 * Refuses what the rules of this node say of a request of a member, as the road in would: what the gateway asks for it is asked
 * in this node's own name. Any other caller passes.
 * @throws NodeError TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED, POLICY_DENIED, FORBIDDEN
 */
export function checkMember(
  node: Pick<NodeCore, 'directory' | 'accessControl' | 'deps'>,
  by: Principal,
  { address, capability }: MemberWork
): void {
  if (by.kind !== 'peer') return
  const { directory, accessControl, deps: parts } = node
  const own = { agentId: by.agentId ?? OPERATOR, nodeId: by.id ?? '' }
  const sender = directory.party(own, { maxTier: by.tier, sandboxId: by.sandboxId })
  const certified = directory.party(own)
  const target = directory.party(address)
  if (sender === null || certified === null || target === null) throw new NodeError('FORBIDDEN', 'a card of either end is not known')
  const question = {
    sender,
    certified,
    target,
    type: 'request',
    ...askedWork(directory.card(address), capability),
    justification: null,
    isReply: false,
    isArriving: true
  } as const
  const { verdict } = accessControl.decide(question, parts.clock.monotonic())
  if (verdict.allowed) return
  const refusal = verdict.asks === true ? { ...ASKED, rule: verdict.rule } : verdict
  const header = { sender: sender.address, recipient: target.address, type: 'request' } as const
  accessControl.record('refusal', refusal, { peer: own.nodeId, header, from: sender.tier, to: target.tier })
  throw new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } })
}
