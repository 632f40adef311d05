import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import type { MembershipView } from '../../domain/membership/types.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { RemoteCards } from '../cards/remote-cards.js'
import { messageOf } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import {
  membershipChanges,
  NOTHING_KNOWN,
  type KnownMembership,
  type MembershipChange
} from '../../domain/membership/changes.js'
import type { Audit } from '../../ports/audit.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { NodeEvents } from '../observe/events.js'

/** Dependencies of {@link MemberSync}. */
export interface MemberSyncDeps {
  readonly log: MemberLog
  readonly membership: Membership
  readonly remoteCards: RemoteCards
}

/** Events of the mesh for the node. */
export interface MemberSyncHandlers {
  /** This node has a new certificate. */
  onCertificate(): void
  /** The log's view changed. */
  onView(): void
  /** A member was revoked. */
  onRevoked(peer: NodeId): void
}

/** Follows the log: takes its cards, and reports revocations and changes of this node's certificate. */
export class MemberSync {
  readonly #deps: MemberSyncDeps
  readonly #revoked = new Set<NodeId>()
  #serial = -1
  #stop: Unsubscribe = () => {}

  constructor(deps: MemberSyncDeps) {
    this.#deps = deps
  }

  /** Takes the current view and starts to follow the log. */
  start(handlers: MemberSyncHandlers): void {
    const { log, membership, remoteCards } = this.#deps
    this.#serial = membership.certificate().body.serial
    for (const nodeId of this.#newlyRevoked(log.view())) this.#revoked.add(nodeId)
    remoteCards.fromView(log.view())
    this.#stop = log.onChange((view) => {
      remoteCards.fromView(view)
      for (const nodeId of this.#newlyRevoked(view)) {
        this.#revoked.add(nodeId)
        handlers.onRevoked(nodeId)
      }
      const { serial } = membership.certificate().body
      if (serial !== this.#serial) handlers.onCertificate()
      this.#serial = serial
      handlers.onView()
    })
  }

  /** Stops following. */
  stop(): void {
    this.#stop()
  }

  /** The known revoked members, including those revoked while this node was offline or stopping. */
  putOut(): readonly NodeId[] {
    return [...this.#revoked]
  }

  #newlyRevoked(view: MembershipView): NodeId[] {
    return [...view.members].filter(([id, { revoked }]) => revoked !== null && !this.#revoked.has(id)).map(([id]) => id)
  }
}

/** Name of the stored membership. */
const AUDITED = 'audited'

/** Dependencies of {@link MembershipAudit}. */
interface MembershipAuditDeps {
  readonly log: MemberLog
  readonly audit: Audit
  readonly events: NodeEvents
  readonly store: NodeStore
  readonly telemetry: Telemetry
}

/** Follows the log's view and records every change of membership, by any member: each once, also over restarts. */
export class MembershipAudit {
  readonly #deps: MembershipAuditDeps
  #known: KnownMembership = NOTHING_KNOWN
  #isSaved = true
  #saving: Promise<void> | null = null
  #stop: Unsubscribe = () => {}

  constructor(deps: MembershipAuditDeps) {
    this.#deps = deps
  }

  /** Records the changes since the last start, and starts to follow the log. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const { log, store } = this.#deps
    this.#known = (await store.read<KnownMembership>(AUDITED)) ?? NOTHING_KNOWN
    this.#look(log.view())
    this.#stop = log.onChange((view) => this.#look(view))
  }

  /** Stops following. Resolves when all seen changes are recorded and stored. */
  async stop(): Promise<void> {
    this.#stop()
    await this.#save()
  }

  #look(view: MembershipView): void {
    const isFirst = this.#known.mesh === null
    const { known, changes } = membershipChanges(this.#known, view)
    this.#known = known
    for (const one of changes) this.#note(one, isFirst)
    if (changes.length === 0) return
    this.#isSaved = false
    void this.#save()
  }

  #note({ kind, code, peer, by, reason, ref }: MembershipChange, isFirst: boolean): void {
    const { audit, events } = this.#deps
    const who = { ...(peer === null ? {} : { peer }), ...(by === null || by === peer ? {} : { by }) }
    audit.append({ kind, code, ...(kind === 'refusal' ? { rule: 'invite' } : {}), reason, ref, ...who })
    // The state before this node's first start is no event.
    if (!isFirst) events.add('membership', `${code} ${shown(reason)}`, { code, ...who })
  }

  /**
   * Records first, stores then: after a crash in between, the reference identifies changes that are recorded already.
   */
  #save(): Promise<void> {
    this.#saving ??= this.#saveAll().finally(() => {
      this.#saving = null
    })
    return this.#saving
  }

  async #saveAll(): Promise<void> {
    const { audit, store, telemetry } = this.#deps
    try {
      while (!this.#isSaved) {
        this.#isSaved = true
        const known = this.#known
        await audit.flush()
        await store.write(AUDITED, known)
      }
    } catch (error) {
      this.#isSaved = false
      telemetry.log('error', 'changes of membership could not be put on record', { reason: messageOf(error) })
    }
  }
}
