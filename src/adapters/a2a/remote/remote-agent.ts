import { foreignProvider } from '../../../domain/card/provider.js'
import type { Conversation } from '../../../domain/gateway/conversation.js'
import { allowedNames } from '../../../kit/glob.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { ToolListChange } from '../../../ports/imported-tools.js'
import type {
  ImportAdapter,
  ImportCalls,
  ImportConnection,
  ImportEvents,
  ImportItem,
  ImportWords
} from '../../../ports/imports.js'
import { callRemote, type RemoteCallDeps, type RemoteRun } from './remote-call.js'
import { CARD_ITSELF, cardChange, cardHash, keptCard, type RemoteCard } from './remote-card.js'
import type { RemoteLink, RemoteMessage } from './remote-client.js'
import type { RemoteContexts } from './remote-contexts.js'
import {
  CARD_TIMEOUT_MS,
  connectRemote,
  fetchCard,
  type RemoteNet,
  type RemotePlace,
  type RemoteSecret
} from './remote-connect.js'
import { failedRemote, isRefusal, type RemoteFault, remoteFaultOf } from './remote-fault.js'
import { conversationInput, remoteInput } from './remote-parts.js'
import { type RemoteOffer, remoteOffer, type RemoteSpec, skillCapability } from './remote-skills.js'

const WORDS: ImportWords = {
  what: 'A2A agent',
  short: 'agent',
  thing: 'card',
  items: 'skills',
  section: 'a2a.agents',
  document: 'a2a',
  advice: 'look at what it says, then accept it',
  notYet: 'has not answered yet',
  failedCode: 'A2A_AGENT_FAILED',
  changedCode: 'A2A_CARD_CHANGED'
}

/** Dependencies of {@link RemoteAgent}. */
export interface RemoteAgentDeps {
  readonly spec: RemoteSpec
  readonly secret: RemoteSecret | null
  readonly net: RemoteNet
  readonly contexts: RemoteContexts
  /** Logs events for operators. */
  readonly log: (level: 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void
}

/** A message beside its content. */
type RemoteAbout = Pick<RemoteMessage, 'skill' | 'messageId' | 'justification'>

/** The pinned data of a remote agent. */
interface PinnedCard {
  readonly card: RemoteCard
}

/** A remote A2A agent as an import: its card is pinned, and each skill is a capability. */
export class RemoteAgent implements ImportAdapter<PinnedCard, RemoteOffer> {
  readonly spec: RemoteSpec
  readonly words = WORDS
  readonly listTimeoutMs = CARD_TIMEOUT_MS
  readonly transport = 'a2a'
  readonly address: string
  readonly isAllowed: (name: string) => boolean
  readonly #deps: RemoteAgentDeps
  readonly #place: RemotePlace
  #link: { readonly hash: string; readonly link: Promise<RemoteLink> } | null = null

  constructor(deps: RemoteAgentDeps) {
    const { spec, secret } = deps
    const { name: asker, card, url, key, maxOutputBytes, timeoutMs } = spec
    this.spec = spec
    this.address = card
    this.isAllowed = allowedNames(spec.skills)
    this.#deps = deps
    this.#place = { card, url, asker, secret, key, maxOutputBytes, timeoutMs }
  }

