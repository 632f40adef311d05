import { type Clock, wait } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import type { Unsubscribe } from '../../../kit/events.js'
import type { NodeId } from '../../../kit/ids.js'
import type { SignedCard } from '../../../domain/membership/types.js'
import type { AgentDetail, AgentInfo, NodeApi } from '../../../ports/node-api.js'
import { type PreparedDocument, prepare } from './card-answer.js'
import { pathIdOf } from './card-interfaces.js'
import type { CardSigner } from './card-signature.js'
import { agentSubject, type CardHost, type CardSubject, rootSubject } from './card-subject.js'
import type { OfferedExtension } from '../server/service-params.js'

/** Wait before a broken watch is opened again, in milliseconds. */
const AGAIN_MS = 1000
/** Cards per turn of the event loop. */
const BATCH = 16

/** Cards as signed by the nodes of their agents. */
export interface OriginalCards {
  /** Null while the log does not have it. */
  find(nodeId: NodeId, agentId: string): SignedCard | null
  /** Calls the listener after any card may have changed. */
  onChange(listener: () => void): Unsubscribe
}

/** Dependencies of {@link CardStore}. */
export interface CardStoreDeps {
  /** `version`: of the node's software, for its own card. */
  readonly host: CardHost & { readonly version: string }
  /** The API of the weakest caller: agents visible to it are public. */
  readonly api: NodeApi
  readonly signer: CardSigner
  readonly originals: OriginalCards
  readonly clock: Clock
  /** Called with the error when a card cannot be made; the previous card stays. */
  onFault(error: unknown): void
}

/** A card in both forms, ready to be sent. */
export interface CardEntry {
  /** Null: the node as a whole. */
  readonly agent: AgentDetail | null
  readonly original: SignedCard | null
  readonly one: PreparedDocument
  readonly hybrid: PreparedDocument
  /** The extensions of the card. */
  readonly extensions: readonly OfferedExtension[]
}

/** The served cards, replaced as a whole. */
interface Cards {
  readonly root: CardEntry
  /** By every name that paths accept. */
  readonly named: ReadonlyMap<string, CardEntry>
  /** By `id@node key`: each entry with the fingerprint of its source. */
  readonly made: ReadonlyMap<string, { readonly from: string; readonly entry: CardEntry }>
}

/**
 * The encoded cards of all public agents. Watches the node's list of agents, makes the changed cards, then replaces the
 * served set as a whole.
 */
export class CardStore {
  /** Resolves when the first cards are made or have failed, or at {@link close}. */
  readonly ready: Promise<void>
  readonly #deps: CardStoreDeps
  readonly #ended = new AbortController()
  readonly #stopOriginals: Unsubscribe
  #tellReady: () => void = () => {}
  #agents: readonly AgentInfo[] | null = null
  #cards: Cards | null = null
  #isWanted = false
  #isMaking = false

  constructor(deps: CardStoreDeps) {
    this.#deps = deps
    this.ready = new Promise((resolve) => {
      this.#tellReady = resolve
    })
    this.#stopOriginals = deps.originals.onChange(() => this.#refresh())
    void this.#follow(this.#ended.signal)
  }

  /** Are there cards at all? */
  get isOpen(): boolean {
    return this.#cards !== null
  }

  /** The card of a path id; null: of the node. Returns null for an unknown id, and before {@link ready}. */
  find(pathId: string | null): CardEntry | null {
    return (pathId === null ? this.#cards?.root : this.#cards?.named.get(pathId)) ?? null
  }

  /** Makes no more cards. */
  close(): void {
    this.#ended.abort()
    this.#stopOriginals()
    this.#tellReady()
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { agents } of this.#deps.api.watch('agents.list', {}, { signal })) {
          this.#agents = agents
          this.#refresh()
        }
      } catch (error) {
        if (!signal.aborted) this.#deps.onFault(error)
      }
      await wait(this.#deps.clock, AGAIN_MS, signal)
    }
  }

  #refresh(): void {
    this.#isWanted = true
    if (!this.#isMaking) void this.#makeAll()
  }

  async #makeAll(): Promise<void> {
    this.#isMaking = true
    while (this.#isWanted && this.#agents !== null && !this.#ended.signal.aborted) {
      this.#isWanted = false
      try {
        this.#cards = await this.#make(this.#agents)
      } catch (error) {
        this.#deps.onFault(error)
      }
      this.#tellReady()
    }
    this.#isMaking = false
  }

  async #make(agents: readonly AgentInfo[]): Promise<Cards> {
    const made = new Map<string, { readonly from: string; readonly entry: CardEntry }>()
    const [names, keys] = [new Map<string, CardEntry>(), new Map<string, CardEntry>()]
    let count = 0
    for (const agent of agents) {
      const key = `${agent.id}@${agent.node.id}`
      const original = this.#originalOf(agent)
      const from = JSON.stringify([
        agent.address,
        agent.node,
        agent.tier,
        agent.sandboxId,
        agent.revision,
        agent.provider,
        original?.sig ?? null
      ])
      const former = this.#cards?.made.get(key)
      const entry = former?.from === from ? former.entry : await this.#entryOf(key, original)
      if (entry === null) continue
      if (entry !== former?.entry && ++count % BATCH === 0) await new Promise((resolve) => setImmediate(resolve))
      made.set(key, { from, entry })
      for (const name of [pathIdOf(agent), agent.address]) names.set(name, entry)
      keys.set(key, entry)
    }
    // A node may use the key of another node as its name: the owner of the key wins.
    const named = new Map([...names, ...keys])
    return { made, named, root: await this.#rootOf([...made.values()].flatMap(({ entry }) => entry.agent ?? [])) }
  }

  #originalOf({ origin, node, id, revision }: AgentInfo): SignedCard | null {
    const original = origin === 'local' ? null : this.#deps.originals.find(node.id, id)
    return original?.body.revision === revision ? original : null
  }

  /** Null when the agent is gone. Other errors keep the previous card. */
  async #entryOf(key: string, original: SignedCard | null): Promise<CardEntry | null> {
    const former = this.#cards?.made.get(key)?.entry
    try {
      const agent = await this.#deps.api.call('agents.show', { agent: key })
      return { agent, original, ...this.#prepared(agentSubject(agent, original, this.#deps.host), former) }
    } catch (error) {
      if (asNodeError(error).code === 'AGENT_NOT_FOUND') return null
      this.#deps.onFault(error)
      return former ?? null
    }
  }

  async #rootOf(agents: readonly AgentDetail[]): Promise<CardEntry> {
    const { api, host } = this.#deps
    const subject = rootSubject(await api.call('node.info', {}), agents, host)
    return { agent: null, original: null, ...this.#prepared(subject, this.#cards?.root) }
  }

  #prepared(subject: CardSubject, former: CardEntry | undefined): Pick<CardEntry, 'one' | 'hybrid' | 'extensions'> {
    const { signer, clock } = this.#deps
    const { one, hybrid } = signer.cards(subject)
    const now = clock.now()
    return {
      one: prepare(one, now, former?.one),
      hybrid: prepare(hybrid, now, former?.hybrid),
      extensions: subject.extensions
    }
  }
}
