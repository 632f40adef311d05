import type { NodeId } from '../../kit/ids.js'
import type { AgentAddress } from '../../domain/card/card.js'
import type { EnvelopeMetadata } from '../../domain/envelope/envelope.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { RoutingParty } from '../../domain/routing/decide.js'
import { weakened } from '../../domain/routing/hops.js'
import type { Strike } from '../../ports/mesh.js'
import type { Directory, NamedAgent } from '../cards/directory.js'
import type { Refusal, RefusedFrom } from '../policy/access-control.js'

const REFUSALS = {
  foreignSender: { code: 'FORBIDDEN', rule: 'sender: the key of the stream', reason: 'the sender is not of the node that sent it' },
  foreignRecipient: {
    code: 'AGENT_NOT_FOUND',
    rule: 'recipient: an agent of this node',
    reason: 'the recipient is not on this node'
  },
  lostHop: { code: 'FORBIDDEN', rule: 'hops: members', reason: 'a node on the way was put out of the mesh' },
  noCard: { code: 'FORBIDDEN', rule: 'sender: a signed card', reason: 'the sender has no card that this node knows' },
  claims: {
    code: 'FORBIDDEN',
    rule: 'claims: as certified',
    reason: 'the message claims another tier or sandbox than its sender has'
  }
} as const satisfies Record<string, Refusal>

/** Sender and recipient, as far as the message names them truly. */
export interface Parties {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
}

/** A message that is not let in; with `parties` its sender is told why. */
export interface Rejected {
  readonly refusal: Refusal
  readonly parties: Parties | null
  /** What it counts against its peer; null: an honest peer may send it. */
  readonly strike: Strike | null
}

/** Sender and recipient, verified. */
export interface Verified extends Parties {
  /** The sender as the message says it is, and as it is. */
  readonly party: RoutingParty
  readonly certified: RoutingParty
  /** The recipient, looked up. */
  readonly target: NamedAgent
}

/** The node that a message is from, the node that it is for, and what it says of itself. */
export interface Claims {
  readonly origin: NodeId
  readonly target: NodeId
  readonly header: EnvelopeHeader
}

/** The sender is of the node it is from, has a signed card, and claims no more than certificate and card give it. */
export function verifyParties(directory: Directory, { origin, target: node, header }: Claims): Verified | Rejected {
  const source = directory.named(header.sender)
  if (source === null || source.address.nodeId !== origin) return { refusal: REFUSALS.foreignSender, parties: null, strike: 'forged' }
  const target = directory.named(header.recipient)
  if (target === null || target.address.nodeId !== node) return { refusal: REFUSALS.foreignRecipient, parties: null, strike: 'forged' }
  const { address: sender, party: known } = source
  const recipient = target.address
  // These two an honest sender can meet as well, while cards and certificates are on their way: it is told. Cards come by
  // other ways than messages, and not all are kept: to be ahead of one's card is no offence.
  if (known === null) return { refusal: REFUSALS.noCard, parties: { sender, recipient }, strike: null }
  const party = claimed(known, header.metadata)
  if (party === null) return { refusal: REFUSALS.claims, parties: { sender, recipient }, strike: 'doubtful' }
  const hops = header.metadata?.hops
  if (hops === undefined) return { sender, recipient, party, certified: known, target }
  const powers = hops.flatMap((hop) => directory.certificate(hop) ?? [])
  // A hop may have been put out since the message came.
  if (powers.length < hops.length) return { refusal: REFUSALS.lostHop, parties: { sender, recipient }, strike: null }
  // What it passed makes the sender weaker, but does not take it out of the reach of rules for what it is.
  return { sender, recipient, party: weakened(party, powers), certified: known, target }
}

/** The sender as weak as the message says it is; null when it claims to be more, or elsewhere, than it is. */
function claimed(party: RoutingParty, metadata: EnvelopeMetadata | undefined): RoutingParty | null {
  if (metadata === undefined) return party
  const sandboxId = metadata.sandboxId ?? null
  if (metadata.tier < party.tier || (party.sandboxId !== null && sandboxId !== party.sandboxId)) return null
  if (metadata.tier === party.tier && sandboxId === party.sandboxId) return party
  // A weaker claim is honoured: who sends on behalf of somebody weaker says so, and may know of a change before this node.
  return { ...party, tier: metadata.tier, sandboxId: party.sandboxId ?? sandboxId }
}

/** What is on record of a message that came in and was verified. */
export function refusedArrival(
  directory: Directory,
  {
    peer,
    header,
    party,
    recipient
  }: Pick<RefusedFrom, 'peer' | 'header'> & { readonly party: RoutingParty; readonly recipient: AgentAddress }
): RefusedFrom {
  const to = directory.party(recipient)?.tier
  return { peer, header, from: party.tier, ...(to === undefined ? {} : { to }) }
}
