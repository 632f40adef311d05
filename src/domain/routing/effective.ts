import { allowedNames } from '../../kit/glob.js'
import { weakest, type Tier } from './tier.js'

/** The sandbox of a party that is in two at once. No real sandbox has it: names hold no control characters. */
export const CONFLICT_SANDBOX = '\u0000conflict'

/** A node's certified power; the sandbox is absent (or null) when there is none. */
export interface CertifiedPower {
  readonly maxTier: Tier
  readonly sandboxId?: string | null
}

/** The authority of a caller of this node: that of a certificate, or less. */
export interface CallerAuthority extends CertifiedPower {
  /** It may ask for these capabilities alone; absent: for any. */
  readonly capabilities?: readonly string[]
  /** It sees and asks agents of these ids alone, as globs with `*`; absent: any agent. */
  readonly agents?: readonly string[]
  /** It is the operator of this very node; nothing of this crosses to another one. */
  readonly isOperator?: true
}

/** The part of a question to the rules that confines its caller to some capabilities or agents. */
export interface Confinement {
  /** Capabilities that the original caller may request; absent: any. */
  readonly confinedTo?: readonly string[]
  /** Ids of agents, as globs, that the original caller may address; absent: any. */
  readonly confinedAgents?: readonly string[]
}

/** The confinement of a caller. */
export function confinement(by: CallerAuthority | undefined): Confinement {
  const { capabilities, agents } = by ?? {}
  return {
    ...(capabilities === undefined ? {} : { confinedTo: capabilities }),
    ...(agents === undefined ? {} : { confinedAgents: agents })
  }
}

/** True when a caller may address an agent by its id. */
export function mayAddress(agentId: string, { agents }: Pick<CallerAuthority, 'agents'>): boolean {
  return allowedNames(agents ?? null)(agentId)
}

/** Verified facts about the sender (or target) of a message. */
export interface PartyFacts {
  /** Of the node whose key the stream has. */
  readonly certificate: CertifiedPower
  /**
   * The agent's verified signed card; null when the node itself speaks (its operator). Refuse unknown agents before.
   */
  readonly card: { readonly tier: Tier; readonly sandboxId?: string | null } | null
  /** Certificates of the nodes the message passed through. */
  readonly hops: readonly CertifiedPower[]
}

/** Tier and sandbox that routing counts with. */
export interface EffectiveParty {
  readonly tier: Tier
  /** null: in no sandbox; {@link CONFLICT_SANDBOX}: in several. */
  readonly sandboxId: string | null
}

/**
 * The least powerful of certificate, card and hops: a weak agent on a strong node is weak, and so is a message that
 * passed one.
 */
export function effectiveParty({ certificate, card, hops }: PartyFacts): EffectiveParty {
  let tier = card === null ? certificate.maxTier : weakest(certificate.maxTier, card.tier)
  let sandboxId = joined(certificate.sandboxId ?? null, card?.sandboxId ?? null)
  for (const hop of hops) {
    tier = weakest(tier, hop.maxTier)
    sandboxId = joined(sandboxId, hop.sandboxId ?? null)
  }
  return { tier, sandboxId }
}

function joined(a: string | null, b: string | null): string | null {
  if (a === null || a === b) return b
  return b === null ? a : CONFLICT_SANDBOX
}
