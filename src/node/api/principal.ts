import type { CallerAuthority, CertifiedPower } from '../../domain/routing/effective.js'
import type { Principal } from '../../ports/node-api.js'

/** Kind and name of a caller, as records name it: `operator`, `token ci`. */
export function callerName({ kind, name }: Principal): string {
  return kind === name ? kind : `${kind} ${name}`
}

/** The name of a caller in its questions. */
export function ownerOf(principal: Principal): string {
  return JSON.stringify([
    principal.kind,
    principal.id ?? principal.name,
    principal.agentId ?? null,
    principal.sandboxId
  ])
}

/** Work for a caller in the operator's name has the caller's rights. */
export function powerIn(principal: Principal): CallerAuthority {
  if (principal.kind === 'operator') return { ...certified(principal), isOperator: true }
  const { agents } = principal
  return agents === undefined ? certified(principal) : { ...certified(principal), agents }
}

/** The same for other nodes, which have no operator of this node. */
export function certified({ tier, sandboxId }: Principal): Required<CertifiedPower> {
  return { maxTier: tier, sandboxId }
}
