import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shellWord } from '../../kit/text.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { RefusalCode } from '../../domain/routing/decide.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import { askedWork, changesNothing } from '../../domain/policy/requested-work.js'
import { needsOf, type StageWants } from '../../domain/swarm/expand.js'
import type { LeftOut, SwarmRequest } from '../../ports/swarm-api.js'
import { OPERATOR } from '../../domain/card/card.js'
import type { Directory } from '../cards/directory.js'
import type { Outbound } from '../messaging/outbound.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Guests } from '../policy/guests.js'
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
  readonly guests: Pick<Guests, 'has' | 'step'>
}

/** Eligible agents, and agents left out with the reasons. */
export interface Survey {
  readonly allowed: readonly string[]
  readonly leftOut: readonly LeftOut[]
  readonly refusals: readonly RefusalCode[]
  /** Commands that let left out guests take part; absent: there are none. */
  readonly next?: readonly string[]
}

/** The agents that a swarm looks for. */
export interface WantedAgents {
  readonly request: Pick<SwarmRequest, 'justification'>
  readonly wants: StageWants
  /** The launcher's authority, when it may be weaker than the operator's. */
  readonly onBehalfOf?: CertifiedPower | undefined
  /** Default: this node. */
  readonly launcher?: NodeId | undefined
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

  #byNeed(head: SwarmHead, onRecord: Set<string> | null): Survey[] {
    return surveyByNeed(this.#deps, head, onRecord)
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
 * added. null: nothing is recorded.
 */
function survey(deps: SurveyDeps, wanted: WantedAgents, onRecord: Set<string> | null = new Set()): Survey {
  const { wants, onBehalfOf } = wanted
  const allowed: string[] = []
  const leftOut: LeftOut[] = []
  const refusals: RefusalCode[] = []
  const next = new Set<string>()
  const { capability, further = [] } = wants
  for (const card of deps.registry.findByCapability(capability)) {
    if (!further.every((id) => card.capabilities.some((one) => one.id === id))) continue
    const barrier = barrierOf(deps, card, wanted)
    if (barrier === null) allowed.push(card.address)
    else {
      const key = refusedKey(card.address, capability)
      if (barrier.record !== undefined && onRecord?.has(key) === false) barrier.record()
      if (barrier.record !== undefined) onRecord?.add(key)
      if (onBehalfOf !== undefined && !deps.visibility.toCaller(card, onBehalfOf)) continue
      leftOut.push({ agent: card.address, rule: barrier.rule })
      if (barrier.code !== undefined) refusals.push(barrier.code)
      if (barrier.next !== undefined) next.add(barrier.next)
    }
  }
  return { allowed, leftOut, refusals, ...(next.size === 0 ? {} : { next: [...next] }) }
}

/** Eligible agents of a swarm, by need. `onRecord`: as in {@link survey}. */
export function surveyByNeed(
  deps: SurveyDeps,
  { request, onBehalfOf, stages, voters }: Pick<SwarmHead, 'request' | 'onBehalfOf' | 'stages' | 'voters'>,
  onRecord: Set<string> | null
): Survey[] {
  const launcher = voters?.[0]
  return needsOf(stages).wants.map((wants) => survey(deps, { request, wants, onBehalfOf, launcher }, onRecord))
}

/** The reason to leave an agent out. */
interface Barrier {
  readonly rule: string
  readonly code?: RefusalCode
  /** The command that ends it. */
  readonly next?: string
  /** Records the refusal of the rules. */
  record?(): void
}

/** Null: the agent may take part. */
function barrierOf(
  { peers, outbound, self, guests }: SurveyDeps,
  card: RegisteredCard,
  { request, wants, onBehalfOf, launcher = self }: WantedAgents
): Barrier | null {
  const { capability, labels = [] } = wants
  const missing = labels.find((label) => card.labels?.includes(label) !== true)
  if (missing !== undefined) return { rule: `label: its node is not marked ${missing}` }
  if (card.nodeId !== self && !peers.isOnline(card.nodeId)) return { rule: OFFLINE }
  const by = onBehalfOf === undefined ? {} : { onBehalfOf }
  const sender = { agentId: OPERATOR, nodeId: self }
  const recipient = { agentId: card.id, nodeId: card.nodeId }
  const draft = { sender, recipient, type: 'task-proposal', capability, ...justified(request), ...by } as const
  const verdict = outbound.verdict(draft)
  if (!verdict.allowed) return { rule: verdict.rule, code: verdict.code, record: () => void outbound.judge(draft) }
  if (!changes(card, wants) || !guests.has(card.nodeId, launcher)) return null
  const step = guests.step(card.nodeId)
  return { rule: `guest, may only ask; \`${step}\``, code: 'POLICY_DENIED', next: step }
}

/** The error when no agent takes part: tells apart a missing capability, missing labels, refusals and offline nodes. */
export function nobody(
  directory: Pick<Directory, 'namer'>,
  { capability, labels = [] }: StageWants,
  { leftOut, refusals, next }: Survey
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
    const steps = [`a2a-node agents show ${shellWord(first.agent)}`, 'a2a-node agents']
    return new NodeError('NO_CAPABLE_AGENT', message, { data: { leftOut: named }, next: steps })
  }
  return new NodeError(refusals[0] ?? 'PEER_OFFLINE', `no agent that has ${capability} may take part: ${why}`, {
    data: { leftOut: named },
    ...(next === undefined ? {} : { next })
  })
}

/** The key of a recorded refusal. */
function refusedKey(agent: string, capability: string): string {
  return `${capability} ${agent}`
}

/** Has the work of an agent in a swarm side effects? */
function changes(card: RegisteredCard, { capability, further = [] }: StageWants): boolean {
  return [capability, ...further].some((id) => !changesNothing(askedWork(card, id).sideEffect))
}
