import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { SignedCard } from '../../../domain/membership/types.js'
import type { AgentDetail, NodeInfo } from '../../../ports/node-api.js'
import { type CardInterface, interfacesOf, pathIdOf, type Reached, segmentOf } from './card-interfaces.js'

/** URI of the extension whose params are what the mesh says of an agent or node. */
export const MESH_EXTENSION = 'urn:a2a-node:extension:mesh:1'

/** Skills of the card of a whole node. */
export const NODE_CARD_MAX_SKILLS = 2000
/** UTF-16 units of their JSON. */
export const NODE_CARD_MAX_SKILLS_LENGTH = 524_288

/** One skill, the same in all versions. */
export interface CardSkill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples?: readonly string[]
  readonly inputModes?: readonly string[]
  readonly outputModes?: readonly string[]
}

/** Something that a card says beyond the protocol. */
export interface CardExtension {
  readonly uri: string
  readonly description: string
  readonly params: Readonly<Record<string, unknown>>
}

/** What a card is about, before it is put in the words of a version. */
export interface CardSubject {
  readonly name: string
  readonly description: string
  readonly version: string
  /** The preferred one first. */
  readonly interfaces: readonly CardInterface[]
  readonly skills: readonly CardSkill[]
  readonly pushNotifications: boolean
  readonly extensions: readonly CardExtension[]
  /** How clients get tokens by OAuth; absent: they do not. */
  readonly oauth?: CardOAuth
}

/** What a card says of the OAuth server of its node. */
export interface CardOAuth {
  /** Its URL. */
  readonly issuer: string
  /** Names of scopes, and what each gives. */
  readonly scopes: Readonly<Record<string, string>>
}

/** Where and how a node serves. */
export interface CardHost extends Reached {
  readonly pushNotifications: boolean
  /** Of the node's OAuth server, where it has one. */
  readonly oauth?: CardOAuth
}

/** What one agent's card is about. `original`: the card that its own node signed, when it is on another one. */
export function agentSubject(
  detail: AgentDetail,
  original: SignedCard | null,
  { base, meshNode, pushNotifications, oauth }: CardHost
): CardSubject {
  const { id, name, description, version, node, tier, sandboxId, revision } = detail
  const claims = { agentId: id, nodeId: node.id, nodeName: node.name, tier, ...(sandboxId === null ? {} : { sandboxId }), revision }
  return {
    name,
    description: filled(description, name),
    version,
    // Over the mesh an agent is reached at its own node.
    interfaces: interfacesOf(node.id === meshNode ? { base, meshNode } : { base }, pathIdOf(detail)),
    skills: detail.capabilities.map((capability) => skillOf(capability, [id])),
    pushNotifications,
    ...(oauth === undefined ? {} : { oauth }),
    extensions: [meshExtension('Where this agent is in its mesh.', original === null ? claims : { ...claims, original })]
  }
}

/** What the card of a whole node is about: all that its agents, and those of the nodes it knows, can do. */
export function nodeSubject(
  { node }: Pick<NodeInfo, 'node'>,
  agents: readonly AgentDetail[],
  { pushNotifications, oauth, version, ...reached }: CardHost & { readonly version: string }
): CardSubject {
  const all = agents.flatMap((agent) => {
    const segment = segmentOf(pathIdOf(agent))
    return agent.capabilities.map((capability) => ({
      ...skillOf(capability, [agent.id]),
      // No segment has a slash in it, so that no two are the same.
      id: `${segment}/${capability.id}`
    }))
  })
  const skills = fitting(all)
  const claims = { nodeId: node.id, nodeName: node.name, tier: node.tier, agents: agents.length }
  const left = all.length - skills.length
  return {
    name: node.name,
    description: `The agents that the node ${node.name} offers, its own and those of its mesh. Each has a card of its own.`,
    version,
    interfaces: interfacesOf(reached, null),
    skills,
    pushNotifications,
    ...(oauth === undefined ? {} : { oauth }),
    extensions: [meshExtension('The node of a mesh that serves these agents.', left === 0 ? claims : { ...claims, skillsLeftOut: left })]
  }
}

function meshExtension(description: string, params: CardExtension['params']): CardExtension {
  return { uri: MESH_EXTENSION, description, params }
}

function skillOf({ id, name, description, ...more }: CapabilityDescriptor, others: readonly string[]): CardSkill {
  const { tags = [], examples = [], inputModes = [], outputModes = [] } = more
  return {
    id,
    name,
    description: filled(description, name),
    tags: tags.length === 0 ? others : tags,
    ...(examples.length === 0 ? {} : { examples }),
    ...(inputModes.length === 0 ? {} : { inputModes }),
    ...(outputModes.length === 0 ? {} : { outputModes })
  }
}

/** The first skills for which a card has room. */
function fitting(skills: readonly CardSkill[]): readonly CardSkill[] {
  let length = 0
  const end = skills.findIndex((skill, at) => {
    length += JSON.stringify(skill).length + 1
    return at >= NODE_CARD_MAX_SKILLS || length > NODE_CARD_MAX_SKILLS_LENGTH
  })
  return end < 0 ? skills : skills.slice(0, end)
}

/** Cards must describe: what says nothing is called by its name. */
function filled(text: string, name: string): string {
  return text.trim() === '' ? name : text
}
