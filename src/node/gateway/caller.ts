import { NodeError } from '../../kit/errors.js'
import type { GatewayTask } from '../../domain/gateway/task.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import type { NodeId } from '../../kit/ids.js'
import type { Principal } from '../../ports/node-api.js'

/** How the owner of a member's tasks begins. */
const MEMBER = 'peer:'

/** Whose tasks a caller's are: one name for all tokens of a client in the name of one subject. */
export function ownerOf({ kind, name, id }: Principal): string {
  return `${kind}:${id ?? name}`
}

/** The member that an owner of tasks is; null for any other owner. */
export function memberOf(owner: string): NodeId | null {
  return owner.startsWith(MEMBER) ? owner.slice(MEMBER.length) : null
}

/** What is done for a caller is as weak as the caller. */
export function powerOf({ tier, sandboxId, capabilities }: Principal): CallerAuthority {
  return capabilities === undefined ? { maxTier: tier, sandboxId } : { maxTier: tier, sandboxId, capabilities }
}

/** A turn is done with the power that the task began with, which a weaker token of the same client must not use. @throws NodeError FORBIDDEN */
export function refuseWeaker({ tier, capabilities }: Principal, { by, capability }: GatewayTask): void {
  if (tier > by.maxTier || capabilities?.includes(capability) === false)
    throw new NodeError('FORBIDDEN', 'the task was begun with more than this token may do')
}

/** Refuses what needs a scope that the caller does not have. @throws NodeError FORBIDDEN */
export function allow({ scopes }: Principal, scope: 'read' | 'send'): void {
  if (!scopes.includes(scope)) throw new NodeError('FORBIDDEN', `this needs the scope ${scope}, which this caller does not have`)
}
