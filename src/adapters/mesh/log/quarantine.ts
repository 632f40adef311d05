import { type NodeId, shortId } from '../../../kit/ids.js'
import { NODE_NAME } from '../../../kit/names/rule.js'
import { safeName } from '../../../kit/names/safe-name.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import { LOG_SHARE_LIMITS } from '../../../domain/membership/log-share.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import type { Problem } from '../../../ports/node-api.js'
import type { CoreFault } from './guarded-base.js'

const SHARE_MIB = LOG_SHARE_LIMITS.maxBytes / 1_048_576
/** Forked cores that are remembered. */
const MAX_FORKED = 64

/** Dependencies of {@link Quarantine}. */
export interface QuarantineDeps {
  readonly self: NodeId
  /** Keys (z32) of cores known to be forked, as the home remembers them. */
  readonly forked: readonly string[]
  view(): MembershipView
  /** A newly found forked core. `member`: its current owner; null for none. */
  onForked(forked: readonly string[], member: NodeId | null): void
  /** Why no further block of a core is read; null: it is read. */
  unreadable(coreKey: string): CoreFault | null
}

/**
 * Members whose entries are not taken. Their writer core holds two different signed blocks at one position, a block
 * that would end the log's engine, or more than its share. A member that changes to another core (its home was restored
 * or repaired) leaves it.
 */
export class Quarantine {
  readonly #deps: QuarantineDeps
  readonly #forked: Set<string>

  constructor(deps: QuarantineDeps) {
    this.#deps = deps
    this.#forked = new Set(deps.forked)
  }

  /** A core is proven to be forked. */
  add(coreKey: string): void {
    if (this.#forked.has(coreKey) || this.#forked.size >= MAX_FORKED) return
    this.#forked.add(coreKey)
    this.#deps.onForked([...this.#forked], this.memberOf(coreKey))
  }

  /** The member that writes to a core now; null for none. */
  memberOf(coreKey: string): NodeId | null {
    const [member] = [...this.#deps.view().members].find(([, one]) => one.coreKey === coreKey) ?? []
    return member ?? null
  }

  /** Is a member in quarantine? */
  has(nodeId: NodeId): boolean {
    const coreKey = this.#deps.view().members.get(nodeId)?.coreKey
    return coreKey !== undefined && (this.#forked.has(coreKey) || this.#deps.unreadable(coreKey) !== null)
  }

  /** Problems for `status`: one for each member in quarantine that is not revoked. */
  problems(): Problem[] {
    return [...this.#deps.view().members.keys()].flatMap((nodeId) => this.problemOf(nodeId) ?? [])
  }

  /** The problem of a member and its next step; null when it is not in quarantine, or revoked. */
  problemOf(nodeId: NodeId): Problem | null {
    const { members, mesh } = this.#deps.view()
    const member = members.get(nodeId)
    if (member === undefined || member.revoked !== null || !this.has(nodeId)) return null
    const name = `${safeName(member.certificate.body.name, NODE_NAME)} (${shortId(nodeId)})`
    const { code, why } = this.#faultOf(member.coreKey)
    const message = `${name} ${why}: nothing that it writes is taken any more`
    const repair = `a2a-node doctor --repair   # on ${name}, if its home was put back or copied; doctor --new-identity on a copy`
    const isTrusted = nodeId === mesh?.owner || nodeId === this.#deps.self
    return { code, message, next: isTrusted ? repair : `a2a-node peers revoke ${nodeId}` }
  }

  #faultOf(coreKey: string): { readonly code: ErrorCode; readonly why: string } {
    if (this.#forked.has(coreKey))
      return { code: 'CONFLICT', why: 'signed two different blocks of the mesh log at one place' }
    const { code, reason = '' } = this.#deps.unreadable(coreKey) ?? {}
    if (code === 'OVERLOADED') return { code, why: `wrote more than its share of the mesh log (${SHARE_MIB} MiB)` }
    if (code === 'INTERNAL')
      return {
        code,
        why: 'wrote something to the mesh log at which starts of this node ended, so its new blocks are left out'
      }
    return { code: 'CONFLICT', why: `wrote a block of the mesh log that must not be read (${shown(reason)})` }
  }
}
