import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { AgentAddress } from '../../domain/card/card.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { Directory } from './directory.js'
import type { AskedElsewhere } from '../agents/load-estimate.js'
import type { AgentLookup } from './agent-lookup.js'
import type { DraftHead, Outbound } from '../messaging/outbound.js'
import type { RemoteCards } from './remote-cards.js'
import type { Presence } from '../peers/presence.js'

/** Dependencies of {@link findAgent}. */
export interface NameDeps {
  readonly directory: Directory
  readonly agentLookup: AgentLookup
}

/**
 * The agent of a name. An unknown one is looked up at the connected members once: only that takes a promise. `sees`: as
 * {@link Directory.agent}.
 * @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME.
 */
export function findAgent(
  { directory, agentLookup }: NameDeps,
  text: string,
  sees?: (card: RegisteredCard) => boolean
): AgentAddress | Promise<AgentAddress> {
  try {
    return directory.agent(text, sees)
  } catch (error) {
    if (!(error instanceof NodeError) || error.code !== 'AGENT_NOT_FOUND') throw error
    return agentLookup.ask(text.split('@')[0] ?? text).then(() => directory.agent(text, sees))
  }
}

/** Dependencies of {@link AgentSelector}. */
interface AgentSelectorDeps {
  readonly self: NodeId
  readonly registry: AgentRegistry
  readonly presence: Presence
  readonly agents: AgentHost
  readonly remoteCards: Pick<RemoteCards, 'unableSince'>
  readonly asked: Pick<AskedElsewhere, 'expect' | 'tasks'>
  readonly outbound: Outbound
}

/** The message to the chosen agent. */
export type CapableDraft = Omit<DraftHead, 'recipient' | 'capability'> & {
  readonly capabilities: readonly [string, ...string[]]
  /** True: choose an offline agent when none is online, so that the message waits for it. */
  readonly mayBeAway?: boolean
  /** True for agents that the caller sees; refusals for others are recorded, but not reported. Default: all. */
  readonly sees?: (card: RegisteredCard) => boolean
}

/** Chooses the agents of messages that name a capability. */
export class AgentSelector {
  readonly #deps: AgentSelectorDeps

  constructor(deps: AgentSelectorDeps) {
    this.#deps = deps
  }

  /**
   * Chooses an agent with all the capabilities: an allowed one, online unless told otherwise, never the sender. Order:
   * able to take work now, inside the mesh, least busy, local. The load of remote agents is known only as far as it
   * comes from this node.
   * @throws NodeError CAPABILITY_NOT_FOUND when no agent has them; the refusal of the rules when none is allowed;
   * PEER_OFFLINE when all are offline.
   */
  pick({ capabilities, mayBeAway = false, sees = () => true, ...draft }: CapableDraft): AgentAddress {
    const { self, registry, presence, agents, asked, outbound, remoteCards } = this.#deps
    const [first, ...rest] = capabilities
    const cards = registry.findByCapability(first).filter((card) => hasAll(card, rest) && !isSame(card, draft.sender))
    const isHere = (card: RegisteredCard): boolean => card.nodeId === self
    const isAway = (card: RegisteredCard): boolean => !isHere(card) && !presence.isOnline(card.nodeId)
    const draftTo = ({ id, nodeId }: RegisteredCard): DraftHead => ({
      ...draft,
      capability: first,
      recipient: { agentId: id, nodeId }
    })
    let refused: RegisteredCard | null = null
    const usable = cards.filter((card) => {
      if (isAway(card) && !mayBeAway) return false
      const { allowed } = outbound.verdict(draftTo(card))
      if (!allowed && (refused === null || (sees(card) && !sees(refused)))) refused = card
      return allowed
    })
    const placeOf = (card: RegisteredCard): readonly number[] => [
      Number(isAway(card)),
      Number(isHere(card) ? !agents.isAble(card.id) : remoteCards.unableSince(card.nodeId, card.id) !== null),
      Number(card.external === true),
      isHere(card) ? agents.tasksAPlace(card.id) : asked.tasks(card.address),
      Number(!isHere(card))
    ]
    const [best] = usable.map((card) => ({ card, place: placeOf(card) })).sort((a, b) => compared(a.place, b.place))
    if (best !== undefined) {
      if (isHere(best.card)) agents.expect(best.card.id)
      else asked.expect(best.card.address)
      return { agentId: best.card.id, nodeId: best.card.nodeId }
    }
    // With no allowed agent, fail with the refusal of one, as a direct message to it would, on record.
    if (refused !== null && sees(refused)) outbound.check(draftTo(refused))
    else if (refused !== null) outbound.judge(draftTo(refused))
    if (!cards.some(sees))
      throw new NodeError('CAPABILITY_NOT_FOUND', `no agent in the mesh has the capability ${capabilities.join(', ')}`)
    throw new NodeError('PEER_OFFLINE', `every agent that has ${capabilities.join(', ')} is offline`)
  }
}

/** Compares by the first number that differs. */
function compared(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((value, i) => value !== other[i])
  return at === -1 ? 0 : (one[at] ?? 0) - (other[at] ?? 0)
}

function hasAll(card: RegisteredCard, capabilities: readonly string[]): boolean {
  return capabilities.every((id) => card.capabilities.some((one) => one.id === id))
}

function isSame(card: RegisteredCard, { agentId, nodeId }: AgentAddress): boolean {
  return card.id === agentId && card.nodeId === nodeId
}
