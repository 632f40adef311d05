import { messageOf } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import { inviterOf, ownMachines } from '../../domain/membership/trust.js'
import type { MembershipView, Trust } from '../../domain/membership/types.js'
import type { MemberLog, Membership } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Clock } from '../../kit/clock.js'

/** Dependencies of {@link PeerTrust}. */
export interface PeerTrustDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly log: Pick<MemberLog, 'view' | 'onChange' | 'submit'>
  readonly membership: Pick<Membership, 'nodeId' | 'certificate' | 'acceptsInviter'>
}

/** How this node regards the other members: as machines of its own person, or as guests. */
export class PeerTrust {
  readonly #deps: PeerTrustDeps
  /** The machines of the persons of some members, by one view. */
  #known: { readonly view: MembershipView; readonly machines: Map<NodeId, ReadonlySet<NodeId>> } | null = null
  #isAccepting = false
  /** The last submission about each member, while it is under way. */
  readonly #turns = new Map<NodeId, Promise<unknown>>()
  #stop: Unsubscribe = () => {}

  constructor(deps: PeerTrustDeps) {
    this.#deps = deps
  }

  /** Tells the mesh that this node accepts its inviter, once the log shows by whom it was invited. */
  start(): void {
    this.#stop = this.#deps.log.onChange(() => this.#accept())
    this.#accept()
  }

  /** How a member, by default this node, regards a node; itself as `mine`, an unknown one as a guest. */
  of(node: NodeId, by: NodeId = this.#deps.membership.nodeId): Trust {
    return node === by || this.machines(by).has(node) ? 'mine' : 'guest'
  }

  /** The other machines of a member's person, by default of this node's. */
  machines(self: NodeId = this.#deps.membership.nodeId): ReadonlySet<NodeId> {
    const { log, membership } = this.#deps
    const view = log.view()
    if (this.#known?.view !== view) this.#known = { view, machines: new Map() }
    const known = this.#known.machines.get(self)
    if (known !== undefined) return known
    const acceptsInviter = self === membership.nodeId && membership.acceptsInviter
    const machines = ownMachines({ view, self, acceptsInviter })
    this.#known.machines.set(self, machines)
    return machines
  }

  /**
   * Signs into the log how this node regards a member. False: an entry of this node says so already.
   * @throws NodeError OVERLOADED, TIMEOUT as the log
   */
  async set(node: NodeId, trust: Trust, timeoutMs?: number): Promise<boolean> {
    // Two entries at once about one member would have one serial, and one of them would be lost.
    const before = this.#turns.get(node)
    const turn = (async () => {
      await before?.catch(() => {})
      return await this.#submit(node, trust, timeoutMs)
    })()
    this.#turns.set(node, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(node) === turn) this.#turns.delete(node)
    }
  }

  /** Stops to follow the log. */
  close(): void {
    this.#stop()
  }

  async #submit(node: NodeId, trust: Trust, timeoutMs?: number): Promise<boolean> {
    const { clock, log, membership } = this.#deps
    const known = log.view().trust.get(membership.nodeId)?.of[node]
    if (known?.trust === trust) return false
    const serial = (known?.serial ?? 0) + 1
    const body = {
      kind: 'trust',
      mesh: membership.certificate().body.mesh,
      nodeKey: node,
      trust,
      serial,
      at: clock.now()
    } as const
    await log.submit(body, timeoutMs)
    return true
  }

  #accept(): void {
    const { log, membership, telemetry } = this.#deps
    const view = log.view()
    const inviter = membership.acceptsInviter ? inviterOf(view, membership.nodeId) : null
    if (inviter === null || this.#isAccepting || view.trust.get(membership.nodeId)?.of[inviter] !== undefined) return
    this.#isAccepting = true
    this.set(inviter, 'mine')
      .catch((error: unknown) =>
        telemetry.log('warn', 'the mesh does not know yet that this node accepts its inviter', {
          reason: messageOf(error)
        })
      )
      .finally(() => (this.#isAccepting = false))
  }
}
