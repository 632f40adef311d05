import { NodeError } from '../../kit/errors.js'
import type { GatewayTask } from '../../domain/gateway/task.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import type { NodeId } from '../../kit/ids.js'
import type { Principal } from '../../ports/node-api.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { KnownClients, Owners } from '../../ports/gateway.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Tokens } from '../access/tokens.js'

/** Prefix of the owner of a member's tasks. */
const MEMBER = 'peer:'

/** The owner of a caller's tasks: one name for all tokens of a client that act for one subject. */
export function ownerOf({ kind, name, id }: Principal): string {
  return `${kind}:${id ?? name}`
}

/** The member behind an owner of tasks; null for any other owner. */
export function memberOf(owner: string): NodeId | null {
  return owner.startsWith(MEMBER) ? owner.slice(MEMBER.length) : null
}

/** Work for a caller has the rights of the caller. */
export function powerOf({ tier, sandboxId, capabilities }: Principal): CallerAuthority {
  return capabilities === undefined ? { maxTier: tier, sandboxId } : { maxTier: tier, sandboxId, capabilities }
}

/**
 * A turn runs with the rights that the task began with; a weaker token of the same client must not use them.
 * @throws NodeError FORBIDDEN
 */
export function refuseWeaker({ tier, capabilities }: Principal, { by, capability }: GatewayTask): void {
  if (tier > by.maxTier || capabilities?.includes(capability) === false)
    throw new NodeError('FORBIDDEN', 'the task was begun with more than this token may do')
}

/** Refuses an operation whose scope the caller lacks. @throws NodeError FORBIDDEN */
export function allow({ scopes }: Principal, scope: 'read' | 'send'): void {
  if (!scopes.includes(scope))
    throw new NodeError('FORBIDDEN', `this needs the scope ${scope}, which this caller does not have`)
}

/** Dependencies of {@link OwnerDirectory}. */
interface OwnerDirectoryDeps {
  readonly tokens: Pick<Tokens, 'has' | 'onRevoked'>
  readonly log: Pick<MemberLog, 'view' | 'onChange'>
  /** The clients of the OAuth server. */
  readonly clients: KnownClients
}

/** Owners of tasks by their credential: a token of this node, a client of its OAuth server, or a membership. */
export class OwnerDirectory implements Owners {
  readonly #deps: OwnerDirectoryDeps

  constructor(deps: OwnerDirectoryDeps) {
    this.#deps = deps
  }

  /** Revoked credentials are not kept: an unknown token or client is gone, whenever and by whomever it was revoked. */
  isGone(owner: string): boolean {
    const { tokens, clients, log } = this.#deps
    const [, kind, id = ''] = /^(token|client|peer):([^/]*)/.exec(owner) ?? []
    if (kind === 'token') return !tokens.has(id)
    if (kind === 'client') return !clients.has(id)
    // A member that is not in the log yet may only just have been admitted.
    return kind === 'peer' && (log.view().members.get(id)?.revoked ?? null) !== null
  }

  onGone(listener: () => void): Unsubscribe {
    const { tokens, clients, log } = this.#deps
    let known = this.#putOut()
    const stops = [
      tokens.onRevoked(listener),
      clients.onGone(listener),
      log.onChange(() => {
        const before = known
        known = this.#putOut()
        if (known !== before) listener()
      })
    ]
    return () => stops.forEach((stop) => stop())
  }

  /** The number of revoked members. */
  #putOut(): number {
    return [...this.#deps.log.view().members.values()].filter(({ revoked }) => revoked !== null).length
  }
}

/** The member behind a caller of the gateway; null for any other caller. */
export function memberBehind({ kind, id }: Principal): NodeId | null {
  return kind === 'peer' ? (id ?? null) : null
}
