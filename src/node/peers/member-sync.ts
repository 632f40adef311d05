import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import type { MembershipView } from '../../domain/membership/types.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { RemoteCards } from '../cards/remote-cards.js'
import { messageOf } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { membershipChanges, NOTHING_KNOWN, type KnownMembership, type MembershipChange } from '../../domain/membership/changes.js'
import type { Audit } from '../../ports/audit.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { NodeEvents } from '../observe/events.js'

/** What following the members needs. */
export interface MemberSyncDeps {
  readonly log: MemberLog
  readonly membership: Membership
  readonly remoteCards: RemoteCards
}

/** What the node is told of its mesh. */
export interface MemberSyncHandlers {
  /** This node has another certificate. */
  onCertificate(): void
  /** The log's view has changed. */
  onView(): void
  /** A member was put out. */
  onRevoked(peer: NodeId): void
}

/** Follows the log: takes its cards, and tells of revocations and of this node's own certificate. */
export class MemberSync {
  readonly #deps: MemberSyncDeps
  readonly #revoked = new Set<NodeId>()
  #serial = -1
  #stop: Unsubscribe = () => {}

  constructor(deps: MemberSyncDeps) {
    this.#deps = deps
  }

  /** Takes what the log says now and begins to follow it. */
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

  /** Follows it no longer. */
  stop(): void {
    this.#stop()
  }

  /** Who was put out, as far as this node knows; maybe while it was away, or at its last moment. */
  putOut(): readonly NodeId[] {
    return [...this.#revoked]
  }

  #newlyRevoked(view: MembershipView): NodeId[] {
    return [...view.members].filter(([id, { revoked }]) => revoked !== null && !this.#revoked.has(id)).map(([id]) => id)
  }
}

/** Name of the stored document. */
const AUDITED = 'audited'

/** What putting changes on record needs. */
interface MembershipAuditDeps {
  readonly log: MemberLog
  readonly audit: Audit
  readonly events: NodeEvents
  readonly store: NodeStore
  readonly telemetry: Telemetry
}

/** Follows the log's view and puts every change of membership on record, whoever made it: each once, also over restarts. */
export class MembershipAudit {
  readonly #deps: MembershipAuditDeps
  #known: KnownMembership = NOTHING_KNOWN
  #isSaved = true
  #saving: Promise<void> | null = null
  #stop: Unsubscribe = () => {}

  constructor(deps: MembershipAuditDeps) {
    this.#deps = deps
  }

  /** Puts on record what changed since the last start and begins to follow the log. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const { log, store } = this.#deps
    this.#known = (await store.read<KnownMembership>(AUDITED)) ?? NOTHING_KNOWN
    this.#look(log.view())
    this.#stop = log.onChange((view) => this.#look(view))
  }

  /** Follows it no longer. Resolves when what was seen is on record and remembered as such. */
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
    // What was so before this node came is no news.
    if (!isFirst) events.add('membership', `${code} ${shown(reason)}`, { code, ...who })
  }

  /** First on record, then remembered: what a crash between the two has written already is known by its reference. */
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
