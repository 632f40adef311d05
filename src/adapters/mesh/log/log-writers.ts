import { decodeEntry } from '../../../domain/membership/codec.js'
import { type CoreLimit, coreLimits, LOG_SHARE_LIMITS } from '../../../domain/membership/log-share.js'
import type { Entry, MembershipView } from '../../../domain/membership/types.js'
import type { NodeId } from '../../../kit/ids.js'
import type { CoreCare } from './core-care.js'
import type { CoreFault, LogGuard } from './guarded-base.js'

/** Claims that are kept, and those of one member: a member makes one each time that its home was restored. */
const MAX_CLAIMS = 64
const MAX_CLAIMS_PER_MEMBER = 8
/**
 * Claims that wait for their author's admission, and those of them from one peer. Beyond the first bound the oldest is
 * dropped.
 */
const MAX_PENDING = 32
const MAX_PENDING_PER_PEER = 4

/** An entry by which a member changes to another core. */
export interface WriterClaim {
  readonly entry: Entry
  /** As its author signed it. */
  readonly bytes: Uint8Array
  /** Key (z32) of the core. */
  readonly coreKey: string
}

/** The claim in an entry; null when it is another entry. */
export function claimOf(entry: Entry, bytes: Uint8Array): WriterClaim | null {
  return entry.body.kind === 'core' ? { entry, bytes, coreKey: entry.body.coreKey } : null
}

/** A claim whose author is no member yet. */
interface PendingClaim {
  readonly claim: WriterClaim
  readonly from: NodeId
}

/** Dependencies of {@link LogWriters}. */
export interface LogWritersDeps {
  /** Would the core be one of a writer by this entry? Its signature and the rights of its author included. */
  isValid(claim: WriterClaim): Promise<boolean>
  /** A new claim is valid: the log may read its core, and peers must learn of it. `from`: the peer that sent it. */
  onClaim(claim: WriterClaim, from: NodeId): void
  /** The view names the owners of cores that waited for it, or cores of members that are revoked now. */
  onLimits(): void
  /** The record of cores at which starts ended. Absent: none. */
  readonly care?: Pick<CoreCare, 'mayRead' | 'leftOut'>
}

/** Of a core at which starts ended. */
const LEFT_OUT: CoreFault = { code: 'INTERNAL', reason: 'starts of this node ended while it was read' }

/** Of a core that the view does not name yet. */
const UNKNOWN_LIMIT: CoreLimit = { bytes: LOG_SHARE_LIMITS.maxBytes, isKnown: false, isRevoked: false }

/**
 * The cores that the log reads: those that it names, and those claimed by members with the right to write. A node sends
 * a claim on to its peers. So a restored home writes again also where no writer can bring the entry into the log.
 */
export class LogWriters implements LogGuard {
  readonly #deps: LogWritersDeps
  #named: ReadonlySet<string> = new Set()
  /** By the key (z32) of the core. */
  readonly #claims = new Map<string, WriterClaim>()
  #pending: readonly PendingClaim[] = []
  #members: MembershipView['members'] = new Map()
  /** The limit of each core that the view names. */
  #limits: ReadonlyMap<string, CoreLimit> = new Map()
  /** Cores over the limit of cores whose owner is not known yet. */
  readonly #waiting = new Set<string>()
  /** Why no further block of a core (z32) is read. Every start finds it again. */
  readonly #bad: Map<string, CoreFault>
  #onBad: (coreKey: string, fault: CoreFault) => void = () => {}

  constructor(deps: LogWritersDeps) {
    this.#deps = deps
    this.#bad = new Map((deps.care?.leftOut() ?? []).map((core) => [core, LEFT_OUT]))
  }

  get care(): Pick<CoreCare, 'mayRead'> | null {
    return this.#deps.care ?? null
  }

  isWriter(coreKey: string): boolean {
    return this.#named.has(coreKey) || this.isClaimed(coreKey)
  }

  isClaimed(coreKey: string): boolean {
    return this.#claims.has(coreKey)
  }

  limitOf(coreKey: string): CoreLimit {
    return this.#limits.get(coreKey) ?? UNKNOWN_LIMIT
  }

  onWaiting(coreKey: string): void {
    this.#waiting.add(coreKey)
  }

  onBadBlock(coreKey: string, fault: CoreFault): void {
    // The engine checks it again whenever it opens the core.
    if (this.#bad.has(coreKey)) return
    this.#bad.set(coreKey, fault)
    this.#onBad(coreKey, fault)
  }

  /** Why no further block of a core is read; null: it is read. */
  badBlock(coreKey: string): CoreFault | null {
    return this.#bad.get(coreKey) ?? null
  }

  /** Calls back for each core whose further blocks are not read, also for those found before. */
  onBad(onBad: (coreKey: string, fault: CoreFault) => void): void {
    this.#onBad = onBad
    for (const [coreKey, fault] of this.#bad) onBad(coreKey, fault)
  }

  /** The valid claims, as they were signed. */
  claims(): readonly Uint8Array[] {
    return [...this.#claims.values()].map(({ bytes }) => bytes)
  }

  /** Takes the claim in the first block of a core. Another entry, or a claim of another core, is none. */
  remember(coreKey: string, bytes: Uint8Array): void {
    const decoded = decodeEntry(bytes)
    const claim = decoded.ok ? claimOf(decoded.entry, bytes) : null
    if (claim?.coreKey === coreKey && this.#hasCapacity(claim)) this.#claims.set(coreKey, claim)
  }

  /**
   * Takes a valid claim. A claim of an author that is no member yet waits for the next {@link review}, within the
   * bounds.
   */
  async offer(claim: WriterClaim, from: NodeId): Promise<void> {
    if (!this.#hasCapacity(claim)) return
    const isValid = await this.#deps.isValid(claim)
    // Another one may have come meanwhile.
    if (!this.#hasCapacity(claim)) return
    if (isValid) {
      this.#claims.set(claim.coreKey, claim)
      this.#deps.onClaim(claim, from)
    } else if (!this.#members.has(claim.entry.by)) this.#postpone({ claim, from })
  }

  #postpone(one: PendingClaim): void {
    if (this.#pending.filter(({ from }) => from === one.from).length >= MAX_PENDING_PER_PEER) return
    this.#pending = [...this.#pending, one].slice(-MAX_PENDING)
  }

  /** The view changed. */
  async review(view: MembershipView): Promise<void> {
    const { members, writers, mesh } = view
    const cores = [...members.values()].map(({ coreKey }) => coreKey)
    this.#named = new Set([...cores, ...writers.active, ...(mesh === null ? [] : [mesh.id])])
    this.#setLimits(coreLimits(view))
    this.#members = members
    const pending = this.#pending
    this.#pending = []
    for (const { claim, from } of pending) await this.offer(claim, from)
  }

  #setLimits(limits: ReadonlyMap<string, CoreLimit>): void {
    const isNewlyRevoked = [...limits].some(
      ([core, { isRevoked }]) => isRevoked && this.#limits.get(core)?.isRevoked !== true
    )
    this.#limits = limits
    const known = [...this.#waiting].filter((core) => limits.has(core))
    for (const core of known) this.#waiting.delete(core)
    if (known.length > 0 || isNewlyRevoked) this.#deps.onLimits()
  }

  #hasCapacity({ coreKey, entry }: WriterClaim): boolean {
    if (this.#claims.has(coreKey) || this.#claims.size >= MAX_CLAIMS) return false
    return [...this.#claims.values()].filter((one) => one.entry.by === entry.by).length < MAX_CLAIMS_PER_MEMBER
  }
}
