import { mayAccept, Pinned } from '../../../domain/pinning/pinned.js'
import { allowedNames } from '../../../kit/glob.js'
import { jitteredBackoffMs } from '../../../kit/backoff.js'
import { type Clock, type Timer, wait } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedServerState } from '../../../ports/imported-tools.js'
import type { NodeStore } from '../../../ports/storage.js'
import { callRemote, type RemoteRun } from './remote-call.js'
import { cardChange, cardHash, type RemoteCard } from './remote-card.js'
import type { RemoteLink } from './remote-client.js'
import { connectRemote, fetchCard, type RemoteNet, type RemotePlace, type RemoteSecret } from './remote-connect.js'
import { failedRemote, type RemoteFault, remoteFaultOf } from './remote-fault.js'
import { remoteInput } from './remote-parts.js'
import { type PinnedCard, RemotePin } from './remote-pin.js'
import { ANY_SKILL, type RemoteOffer, remoteOffer, type RemoteSpec, skillCapability } from './remote-skills.js'

/** How long a card is good, in milliseconds. */
export const CARD_TTL_MS = 300_000
/** Longest wait before a card that could not be fetched is asked for again, in milliseconds. */
export const MAX_CARD_RETRY_MS = 60_000
/** Waits before such a card is asked for again. */
const CARD_RETRIES = { baseMs: 1000, maxMs: MAX_CARD_RETRY_MS, minMs: 100 }
/** How long whoever asks for a card anew waits, in milliseconds: less than a command waits for its node. */
const REFRESH_WAIT_MS = 12_000
/** Characters of a description that lists tell. */
const SHOWN_DESCRIPTION = 1000

/** Notes what happens, for people. */
export type RemoteLog = (level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Readonly<Record<string, unknown>>) => void

/** What {@link RemoteAgent} needs. */
export interface RemoteAgentDeps {
  readonly spec: RemoteSpec
  readonly secret: RemoteSecret | null
  readonly net: RemoteNet
  readonly store: NodeStore
  readonly clock: Clock
  /** In [0, 1). */
  readonly chance: () => number
  readonly log: RemoteLog
  /** What is offered has changed. */
  onOffer(): void
}

/** One remote agent of the config: its card, what of it is in force, and calls of its skills. */
export class RemoteAgent {
  readonly spec: RemoteSpec
  readonly #deps: RemoteAgentDeps
  readonly #place: RemotePlace
  readonly #pin: RemotePin
  readonly #pinned: Pinned<PinnedCard>
  readonly #isAllowed: (name: string) => boolean
  readonly #stop = new AbortController()
  #offer: RemoteOffer | null = null
  #link: { readonly hash: string; readonly link: Promise<RemoteLink> } | null = null
  #state: ImportedServerState = 'idle'
  #lastError: string | null = null
  #listedAt: number | null = null
  #failures = 0
  #timer: Timer | null = null
  /** The fetch that is under way. */
  #fetching: Promise<void> | null = null

