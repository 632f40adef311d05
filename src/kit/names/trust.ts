/** How two members regard each other, in words for people: one for each kind of invite. */
export const TRUST_WORDS = {
  mine: 'both sides may use each other fully',
  guest: 'both sides may read and ask; what writes or executes asks its owner first'
} as const

/** A policy rule, as far as it concerns guests. */
interface RuleAboutGuests {
  readonly from: { readonly trust?: readonly string[] | undefined }
  readonly decision: string
}

/** Does one of the rules ask about guests, or deny them? Homes of earlier builds have no such rule. */
export function areGuestsAsked(rules: readonly RuleAboutGuests[]): boolean {
  return rules.some(({ from, decision }) => decision !== 'allow' && from.trust?.includes('guest') === true)
}
