import type { Tier } from './tier.js'

/** Which tiers an agent of one tier may open an exchange to (spec a2a-mcp-mesh, TierRule). */
export interface TierRule {
  readonly sourceTier: Tier
  readonly allowedTargetTiers: readonly Tier[]
  /** Opening to L0 or L1 from a weaker tier then needs a justification. */
  readonly requiresEscalationJustification: boolean
}

/** The shipped rules, exactly those of the spec (DEFAULT_TIER_RULES). */
export const DEFAULT_TIER_RULES: readonly TierRule[] = [
  { sourceTier: 0, allowedTargetTiers: [0, 1, 2, 3], requiresEscalationJustification: false },
  { sourceTier: 1, allowedTargetTiers: [0, 1], requiresEscalationJustification: false },
  { sourceTier: 2, allowedTargetTiers: [0, 1, 2], requiresEscalationJustification: true },
  { sourceTier: 3, allowedTargetTiers: [0, 1, 2, 3], requiresEscalationJustification: true }
]

/** The tiers of the planetary agents, exactly those of the spec (DEFAULT_TIER_ASSIGNMENTS), by agent id. */
export const DEFAULT_TIER_ASSIGNMENTS: Readonly<Record<string, Tier>> = {
  sun: 0,
  mercury: 1,
  earth: 1,
  jupiter: 1,
  venus: 2,
  mars: 2,
  pluto: 2,
  saturn: 2,
  titan: 2,
  enceladus: 3,
  ganymede: 3,
  neptune: 3,
  charon: 3,
  uranus: 3,
  europa: 3,
  mimas: 3,
  io: 3,
  triton: 3,
  callisto: 3,
  atlas: 3,
  andromeda: 3
}
