import type { Unsubscribe } from '../../kit/events.js'
import type { KnownClients, Owners } from '../../ports/gateway.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Tokens } from '../access/tokens.js'

/** What says who is gone. */
export interface OwnerDirectoryDeps {
  readonly tokens: Pick<Tokens, 'has' | 'onRevoked'>
  readonly log: Pick<MemberLog, 'view' | 'onChange'>
  /** Of the OAuth server. */
  readonly clients: KnownClients
}

/** Owners of tasks by what they came with: a token of this node, a client of its OAuth server, or a membership. */
export class OwnerDirectory implements Owners {
  readonly #deps: OwnerDirectoryDeps

  constructor(deps: OwnerDirectoryDeps) {
    this.#deps = deps
  }

  /** Of what was revoked nothing is kept: what is not there is gone, however long ago, and whoever took it away. */
  isGone(owner: string): boolean {
    const { tokens, clients, log } = this.#deps
    const [, kind, id = ''] = /^(token|client|peer):([^/]*)/.exec(owner) ?? []
    if (kind === 'token') return !tokens.has(id)
    if (kind === 'client') return !clients.has(id)
    // Who is not in the log yet may only have been admitted.
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

  /** How many members were put out. */
  #putOut(): number {
    return [...this.#deps.log.view().members.values()].filter(({ revoked }) => revoked !== null).length
  }
}