  /** Fetches the card anew for each list; no connection stays open. */
  open(_events: ImportEvents, _signal: AbortSignal): Promise<ImportConnection<PinnedCard>> {
    const stop = new AbortController()
    let fetching: Promise<unknown> = Promise.resolve()
    return Promise.resolve({
      list: async (signal: AbortSignal) => {
        signal.addEventListener('abort', () => stop.abort())
        const card = fetchCard(this.#deps.net, this.#place, stop.signal)
        fetching = card.catch(() => {})
        return { card: await card }
      },
      close: async () => {
        stop.abort()
        await fetching
      }
    })
  }

  hash({ card }: PinnedCard): string {
    return cardHash(card)
  }

  isNothing(): boolean {
    return false
  }

  encode({ card }: PinnedCard): Readonly<Record<string, unknown>> {
    const { provider, ...rest } = card
    // Beside the card: an earlier build refuses a stored card with an unknown member.
    return { hash: cardHash(card), card: rest, ...(provider === undefined ? {} : { provider }) }
  }

  decode({ hash, card: stored, provider }: Readonly<Record<string, unknown>>): PinnedCard | null {
    const card = keptCard(stored)
    if (card === null || cardHash(card) !== hash) return null
    return { card: provider === undefined ? card : { ...card, provider: foreignProvider(provider) } }
  }

  completed({ card }: PinnedCard, { card: { provider } }: PinnedCard): PinnedCard | null {
    return card.provider === undefined && provider !== undefined ? { card: { ...card, provider } } : null
  }

  change(before: PinnedCard | null, { card }: PinnedCard): ToolListChange {
    return cardChange(before?.card ?? null, card)
  }

  changeText({ changed }: ToolListChange, listed: string | null): string {
    if (listed !== null) return `has another card than the one pinned in the config (sha256 ${listed})`
    const what = changed.some(({ name }) => name === CARD_ITSELF) ? 'itself' : 'its skills'
    return `says something else of ${what} than what was accepted; it waits for you`
  }

  items({ card }: PinnedCard): readonly ImportItem[] {
    return card.skills.map(({ id, description }) => ({ name: id, description, inputSchema: {} }))
  }

  faults(): readonly [] {
    return []
  }

  capability(skill: string): string {
    return skillCapability(skill)
  }

  offer({ card }: PinnedCard, names: ReadonlySet<string>): RemoteOffer {
    const skills = card.skills.filter(({ id }) => names.has(id))
    return remoteOffer(this.spec, card, skills)
  }

  async call(
    task: AgentTask,
    run: RemoteRun,
    { offer, link }: { readonly offer: RemoteOffer | null; readonly link: ImportCalls }
  ): Promise<AgentOutcome> {
    const { clock } = this.#deps.net
    const { name, maxOutputBytes, passJustification } = this.spec
    const skill = offer?.skills.get(task.capability)
    if (offer === null || skill === undefined)
      return { ok: false, code: 'TASK_FAILED', message: `the A2A agent ${name} offers no such skill now` }
    const onFault = (fault: RemoteFault): void => this.#note(fault, link)
    try {
      const why = passJustification && task.justification !== undefined ? { justification: task.justification } : {}
      const about = { ...why, skill, messageId: `msg-${task.requestId}` }
      const deps = { agent: name, link: await this.#linkOf(offer.card), clock, maxOutputBytes, onFault }
      const { conversation } = task
      if (conversation === undefined) return await callRemote(deps, { ...remoteInput(task.input), ...about }, run)
      return await this.#converse(deps, { conversation, about }, run)
    } catch (error) {
      const fault = remoteFaultOf(error)
      onFault(fault)
      return failedRemote(name, fault)
    }
  }

  /** One turn of a conversation: in its context at the agent, and in the task there that asked. */
  async #converse(
    deps: RemoteCallDeps,
    { conversation, about }: { readonly conversation: Conversation; readonly about: RemoteAbout },
    run: RemoteRun
  ): Promise<AgentOutcome> {
    const { contexts } = this.#deps
    const { name } = this.spec
    const known = conversation.thread?.contextId ?? (await contexts.of(name, conversation))
    const message = { ...conversationInput(conversation, known), ...about }
    let fault: RemoteFault | null = null
    const contextOf = { ...deps, onContext: (id: string) => contexts.put(name, conversation, id) }
    const first = { ...contextOf, onFault: (one: RemoteFault) => void (fault = one) }
    const outcome = await callRemote(first, message, run)
    // An agent may have forgotten a context, and then has done nothing: the conversation goes on in another one.
    if (known !== null && message.taskId === null && fault !== null && isRefusal(fault))
      return await callRemote(contextOf, { ...message, contextId: null }, run)
    if (fault !== null) deps.onFault?.(fault)
    return outcome
  }

  /** Logs addresses for this node only. The card of an unreached agent is fetched again soon. */
  #note({ kind, message, printed: reported }: RemoteFault, link: ImportCalls): void {
    if (kind === 'unsent') link.doubt()
    if (message !== reported)
      this.#deps.log('warn', 'the way to an A2A agent failed', { agent: this.spec.name, reason: message })
  }

  /** Caches one link per card in force. */
  async #linkOf(card: RemoteCard): Promise<RemoteLink> {
    const hash = cardHash(card)
    if (this.#link?.hash !== hash) this.#link = { hash, link: connectRemote(this.#deps.net, this.#place, card) }
    const { link } = this.#link
    link.catch(() => {
      this.#link = null
    })
    return await link
  }
}
