import type { MembershipView } from '../../../domain/membership/types.js'
import type { Link } from '../../../ports/mesh.js'
import type { Problem } from '../../../ports/node-api.js'
import { memberName } from './clock-problems.js'
import type { Network } from './network.js'

const RANDOM: Problem = {
  code: 'NAT_RANDOM',
  message:
    'the NAT of this network gives each connection another port (random), so no direct link to a member behind such a NAT can be made: let a member that others reach serve a WebSocket, and dial it here by --via',
  next: 'a2a-node start --websocket 0.0.0.0:7421   # on the machine of a member that others reach'
}

/** Problems of the network, as its state and the links of this node show them. */
export function pathProblems(
  { state, hasWebSockets }: Pick<Network, 'state' | 'hasWebSockets'>,
  links: readonly Pick<Link, 'peer' | 'path'>[],
  view: Pick<MembershipView, 'members'>
): readonly Problem[] {
  const byWebSocket = links.find(({ path }) => path === 'websocket')
  const isUdpOpen = links.some(({ path }) => path === 'direct')
  const { dht, nat } = state.info()
  const found: Problem[] = state.problems().map((problem) => {
    if (problem.code !== 'NETWORK_OFFLINE' || byWebSocket === undefined || isUdpOpen) return problem
    return {
      code: 'UDP_BLOCKED',
      message: `no node of the public DHT answers since ${dht?.since}, while a WebSocket to ${memberName(view, byWebSocket.peer)} is open: UDP does not seem to pass here, so members without a WebSocket are not found`,
      next: 'a2a-node peers'
    }
  })
  return nat.kind === 'random' && !hasWebSockets ? [...found, RANDOM] : found
}