  constructor(deps: RemoteAgentDeps) {
    const { spec, secret, store } = deps
    this.spec = spec
    this.#deps = deps
    this.#place = {
      card: spec.card,
      asker: spec.name,
      secret,
      key: spec.key,
      maxOutputBytes: spec.maxOutputBytes,
      timeoutMs: spec.timeoutMs
    }
    this.#pin = new RemotePin(spec.name, store)
    this.#isAllowed = allowedNames(spec.skills)
    this.#pinned = new Pinned({ pin: spec.pin, hash: ({ card }) => cardHash(card), isNothing: () => false })
  }

  /** Reads what the home has of it. Asks nobody. */
  async load(): Promise<void> {
    this.#pinned.restore(await this.#pin.read())
    this.#reoffer()
  }

  /** Begins to ask for its card, in the background. */
  start(): void {
    if (this.#state !== 'idle') return
    this.#state = 'starting'
    void this.#fetch()
  }

  /** The agent as it is offered now; null while nothing of it is in force. */
  get offer(): RemoteOffer | null {
    return this.#offer
  }

  /** The card that was in force cannot be read any more. */
  get isPinLost(): boolean {
    return this.#pinned.isLost
  }

  /** Asks for its card anew, and takes the one with that sha256. @throws NodeError CONFLICT; what cannot be kept, as the store says */
  async refresh(accept: string | null): Promise<void> {
    const { spec } = this
    await Promise.race([this.#fetch(), wait(this.#deps.clock, REFRESH_WAIT_MS, this.#stop.signal)])
    if (accept === null) return
    const { seen } = this.#pinned
    const mayTake = mayAccept({
      name: spec.name,
      setting: `a2a.agents.${spec.name}.pin`,
      thing: 'card',
      accept,
      pin: spec.pin,
      pending: this.#pending(),
      pinned: this.#pinned.pinned()?.hash ?? null,
      fault: this.#state === 'ready' ? null : (this.#lastError ?? 'it has not answered yet')
    })
    if (!mayTake || seen === null) return
    const accepted = { ...seen, by: 'accepted' as const }
    await this.#pin.write(accepted)
    this.#pinned.accept(accepted)
    this.#reoffer()
  }

  /** What there is to say of it. */
  info(): ImportedServerInfo {
    const pinned = this.#pinned.pinned()
    const { seen, accepted, isPending } = this.#pinned
    return {
      name: this.spec.name,
      agent: this.spec.name,
      transport: 'a2a',
      url: this.spec.card,
      state: this.#state,
      tools: this.#tools(),
      pinned: pinned?.hash ?? null,
      pinnedBy: pinned?.by ?? null,
      listed: this.#pending(),
      change: isPending && seen !== null ? cardChange(accepted?.card ?? null, seen.card) : null,
      lastError: this.#lastError,
      lastListedAt: this.#listedAt === null ? null : new Date(this.#listedAt).toISOString(),
      restarts: 0
    }
  }

  /** Does one task at it. Never rejects. */
  async call(task: AgentTask, run: RemoteRun): Promise<AgentOutcome> {
    const { clock } = this.#deps
    const { name, maxOutputBytes } = this.spec
    const skill = this.#offer?.skills.get(task.capability)
    const card = this.#pinned.accepted?.card
    if (skill === undefined || card === undefined)
      return { ok: false, code: 'TASK_FAILED', message: `the A2A agent ${name} offers no such skill now` }
    try {
      const link = await this.#linkOf(card)
      const message = { ...remoteInput(task.input), skill, messageId: `msg-${task.requestId}` }
      return await callRemote({ agent: name, link, clock, maxOutputBytes, onFault: (fault) => this.#note(fault) }, message, run)
    } catch (error) {
      const fault = remoteFaultOf(error)
      this.#note(fault)
      return failedRemote(name, fault)
    }
  }

  /** Addresses are for this node alone. Of one that was not reached it is looked at now whether its card is still to be had. */
  #note({ kind, message, printed: reported }: RemoteFault): void {
    if (kind === 'unsent' && this.#state === 'ready') void this.#fetch()
    if (message !== reported) this.#deps.log('warn', 'the way to an A2A agent failed', { agent: this.spec.name, reason: message })
  }

  /** Asks for nothing more. Idempotent. */
  async close(): Promise<void> {
    this.#state = 'closed'
    this.#stop.abort()
    this.#deps.clock.clear(this.#timer)
    await this.#fetching
  }

  /** One link for each card in force: the client library is made once. */
  async #linkOf(card: RemoteCard): Promise<RemoteLink> {
    const hash = cardHash(card)
    if (this.#link?.hash !== hash) this.#link = { hash, link: connectRemote(this.#deps.net, this.#place, card) }
    const { link } = this.#link
    link.catch(() => {
      this.#link = null
    })
    return await link
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNow().finally(() => {
      this.#fetching = null
    })
    return this.#fetching
  }

  async #fetchNow(): Promise<void> {
    const { net, clock } = this.#deps
    clock.clear(this.#timer)
    try {
      const card = await fetchCard(net, this.#place, this.#stop.signal)
      await this.#take(card)
      if (this.#stop.signal.aborted) return
      this.#failures = 0
      this.#state = 'ready'
      this.#lastError = null
      this.#listedAt = clock.now()
    } catch (error) {
      this.#failed(messageOf(error))
    }
    this.#again()
  }

  #failed(reason: string): void {
    if (this.#stop.signal.aborted) return
    this.#failures++
    if (reason !== this.#lastError) this.#deps.log('warn', 'the card of an A2A agent cannot be had', { agent: this.spec.name, reason })
    this.#state = 'failed'
    this.#lastError = reason
  }

  /** Full jitter: anything up to a bound that doubles with each failure. */
  #again(): void {
    const { clock, chance } = this.#deps
    if (this.#stop.signal.aborted) return
    const delayMs = this.#failures === 0 ? CARD_TTL_MS : jitteredBackoffMs(CARD_RETRIES, this.#failures - 1, chance())
    this.#timer = clock.after(delayMs, () => void this.#fetch())
  }

  async #take(card: RemoteCard): Promise<void> {
    const { log } = this.#deps
    const kept = this.#pinned.take({ card })
    // A disk that is full must not keep an agent away that was never seen before; the next start sees it first again.
    if (kept !== null)
      await this.#pin
        .write(kept)
        .catch((error: unknown) => log('error', 'a card could not be kept', { agent: this.spec.name, reason: messageOf(error) }))
    if (this.#pinned.isPending) log('warn', 'an A2A agent has another card than the one accepted', { agent: this.spec.name })
    this.#reoffer()
  }

  #pending(): string | null {
    const { seen, isPending } = this.#pinned
    return seen !== null && isPending ? cardHash(seen.card) : null
  }

  /** Of the card in force those skills are offered that the config allows and that the agent still has. */
  #reoffer(): void {
    const card = this.#pinned.accepted?.card
    const skills = card?.skills.filter((one) => this.#isAllowed(one.id) && this.#isThere(one.id)) ?? []
    const next = card === undefined ? null : remoteOffer(this.spec, card, skills)
    const isSame = JSON.stringify(next?.definition) === JSON.stringify(this.#offer?.definition)
    this.#offer = next === null || this.#offer === null || !isSame ? next : { ...next, definition: this.#offer.definition }
    if (!isSame) this.#deps.onOffer()
  }

  #isThere(skill: string): boolean {
    const { seen } = this.#pinned
    return seen === null || seen.card.skills.some(({ id }) => id === skill)
  }

  #tools(): ImportedServerInfo['tools'] {
    const { seen, accepted } = this.#pinned
    const cards = [accepted?.card, seen?.card].flatMap((one) => one ?? [])
    const known = new Map(cards.toReversed().flatMap(({ skills }) => skills.map((one) => [one.id, one.description] as const)))
    if (this.#offer?.skills.has(ANY_SKILL) === true && known.size === 0) known.set(ANY_SKILL, accepted?.card.description ?? '')
    return [...known]
      .map(([name, description]) => {
        const reason = this.#reason(name)
        const capability = skillCapability(name)
        return { name, capability, description: description.slice(0, SHOWN_DESCRIPTION), inputSchema: {}, offered: reason === null, reason }
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #reason(skill: string): string | null {
    if (this.#offer?.skills.has(skillCapability(skill)) === true) return null
    if (!this.#isAllowed(skill)) return 'not among `skills` of the config'
    if (this.#offer?.leftOut.includes(skill) === true)
      return 'the card of the agent has no room for it: name fewer in `skills` of the config'
    return this.#isThere(skill) ? 'not accepted yet' : 'the agent has it no more'
  }
}
