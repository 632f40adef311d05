/** How two members regard each other, in words for people: one for each kind of invite. */
export const TRUST_WORDS = {
  mine: 'both sides may use each other fully',
  guest: 'both sides may read and ask; what writes or executes asks its owner first'
} as const
