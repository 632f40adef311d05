import type { NodeId } from '../../../kit/ids.js'
import { inviteFault } from '../grant.js'
import type { InviteRecord, MembershipView } from '../types.js'

/** Invites whose short codes an admin answers at a time; each is a topic that it announces. */
export const MAX_RENDEZVOUS = 64
/** How long an ended invite is still answered, so that its newcomer learns the reason, in milliseconds. */
export const ENDED_ANSWER_MS = 86_400_000

/**
 * Ids of the invites whose short codes an admin answers: its own open ones, then other open ones, then those that ended
 * within a day; newest first, at most 64. `now` in unix milliseconds.
 */
export function answeredInvites(
  { invites }: Pick<MembershipView, 'invites'>,
  { self, now }: { readonly self: NodeId; readonly now: number }
): readonly string[] {
  const rankOf = (invite: InviteRecord): number => (!isOpen(invite, now) ? 2 : invite.by === self ? 0 : 1)
  return [...invites.values()]
    .filter((one) => isOpen(one, now) || now - endOf(one) < ENDED_ANSWER_MS)
    .sort((a, b) => rankOf(a) - rankOf(b) || b.terms.createdAt - a.terms.createdAt)
    .slice(0, MAX_RENDEZVOUS)
    .map(({ terms }) => terms.id)
}

/** May `self` make one more invite whose short code it will answer? */
export function hasRendezvousLeft(
  { invites }: Pick<MembershipView, 'invites'>,
  { self, now }: { readonly self: NodeId; readonly now: number }
): boolean {
  return [...invites.values()].filter((one) => one.by === self && isOpen(one, now)).length < MAX_RENDEZVOUS
}

function isOpen(invite: InviteRecord, now: number): boolean {
  return inviteFault(invite, now) === null
}

/** When an invite ended at the latest: a used one may have ended before. */
function endOf({ revokedAt, terms }: InviteRecord): number {
  return Math.min(revokedAt ?? terms.expiresAt, terms.expiresAt)
}
