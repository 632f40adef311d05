/**
 * Refusals of a request to join and their numbers on the pairing wire. 1 to 3 are blind-pairing's own. AMBIGUOUS_NAME:
 * the name looks like that of a member; INVALID_INPUT: it is no name that this admin admits.
 */
export const DENY_STATUS = {
  INVITE_REVOKED: 1,
  INVITE_USED: 2,
  INVITE_EXPIRED: 3,
  REVOKED: 4,
  INVITE_INVALID: 5,
  AMBIGUOUS_NAME: 6,
  INVALID_INPUT: 7
} as const

/** Why a request to join is denied. */
export type DenyCode = keyof typeof DENY_STATUS

/** The number of a refusal on the wire. */
export function denyStatus(code: DenyCode): number {
  return DENY_STATUS[code]
}

/** The refusal of a number on the wire; null for 0 (none) and numbers of others. */
export function denyCode(status: number): DenyCode | null {
  for (const code of Object.keys(DENY_STATUS) as DenyCode[]) if (DENY_STATUS[code] === status) return code
  return null
}
