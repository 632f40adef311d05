import type { PeerClock } from '../../../domain/membership/clock-skew.js'
import type { FoundCopies } from '../../../domain/membership/running-copies.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Problem } from '../../../ports/node-api.js'
import { clockProblems, memberName } from './clock-problems.js'

/** Problems that the gates of a node show. */
export function gateProblems(
  gates: { clocks(): readonly PeerClock[]; copies(): FoundCopies },
  view: MembershipView
): Problem[] {
  return [...clockProblems(gates.clocks(), view), ...copyProblems(gates.copies(), view)]
}

const CODE = 'CONFLICT'
/** Steps in one of the two homes. A copied disk shows nothing of the copy, so the change is forced. */
const MAKE_NEW = 'a2a-node stop && a2a-node doctor --new-identity --force'

/** Running copies of a home: of this node, as another member reports, and of each member that this node found. */
function copyProblems({ reporter, peers }: FoundCopies, view: Pick<MembershipView, 'members'>): Problem[] {
  const nameOf = (peer: NodeId): string => memberName(view, peer)
  const risk = 'messages reach either, and their writes will conflict: make one of them a node of its own'
  const own = `another running copy of this home uses the key of this node, as ${reporter === null ? '' : nameOf(reporter)} reports; ${risk}`
  return [
    ...(reporter === null ? [] : [{ code: CODE, message: own, next: MAKE_NEW } as const]),
    ...peers.map((peer): Problem => {
      const message = `two running copies of the home of ${nameOf(peer)} use its key; ${risk}`
      return { code: CODE, message, next: `${MAKE_NEW}   # on a machine of ${nameOf(peer)}` }
    })
  ]
}
