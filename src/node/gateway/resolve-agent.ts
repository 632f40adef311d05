import { NodeError } from '../../kit/errors.js'
import {
  addressText,
  type AgentAddress,
  type CapabilityDescriptor,
  defaultCapability,
  OPERATOR,
  parseAddress
} from '../../domain/card/card.js'
import { checkModes, inputOf, justificationIn, justificationOf } from '../../domain/gateway/content.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { GatewaySend } from '../../ports/gateway.js'
import type { Principal } from '../../ports/node-api.js'
import { memberBehind, powerOf } from './caller.js'
import type { NodeDeps } from '../dependencies.js'
import type { AgentSelector, NameDeps } from '../cards/select-target.js'
import type { Visibility } from '../cards/visibility.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { CheckShare } from '../agents/check-share.js'
import type { NodeId } from '../../kit/ids.js'
import { rootAgent } from '../../domain/gateway/root-agent.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import { claimedParty, rightsChangedAt } from '../../domain/routing/claims.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { AccessControl, Refusal } from '../policy/access-control.js'
import { type Message, saysTheSame } from '../../domain/gateway/message.js'
import { ASKING_STATES, type GatewayTask } from '../../domain/gateway/task.js'
import type { TaskLog } from './task-log.js'
import { MAX_TASK_BYTES, MAX_TASK_EVENTS } from './turn-runner.js'

/** Dependencies of {@link AgentResolver}. */
interface AgentResolverDeps extends NameDeps {
  readonly self: NodeId
  readonly selector: AgentSelector
  readonly registry: AgentRegistry
  readonly agents: AgentHost
  readonly clock: NodeDeps['clock']
  readonly toAgentJson: NodeDeps['toAgentJson']
  readonly visibility: Visibility
  readonly accessControl: AccessControl
  readonly checkShare: CheckShare
  readonly settings: Pick<NodeDeps['settings'], 'defaultAgent'>
}

/** Skills that an error names, at most. */
const MAX_LISTED_SKILLS = 20

/** The agent and capability of a message. */
export interface GatewayTarget {
  readonly address: AgentAddress
  readonly capability: CapabilityDescriptor
}

type TargetAsking = Pick<GatewaySend, 'agent' | 'skill' | 'message'>

/** Resolves the agents that callers of the gateway name, and checks that a member may ask them. */
export class AgentResolver {
  readonly #deps: AgentResolverDeps

  constructor(deps: AgentResolverDeps) {
    this.#deps = deps
  }

