import { NodeError } from '../../../kit/errors.js'
import { type NodeId, shortId } from '../../../kit/ids.js'
import type { DialEnd } from '../../../ports/network/reach.js'
import type { Network } from '../network/network.js'
import type { NetworkProblem } from '../network/reachability.js'

/** Steps to a link without UDP. */
const BY_WEBSOCKET = [
  'a2a-node start --websocket 0.0.0.0:7421   # on the machine of a member that both sides reach',
  'a2a-node start --join - --via ws://<its address>:7421'
]

/**
 * The error of a failed join. Where no admin answered because of the network, it names that; where an admin was found
 * and not reached, it names the admin and the cause.
 */
export function explainedJoin(
  error: unknown,
  {
    state,
    dials,
    hasLan
  }: Pick<Network, 'hasLan'> & {
    readonly state: Pick<Network['state'], 'problems'>
    readonly dials: Pick<Network['dials'], 'failed'>
  }
): unknown {
  if (!(error instanceof NodeError) || error.code !== 'NO_ADMIN_ONLINE') return error
  const problem = state.problems().find(({ code }) => code !== 'LAN_OFFLINE')
  if (problem !== undefined) return offlineJoin(error, problem, hasLan)
  const failed = dials.failed()
  const admin = failed.findLast(([, { fault }]) => fault === 'not-punched') ?? failed.at(-1)
  return admin === undefined ? error : unlinkedJoin(error, ...admin)
}

function offlineJoin(error: NodeError, problem: NetworkProblem, hasLan: boolean): NodeError {
  const isMissing = problem.code === 'BOOTSTRAP_MISSING'
  const message = isMissing
    ? `the invite is for a private network without a bootstrap node, so no node of it is found${hasLan ? ' outside of its LAN' : ''}, and this node did not join`
    : `${problem.message}. So this node did not join`
  const next = isMissing
    ? ['a2a-node status   # on the machine of the invite', 'a2a-node invite   # there, when it serves one']
    : [problem.next, ...error.next]
  return new NodeError(problem.code, message, { next, data: error.data, cause: error })
}

/** While a newcomer joins, it dials the admins of its invite alone. */
function unlinkedJoin(error: NodeError, admin: NodeId, { fault, nats, isRandomHere }: DialEnd): NodeError {
  const found = `the admin ${shortId(admin)} was found`
  const data = { ...(error.data as object | undefined), admin }
  if (fault !== 'not-punched') {
    const message = `${found}, but does not answer: it has just stopped, or lost its network. So this node did not join`
    const next = ['a2a-node status   # on the machine of the invite', ...error.next]
    return new NodeError(error.code, message, { next, data, cause: error })
  }
  const isRandom = isRandomHere && nats === null
  const cause = isRandom
    ? 'the NAT of this network gives each connection another port (random), and that of the admin most likely does, too'
    : `a NAT or a firewall between the two machines lets no packet through${nats === null ? '' : ` (NAT here: ${nats.here}, there: ${nats.there})`}`
  const message = `${found}, but no direct link to it can be made: ${cause}. So this node did not join`
  return new NodeError(isRandom ? 'NAT_RANDOM' : 'PUNCH_FAILED', message, { next: BY_WEBSOCKET, data, cause: error })
}
