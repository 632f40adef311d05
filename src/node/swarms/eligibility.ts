import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shellWord } from '../../kit/text.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { RefusalCode } from '../../domain/routing/decide.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import { needsOf, type StageWants } from '../../domain/swarm/expand.js'
import type { LeftOut, SwarmRequest } from '../../ports/swarm-api.js'
import { OPERATOR } from '../../domain/card/card.js'
import type { Directory } from '../cards/directory.js'
import type { Outbound } from '../messaging/outbound.js'
import type { PeerTable } from '../peers/peer-table.js'
import { justified } from './offers.js'
import type { SwarmHead } from './store.js'
import type { Visibility } from '../cards/visibility.js'

/** The reason to leave out an agent on an offline node. */
const OFFLINE = 'offline'

/** Dependencies of a survey. */
export interface SurveyDeps {
  readonly registry: AgentRegistry
  readonly peers: Pick<PeerTable, 'isOnline'>
  readonly outbound: Outbound
  readonly self: NodeId
  readonly visibility: Visibility
  readonly directory: Directory
}

/** Eligible agents, and agents left out with the reasons. */
export interface Survey {
  readonly allowed: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly refusals: readonly RefusalCode[]
}

/** The agents that a swarm looks for. */
export interface WantedAgents {
  readonly request: Pick<SwarmRequest, 'justification'>
  readonly wants: StageWants
  /** The launcher's authority, when it may be weaker than the operator's. */
  readonly onBehalfOf?: CertifiedPower | undefined
}

/** Finds eligible agents for swarms. It records each refusal by the rules once for a running swarm. */
export class Eligibility {
  readonly #deps: SurveyDeps
  /** By running swarm: {@link refusedKey} of recorded refusals. */
  readonly #refused = new Map<string, Set<string>>()

  constructor(deps: SurveyDeps) {
    this.#deps = deps
  }

  /** See {@link survey}. */
  survey(wanted: WantedAgents, onRecord: Set<string> | null): Survey {
    return survey(this.#deps, wanted, onRecord)
  }

  /** Eligible agents of a swarm, by need. Nothing is recorded. */
  of(head: SwarmHead): Survey[] {
    return this.#byNeed(head, null)
  }

  /** Eligible agents of a swarm, by need. Records new refusals if it is one of {@link begin}. */
  check(head: SwarmHead): Survey[] {
    return this.#byNeed(head, this.#refused.get(head.id) ?? null)
  }

  #byNeed({ request, onBehalfOf, stages }: SwarmHead, onRecord: Set<string> | null): Survey[] {
    return needsOf(stages).wants.map((wants) => this.survey({ request, wants, onBehalfOf }, onRecord))
  }

  /** A swarm starts to run here. `refused`: {@link refusedKey} of recorded refusals. */
  begin(id: string, refused: Set<string>): void {
    this.#refused.set(id, refused)
  }

  /** Lets refusals of an agent be recorded again, since it is invited again. */
  forget({ id, stages }: SwarmHead, agent: string): void {
    for (const { capability } of needsOf(stages).wants) this.#refused.get(id)?.delete(refusedKey(agent, capability))
  }

  /** A swarm has ended. */
  end(id: string): void {
    this.#refused.delete(id)
  }
}

/**
 * Finds the agents that could take part in a swarm. `onRecord`: {@link refusedKey} of recorded refusals; new ones are
 * added.
 * null: nothing is recorded.
 */
export function survey(
  { registry, peers, outbound, self, visibility }: SurveyDeps,
  { request, wants, onBehalfOf }: WantedAgents,
  onRecord: Set<string> | null = new Set()
): Survey {
  const by = onBehalfOf === undefined ? {} : { onBehalfOf }
  const sender = { agentId: OPERATOR, nodeId: self }
  const allowed: string[] = []
  const leftOut: LeftOut[] = []
  const refusals: RefusalCode[] = []
  const leaveOut = (card: RegisteredCard, rule: string): void => {
    if (sees(card)) leftOut.push({ agent: card.address, rule })
  }
  const sees = (card: RegisteredCard): boolean => onBehalfOf === undefined || visibility.toCaller(card, onBehalfOf)
  const { capability, further = [], labels = [] } = wants
  for (const card of registry.findByCapability(capability)) {
    if (!further.every((id) => card.capabilities.some((one) => one.id === id))) continue
    const missing = labels.find((label) => card.labels?.includes(label) !== true)
    const isAway = card.nodeId !== self && !peers.isOnline(card.nodeId)
    if (missing !== undefined || isAway) {
      leaveOut(card, missing === undefined ? OFFLINE : `label: its node is not marked ${missing}`)
      continue
    }
    const recipient = { agentId: card.id, nodeId: card.nodeId }
    const draft = { sender, recipient, type: 'task-proposal', capability, ...justified(request), ...by } as const
    const verdict = outbound.verdict(draft)
    if (verdict.allowed) {
      allowed.push(card.address)
      continue
    }
    const key = refusedKey(card.address, capability)
    if (onRecord?.has(key) === false) outbound.judge(draft)
    onRecord?.add(key)
    leaveOut(card, verdict.rule)
    if (sees(card)) refusals.push(verdict.code)
  }
  return { allowed, leftOut, refusals }
}

/** The error when no agent takes part: tells apart a missing capability, missing labels, refusals and offline nodes. */
export function nobody(
  directory: Pick<Directory, 'namer'>,
  { capability, labels = [] }: StageWants,
  { leftOut, refusals }: Survey
): NodeError {
  if (leftOut.length === 0)
    return new NodeError('NO_CAPABLE_AGENT', `no agent in the mesh has the capability ${capability}`, {
      data: { capability }
    })
  const namer = directory.namer()
  const named = leftOut.map((one) => ({ agent: namer(one.agent), rule: one.rule }))
  const why = named.map((one) => `${one.agent} (${one.rule})`).join(', ')
  const [first] = named
  if (refusals.length === 0 && first !== undefined && leftOut.every(({ rule }) => rule !== OFFLINE)) {
    const message = `no agent that has ${capability} is on a node with the ${labels.length === 1 ? 'label' : 'labels'} ${labels.join(', ')}: ${why}`
    // This command shows its labels.
    const next = [`a2a-node agents show ${shellWord(first.agent)}`, 'a2a-node agents']
    return new NodeError('NO_CAPABLE_AGENT', message, { data: { leftOut: named }, next })
  }
  return new NodeError(refusals[0] ?? 'PEER_OFFLINE', `no agent that has ${capability} may take part: ${why}`, {
    data: { leftOut: named }
  })
}

/** The key of a recorded refusal. */
function refusedKey(agent: string, capability: string): string {
  return `${capability} ${agent}`
}