  /**
   * The agent of a name in the URL of its card. An id alone names an agent of this node, whichever agents other nodes
   * have; a part of a name matches nothing. An unknown agent of another node is looked up once: only this takes a
   * promise.
   * @throws NodeError AGENT_NOT_FOUND
   */
  agent(by: Principal, name: string): AgentAddress | Promise<AgentAddress> {
    const address = this.#deps.directory.exactAddress(name)
    const found = address === null ? null : this.#agentAt(by, address)
    if (found !== null) return found
    if (address === null || address.nodeId === this.#deps.self || by.kind === 'peer') throw this.#noneCalled(by, name)
    return this.#deps.agentLookup.ask(address.agentId).then(() => {
      const late = this.#agentAt(by, address)
      if (late === null) throw this.#noneCalled(by, name)
      return late
    })
  }

  /**
   * True when the agent of a task (`agentId@nodeId`) has that name, by the rules of {@link AgentResolver.agent}. It
   * need not exist now.
   */
  isCalled(agent: string, name: string): boolean {
    const address = this.#deps.directory.exactAddress(name)
    return address !== null && addressText(address) === agent
  }

  /** null: the caller sees no such agent. @throws NodeError AGENT_NOT_FOUND for the operator */
  #agentAt(by: Principal, address: AgentAddress): AgentAddress | null {
    const card = this.#deps.directory.card(address)
    if (card === undefined || !this.#sees(by, card)) return null
    if (card.id === OPERATOR) throw new NodeError('AGENT_NOT_FOUND', 'the operator of a node is no agent to be asked')
    // The card's own texts, which the maps share, instead of parts of the URL.
    return { agentId: card.id, nodeId: card.nodeId }
  }

  #noneCalled(by: Principal, name: string): NodeError {
    return this.#deps.directory.noneCalled(name, (card) => card.id !== OPERATOR && this.#sees(by, card))
  }

  /**
   * The target of a caller's message.
   * @throws NodeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND, INVALID_INPUT; the errors of the rules
   */
  target(by: Principal, asked: TargetAsking): GatewayTarget | Promise<GatewayTarget> {
    const found =
      asked.agent !== null
        ? this.agent(by, asked.agent)
        : asked.skill === null
          ? this.#rootAgent(by)
          : this.#capableAgent(by, { skill: asked.skill, message: asked.message })
    return found instanceof Promise
      ? found.then((address) => this.#targetAt(by, { address, asked }))
      : this.#targetAt(by, { address: found, asked })
  }

  #targetAt(
    by: Principal,
    { address, asked: { skill, message } }: { readonly address: AgentAddress; readonly asked: TargetAsking }
  ): GatewayTarget {
    const card = this.#deps.directory.card(address)
    const capability =
      card === undefined
        ? undefined
        : skill === null
          ? defaultCapability(card)
          : card.capabilities.find(({ id }) => id === skill)
    if (capability === undefined || capability === null)
      throw new NodeError(
        'CAPABILITY_NOT_FOUND',
        skill === null ? 'the agent has no skill' : `the agent has no skill ${skill}`
      )
    checkModes(message.parts, capability)
    this.#checkMember(by, { address, capability: capability.id, message })
    return { address, capability }
  }

  /** The agent for messages that name neither agent nor skill. @throws NodeError INVALID_INPUT: the caller sees none */
  async #rootAgent(by: Principal): Promise<AgentAddress> {
    const { settings, agents } = this.#deps
    const name = rootAgent(settings.defaultAgent, agents.definitions())
    if (name === null) throw this.#noRootAgent(by)
    try {
      return await this.agent(by, name)
    } catch {
      // Its name is not for callers that do not see it.
      throw this.#noRootAgent(by)
    }
  }

  #noRootAgent(by: Principal): NodeError {
    const skills = this.#deps.registry
      .listAll()
      .filter((card) => card.id !== OPERATOR && this.#sees(by, card))
      .flatMap((card) => card.capabilities.map(({ id }) => `${card.address} ${id}`))
    const listed = skills.slice(0, MAX_LISTED_SKILLS).join(', ')
    const more = skills.length > MAX_LISTED_SKILLS ? ', ...' : ''
    return new NodeError(
      'INVALID_INPUT',
      `the message names neither an agent nor a skill, and no agent here takes such messages: send it to the URL of an agent, or name a skill in metadata.skillId (${listed}${more})`
    )
  }

  /** An agent with the skill. @throws NodeError as {@link AgentSelector.pick} */
  #capableAgent(
    by: Principal,
    { skill, message }: Pick<GatewaySend, 'message'> & { readonly skill: string }
  ): AgentAddress {
    return this.#deps.selector.pick({
      sender: { agentId: OPERATOR, nodeId: this.#deps.self },
      type: 'request',
      onBehalfOf: powerOf(by),
      capabilities: [skill],
      sees: (card) => this.#sees(by, card),
      ...justificationOf(message)
    })
  }

  /** A member sees agents of this node only: it asks other nodes for theirs. */
  #sees(by: Principal, card: RegisteredCard): boolean {
    return (by.kind !== 'peer' || card.nodeId === this.#deps.self) && this.#deps.visibility.toCaller(card, powerOf(by))
  }

  /**
   * Checks that a client may send a message to a task, and that it fits the schema of its agent, as far as this node
   * knows. A refused answer leaves the task waiting.
   * @throws NodeError INVALID_INPUT, and the errors of a member's rights
   */
  checkAnswer(by: Principal, { task, message }: Pick<DuplicateMessage, 'task' | 'message'>): void {
    const { capability, state } = task
    const address = parseAddress(task.agent)
    if (address === null) return
    this.#checkMember(by, { address, capability, message })
    const { agents, checkShare, self } = this.#deps
    if (!ASKING_STATES.has(state)) return
    if (address.nodeId !== self || !agents.has(address.agentId)) return
    const input = this.#deps.toAgentJson(inputOf(message.parts))
    const fault = checkShare.within(memberBehind(by) ?? self, () =>
      agents.inputFault(address.agentId, capability, input)
    )
    if (fault !== null) throw fault
  }

  /**
   * Applies this node's rules to a request of a member, as the inbound pipeline would: the gateway itself asks in this
   * node's name. Any other caller passes.
   * @throws NodeError TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED, POLICY_DENIED, FORBIDDEN
   */
  #checkMember(by: Principal, { address, capability, message }: MemberWork): void {
    if (by.kind !== 'peer') return
    const { directory, accessControl, clock } = this.#deps
    const own = { agentId: by.agentId ?? OPERATOR, nodeId: by.id ?? '' }
    const sender = directory.party(own, { maxTier: by.tier, sandboxId: by.sandboxId })
    const certified = directory.party(own)
    const target = directory.party(address)
    if (sender === null || certified === null || target === null)
      throw new NodeError('FORBIDDEN', 'a card of either end is not known')
    const question = {
      sender,
      certified,
      target,
      type: 'request',
      ...askedWork(directory.card(address), capability),
      justification: justificationIn(message) ?? null,
      isReply: false,
      isArriving: true
    } as const
    const { verdict } = accessControl.decide(question, clock.monotonic())
    if (verdict.allowed) return
    const refusal = verdict.asks === true ? { ...ASKED, rule: verdict.rule } : verdict
    const header = { sender: sender.address, recipient: target.address, type: 'request' } as const
    accessControl.record('refusal', refusal, { peer: own.nodeId, header, from: sender.tier, to: target.tier })
    throw new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } })
  }
}

