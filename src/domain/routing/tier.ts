/** Tier of an agent: 0 orchestrator, 1 strategic, 2 operational, 3 specialist. Lower is more powerful. */
export type Tier = 0 | 1 | 2 | 3

/** The tiers, most powerful first. */
export const TIERS: readonly Tier[] = [0, 1, 2, 3]

/** The text form of a tier in JSON and on the command line. */
export type TierText = 'L0' | 'L1' | 'L2' | 'L3'

/** Is it one of 0..3? */
export function isTier(value: unknown): value is Tier {
  return value === 0 || value === 1 || value === 2 || value === 3
}

/** One text a tier: every exchange across tiers names two, and equal texts that are one are compared at once. */
const TEXTS: readonly [TierText, TierText, TierText, TierText] = ['L0', 'L1', 'L2', 'L3']

/** 1 becomes 'L1'. */
export function tierText(tier: Tier): TierText {
  return TEXTS[tier]
}

/** 'L1' (or 'l1') becomes 1; anything else null. */
export function tierFromText(text: string): Tier | null {
  const match = /^[lL]([0-3])$/.exec(text)
  return match === null ? null : (Number(match[1]) as Tier)
}

/** The less powerful of two tiers. */
export function weakest(one: Tier, other: Tier): Tier {
  return one > other ? one : other
}
