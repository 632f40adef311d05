import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shellWord } from '../../kit/text.js'
import { isSkewed } from '../../domain/membership/clock-skew.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import type { PeerExam } from '../../ports/peer-api.js'
import type { NodeDeps } from '../dependencies.js'
import type { Services } from '../services.js'
import { keptOutProblem, type PeersApiDeps, showPeer } from './peers.js'
import { type PolicyApiDeps, testPolicy } from './policy.js'

/** Dependencies of {@link examinePeer}. */
export interface PeerExamDeps
  extends Omit<PeersApiDeps, 'deps'>,
    Omit<PolicyApiDeps, 'deps'>,
    Pick<Services, 'agents'> {
  readonly deps: PeersApiDeps['deps'] & PolicyApiDeps['deps'] & Pick<NodeDeps, 'process' | 'reach'>
}

/** How long the dial of a peer without a link may take, in milliseconds. */
const DIAL_MS = 4000

/** The facts of a verdict. */
type Examined = Omit<PeerExam, 'verdict'>

/** A verdict, or null where it needs others. */
type FoundVerdict = PeerExam['verdict'] | null

/** Examines the ways to a peer. @throws NodeError USAGE for this node itself; those of {@link showPeer} */
export async function examinePeer(node: PeerExamDeps, nodeId: NodeId, by: CallerAuthority): Promise<PeerExam> {
  const { deps, directory, routes } = node
  if (nodeId === deps.membership.nodeId)
    throw new NodeError('USAGE', 'that is this node itself', { next: ['a2a-node doctor'] })
  const isRevoked = showPeer(node, nodeId, by).revoked !== null
  if (!isRevoked && node.peers.link(nodeId) === null) await deps.links.dial(nodeId, DIAL_MS).catch(() => null)
  const sight = isRevoked ? null : ((await deps.reach?.examine(nodeId)) ?? null)
  const isLinked = node.peers.link(nodeId) !== null
  const via = isLinked || isRevoked || !(await routes.confirm(nodeId)) ? null : routes.next(nodeId)
  const facts: Examined = {
    ...showPeer(node, nodeId, by),
    relayedBy: via === null ? null : directory.ref(via),
    ownVersion: `a2a-node/${deps.process.version}`,
    reach: deps.reach?.info() ?? null,
    sight,
    policy: decisions(node, nodeId, by)
  }
  const kept = keptOutProblem(node, nodeId)
  const found: FoundVerdict = kept === null ? null : { ok: false, text: kept.message, next: kept.next }
  return { ...facts, verdict: found ?? linkVerdict(facts) ?? offlineVerdict(facts) }
}

function decisions(node: PeerExamDeps, nodeId: NodeId, by: CallerAuthority): PeerExam['policy'] {
  const found = { allow: [] as string[], ask: [] as string[], deny: [] as string[] }
  const { name } = node.directory.ref(node.self)
  for (const { id } of node.agents.definitions()) {
    try {
      found[testPolicy(node, { from: nodeId, to: `${id}@${name}` }, by).decision].push(id)
    } catch {
      // An agent that the caller does not see, or a member that was put out.
    }
  }
  return found
}

/** The verdict on a revoked member, or on one whose messages arrive. */
function linkVerdict({ name, revoked, path, rttMs, sight, relayedBy }: Examined): FoundVerdict {
  const word = shellWord(name)
  const isLinked = path !== null && path !== 'relayed'
  if (revoked !== null)
    return { ok: false, text: `${name} was put out of the mesh by ${revoked.by.name}`, next: 'a2a-node invite' }
  if (isLinked && sight?.clockAheadMs !== null && isSkewed({ aheadMs: sight?.clockAheadMs ?? 0 }))
    return {
      ok: true,
      text: `${name} is linked, and the clocks of both machines differ: set the wrong one`,
      next: 'date'
    }
  if (path === 'websocket') {
    const text = `${name} is linked by WebSocket, since no direct link came up`
    return { ok: true, text, next: `a2a-node ping ${word} --until-direct` }
  }
  if (isLinked) {
    const time = rttMs === null ? '' : `, ${Math.round(rttMs)} ms away`
    return { ok: true, text: `${name} is linked directly${time}`, next: `a2a-node ping ${word}` }
  }
  if (relayedBy === null) return null
  return {
    ok: true,
    text: `${name} has no link to this node; ${relayedBy.name} carries messages to it`,
    next: `a2a-node ping ${word} --until-direct`
  }
}

/** The verdict on a member that is not reached. */
function offlineVerdict({ name, reach, sight, addresses = [] }: Examined): PeerExam['verdict'] {
  const there = `   # on the machine of ${name}`
  const tried = addresses.flatMap(({ address, fault }) => (fault === null ? [] : [`; ${address}: ${fault}`])).join('')
  const bad = (text: string, next: string): PeerExam['verdict'] => ({
    ok: false,
    text: `${name} ${text}${tried}`,
    next
  })
  if (reach?.dht?.state === 'silent')
    return bad('is not found, since no node of the DHT answers here', 'a2a-node status')
  const { isAnnounced = null, udp = null } = sight ?? {}
  if (udp?.fault === 'not-punched') {
    const serve = `a2a-node start --websocket 0.0.0.0:7421${there}`
    return udp.isRandomHere && udp.nats === null
      ? bad(
          'was found, but no direct link can be made: the NAT here is random, and the one there most likely, too',
          serve
        )
      : bad('was found, but a NAT or a firewall lets no packet through between both machines', serve)
  }
  if (isAnnounced === false)
    return bad('is not announced in the DHT: its node is off, or has no network', `a2a-node status${there}`)
  if (udp?.fault === 'silent' || udp?.fault === 'not-found')
    return bad('was announced, but does not answer: its node stopped, or lost its network', `a2a-node status${there}`)
  return bad('is not reached, and no cause shows here', `a2a-node doctor${there}`)
}
