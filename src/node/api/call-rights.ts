import { NodeError } from '../../kit/errors.js'
import { type Tier, tierText } from '../../domain/routing/tier.js'
import type { CallName, Principal, WatchName } from '../../ports/node-api.js'

/** Calls that would raise a caller's rights, or decide for the whole node. */
const AS_THE_NODE: ReadonlySet<CallName | WatchName> = new Set<CallName>([
  'mesh.set',
  'node.backup',
  'approvals.allow',
  'approvals.deny',
  // A machine of the person needs no approval.
  'peers.trust',
  'oauth.client.create',
  'oauth.approve'
])

/** Calls that show or change more than one sandbox of the node, and the work of all its agents. */
const OF_THE_NODE: ReadonlySet<CallName | WatchName> = new Set<CallName | WatchName>([
  ...AS_THE_NODE,
  'node.stop',
  'node.config',
  'node.events',
  'peers.rename',
  'peers.tier',
  'peers.revoke',
  'peers.address',
  'invite.list',
  'invite.revoke',
  'approvals.list',
  'approvals.show',
  'token.create',
  'token.list',
  'token.revoke',
  'push.list',
  'push.retry',
  'oauth.client.create',
  'oauth.client.list',
  'oauth.client.revoke',
  'oauth.requests',
  'oauth.show',
  'oauth.approve',
  'oauth.deny',
  'oauth.rotate',
  'tools.calls',
  'tools.list',
  'tools.refresh'
])

/**
 * The calls for clients of the OAuth server: finding agents. Otherwise they have only their own tasks, at the gateway.
 */
const OF_CLIENTS: ReadonlySet<CallName | WatchName> = new Set<CallName | WatchName>([
  'node.info',
  'agents.list',
  'agents.show',
  'tasks.list'
])

/** Calls that give work to agents in general. */
const OF_ALL_AGENTS: ReadonlySet<string> = new Set<CallName>(['swarm.start', 'swarm.preview', 'swarm.retry'])

/**
 * Refuses a call beyond the caller's rights, see {@link beyondAuthority}.
 * @throws NodeError SANDBOX_VIOLATION, FORBIDDEN
 */
export function refuseBeyondAuthority(name: CallName | WatchName, caller: Principal, nodeTier: Tier): void {
  const refusal = beyondAuthority(name, caller, nodeTier)
  if (refusal !== null) throw refusal
}

/**
 * Why a call is beyond the caller's rights, whatever its scopes; null: it is not. `nodeTier`: of the node's
 * certificate. SANDBOX_VIOLATION for a sandboxed caller; FORBIDDEN for one that is weaker than the node, a client, or
 * limited to some agents.
 */
export function beyondAuthority(
  name: CallName | WatchName,
  { kind, tier, sandboxId, agents }: Principal,
  nodeTier: Tier
): NodeError | null {
  // Other nodes that continue a swarm do not know the limit.
  if (agents !== undefined && OF_ALL_AGENTS.has(name))
    return new NodeError('FORBIDDEN', 'a caller limited to some agents starts no swarm')
  if (agents !== undefined && OF_THE_NODE.has(name))
    return new NodeError('FORBIDDEN', `${name} is about the whole node, and this caller is limited to some agents`)
  if (kind === 'client' && !OF_CLIENTS.has(name))
    return new NodeError('FORBIDDEN', `${name} is not for clients of the OAuth server`)
  if (sandboxId !== null && OF_THE_NODE.has(name)) {
    return new NodeError(
      'SANDBOX_VIOLATION',
      `${name} is about the whole node, and this caller is in the sandbox ${sandboxId}`
    )
  }
  if (tier > nodeTier && AS_THE_NODE.has(name)) {
    return new NodeError(
      'FORBIDDEN',
      `${name} needs the tier of the node, ${tierText(nodeTier)}; this caller has ${tierText(tier)}`
    )
  }
  return null
}
