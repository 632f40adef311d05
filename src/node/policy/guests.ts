import type { NodeId } from '../../kit/ids.js'
import { areGuestsAsked } from '../../kit/names/trust.js'
import { shellWord } from '../../kit/text.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { PolicyState } from '../../ports/policy.js'
import type { Directory } from '../cards/directory.js'
import type { PeerTrust } from './peer-trust.js'
import type { PolicyStore } from './policy-store.js'

/** Dependencies of {@link Guests}. */
export interface GuestsDeps {
  readonly log: Pick<MemberLog, 'view'>
  readonly trust: Pick<PeerTrust, 'of' | 'machines'>
  readonly policy: Pick<PolicyStore, 'state'>
  readonly directory: Pick<Directory, 'ref'>
  readonly self: NodeId
}

/**
 * The guests of members, for work beside messages: swarms and documents. Rules decide about messages. A home without a
 * rule that asks about guests, as of earlier builds, has no guests here: its rules share everything.
 */
export class Guests {
  readonly #deps: GuestsDeps
  #asked: { readonly state: PolicyState; readonly areAsked: boolean } | null = null

  constructor(deps: GuestsDeps) {
    this.#deps = deps
  }

  /** Is a node a guest of another? Both are this node by default. An unknown or revoked member has no guests. */
  has(node: NodeId = this.#deps.self, by: NodeId = this.#deps.self): boolean {
    const { log, trust } = this.#deps
    if (!this.#areAsked || log.view().members.get(by)?.revoked !== null) return false
    return trust.of(node, by) === 'guest'
  }

  /** Has this node a guest in the mesh? */
  get areThere(): boolean {
    return [...this.#deps.log.view().members].some(([node, { revoked }]) => revoked === null && this.has(node))
  }

  /** The other machines of this node's person, in the order of their keys. */
  machines(): NodeId[] {
    return [...this.#deps.trust.machines()].sort()
  }

  /** The command by which this node makes a guest a machine of its person. */
  step(node: NodeId): string {
    return `a2a-node peers trust ${shellWord(this.#deps.directory.ref(node).name)} mine`
  }

  get #areAsked(): boolean {
    const state = this.#deps.policy.state()
    if (this.#asked?.state !== state) this.#asked = { state, areAsked: areGuestsAsked(state.rules) }
    return this.#asked.areAsked
  }
}
