import { NodeError } from '../../kit/errors.js'
import { addressText, type AgentAddress, type CapabilityDescriptor, defaultCapability, OPERATOR } from '../../domain/card/card.js'
import { checkModes, justificationOf } from '../../domain/gateway/content.js'
import type { RegisteredCard } from '../../domain/card/registry.js'
import type { GatewaySend } from '../../ports/gateway.js'
import type { Principal } from '../../ports/node-api.js'
import { powerOf } from './caller.js'
import { checkMember } from './mesh/member-principal.js'
import type { NodeCore } from '../node.js'
import { pickCapable } from '../cards/select-target.js'

/** Whom a message goes to. */
export interface GatewayTarget {
  readonly address: AgentAddress
  readonly capability: CapabilityDescriptor
}

/**
 * The agent that a caller means, by the name that the URL on its card has: an id alone is one of this very node, whichever agents
 * other nodes have, and nothing but the whole of a name is one. One of another node that is not known yet is asked for once: only
 * that takes a promise.
 * @throws NodeError AGENT_NOT_FOUND
 */
export function gatewayAgent(node: NodeCore, by: Principal, name: string): AgentAddress | Promise<AgentAddress> {
  const address = node.directory.exactAddress(name)
  const found = address === null ? null : agentAt(node, by, address)
  if (found !== null) return found
  if (address === null || address.nodeId === node.self || by.kind === 'peer') throw noneCalled(node, by, name)
  return node.agentLookup.ask(address.agentId).then(() => {
    const late = agentAt(node, by, address)
    if (late === null) throw noneCalled(node, by, name)
    return late
  })
}

/** Is the agent of a task (`agentId@nodeId`) the one of that name, as {@link gatewayAgent} takes it? Whether it is there now is another matter. */
export function isCalled({ directory }: Pick<NodeCore, 'directory'>, agent: string, name: string): boolean {
  const address = directory.exactAddress(name)
  return address !== null && addressText(address) === agent
}

/** null: the caller sees nobody there. @throws NodeError AGENT_NOT_FOUND for the operator */
function agentAt(node: NodeCore, by: Principal, address: AgentAddress): AgentAddress | null {
  const card = node.directory.card(address)
  if (card === undefined || !sees(node, by, card)) return null
  if (card.id === OPERATOR) throw new NodeError('AGENT_NOT_FOUND', 'the operator of a node is no agent to be asked')
  // Its own texts, which are those of every map, and not parts of the URL.
  return { agentId: card.id, nodeId: card.nodeId }
}

function noneCalled(node: NodeCore, by: Principal, name: string): NodeError {
  return node.directory.noneCalled(name, (card) => card.id !== OPERATOR && sees(node, by, card))
}

/** Whom a message of a caller is for. @throws NodeError AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND, INVALID_INPUT; what the rules refuse */
export function gatewayTarget(node: NodeCore, by: Principal, asked: TargetAsking): GatewayTarget | Promise<GatewayTarget> {
  const found = asked.agent === null ? capableAgent(node, by, asked) : gatewayAgent(node, by, asked.agent)
  return found instanceof Promise
    ? found.then((address) => targetAt(node, by, { address, asked }))
    : targetAt(node, by, { address: found, asked })
}

type TargetAsking = Pick<GatewaySend, 'agent' | 'skill' | 'message'>

function targetAt(
  node: NodeCore,
  by: Principal,
  { address, asked: { skill, message } }: { readonly address: AgentAddress; readonly asked: TargetAsking }
): GatewayTarget {
  const card = node.directory.card(address)
  const capability =
    card === undefined ? undefined : skill === null ? defaultCapability(card) : card.capabilities.find(({ id }) => id === skill)
  if (capability === undefined || capability === null)
    throw new NodeError('CAPABILITY_NOT_FOUND', skill === null ? 'the agent has no skill' : `the agent has no skill ${skill}`)
  checkModes(message.parts, capability)
  checkMember(node, by, { address, capability: capability.id })
  return { address, capability }
}

/** Whoever has a skill. @throws NodeError as {@link pickCapable} */
function capableAgent(node: NodeCore, by: Principal, { skill, message }: Pick<GatewaySend, 'skill' | 'message'>): AgentAddress {
  if (skill === null) throw new NodeError('INVALID_INPUT', 'the message names neither an agent nor a skill')
  return pickCapable(node, {
    sender: { agentId: OPERATOR, nodeId: node.self },
    type: 'request',
    onBehalfOf: powerOf(by),
    capabilities: [skill],
    sees: (card) => sees(node, by, card),
    ...justificationOf(message)
  })
}

/** A member is offered what is of this very node: of others it asks them. */
function sees(node: NodeCore, by: Principal, card: RegisteredCard): boolean {
  return (by.kind !== 'peer' || card.nodeId === node.self) && node.visibility.toCaller(card, powerOf(by))
}