/** The claims of a member about its caller: never more than its rights. */
interface MemberClaims {
  /** The calling agent of its node; absent: its operator. */
  readonly agent?: string
  readonly tier?: Tier
  readonly sandboxId?: string
}

const ASKED: Refusal = {
  code: 'POLICY_DENIED',
  rule: 'a2a over the mesh: nobody is asked',
  reason:
    'a person of that node has to allow this, which a call over A2A does not wait for: ask the agent by its name in the mesh'
}

/**
 * A member as a caller of the gateway: the weakest of its certificate, the card of the agent that it names, and its
 * claims.
 * @throws NodeError REVOKED, FORBIDDEN
 */
export function memberPrincipal(
  { directory, clock }: Pick<AgentResolverDeps, 'directory' | 'clock'>,
  peer: NodeId,
  claims: MemberClaims
): Principal {
  const agentId = claims.agent ?? OPERATOR
  const certificate = directory.certificate(peer)
  if (certificate === null) throw new NodeError('REVOKED', 'the caller is no member of the mesh')
  const party = directory.party({ agentId, nodeId: peer })
  if (party === null)
    throw new NodeError('FORBIDDEN', 'the agent that calls has no card that this node knows', { retryable: true })
  const claim = { tier: claims.tier ?? party.tier, ...sandboxOf(claims.sandboxId ?? party.sandboxId) }
  const rights = claimedParty(party, claim, {
    madeAt: clock.now(),
    changedAt: () => rightsChangedAt({ certificate, card: directory.card({ agentId, nodeId: peer }) })
  })
  // The entry that grants the claimed rights may be on its way.
  if (rights === null)
    throw new NodeError('FORBIDDEN', 'the call claims another tier or sandbox than its caller has', { retryable: true })
  const { tier, sandboxId } = rights
  return { kind: 'peer', name: directory.ref(peer).name, id: peer, agentId, tier, sandboxId, scopes: ['read', 'send'] }
}

function sandboxOf(sandboxId: string | null): { readonly sandboxId?: string } {
  return sandboxId === null ? {} : { sandboxId }
}

/** The agent and capability of a member's request. */
interface MemberWork {
  readonly address: AgentAddress
  /** Id of the capability. */
  readonly capability: string
  readonly message: Pick<Message, 'metadata'>
}

/** A message of a client to a task. */
interface DuplicateMessage {
  readonly task: GatewayTask
  readonly message: Message
  /** True when it names the same agent and skill as before. Default: true. */
  readonly isSame?: boolean
}

/**
 * True when a task has the message already.
 * @throws NodeError INVALID_INPUT for another one with its id, CONFLICT for a new one in a full task
 */
export async function isDuplicate(
  log: Pick<TaskLog, 'recordMessage'>,
  { task, message, isSame = true }: DuplicateMessage
): Promise<boolean> {
  const { message: kept, bytes } = await log.recordMessage(task, message.messageId)
  if (kept === null && (bytes > MAX_TASK_BYTES || task.generation >= MAX_TASK_EVENTS))
    throw new NodeError('CONFLICT', 'the task holds as much as one may: begin another one', {
      data: { state: task.state }
    })
  if (kept === null || (isSame && saysTheSame(kept, message))) return kept !== null
  throw new NodeError('INVALID_INPUT', 'message.messageId: another message had it: give each its own', {
    data: { reason: 'MESSAGE_ID_REUSED' }
  })
}

/** Checks that a message to a task may name that skill; null: it names none. @throws NodeError INVALID_INPUT */
export function checkSkill({ capability }: Pick<GatewayTask, 'capability'>, skill: string | null): void {
  if (skill === null || skill === capability) return
  throw new NodeError(
    'INVALID_INPUT',
    `metadata.skillId: the task is of the skill ${capability}; leave it out, or begin another task`
  )
}

/** @throws NodeError TASK_NOT_FOUND, for a task that was removed during the call */
export function pastItsTime(): never {
  throw new NodeError('TASK_NOT_FOUND', 'the task is past its time')
}
