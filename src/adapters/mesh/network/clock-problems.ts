import { isSkewed, ownSkew, type PeerClock, skewText } from '../../../domain/membership/clock-skew.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import { type NodeId, shortId } from '../../../kit/ids.js'
import { NODE_NAME } from '../../../kit/names/rule.js'
import { safeName } from '../../../kit/names/safe-name.js'
import type { Problem } from '../../../ports/node-api.js'

/** Code of the problems. */
const CODE = 'CLOCK_SKEW'

/**
 * Problems of the clocks of linked members, for `status`. Where the clock of this machine differs from most, that is
 * one problem; else each member whose clock differs is one. With a single peer nothing shows which of the two is wrong.
 */
export function clockProblems(clocks: readonly PeerClock[], view: Pick<MembershipView, 'members'>): Problem[] {
  const nameOf = (peer: NodeId): string => memberName(view, peer)
  const own = ownSkew(clocks)
  if (own === null) return clocks.filter(isSkewed).map((one) => problemOfPeer(one, nameOf(one.peer)))
  const others = clocks.filter((one) => isSkewed(one) && one.aheadMs > 0 === own.aheadMs > 0).length - 1
  const whose = nameOf(own.peer) + (others > 0 ? ` and those of ${others} more members` : '')
  const advice = others > 0 ? 'set it' : 'set the wrong one of both'
  return [{ code: CODE, message: `the clock of this machine is ${skewText(own, whose)}: ${advice}`, next: 'date' }]
}

function problemOfPeer({ aheadMs }: PeerClock, name: string): Problem {
  const message = `the clock of ${name} is ${skewText({ aheadMs: -aheadMs }, 'this machine')}, and other members agree with this one`
  return { code: CODE, message, next: `date   # on the machine of ${name}` }
}

/** The name of a member; its short id, while that is unknown. */
export function memberName({ members }: Pick<MembershipView, 'members'>, peer: NodeId): string {
  return safeName(members.get(peer)?.certificate.body.name ?? shortId(peer), NODE_NAME)
}
