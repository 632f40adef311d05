import type { AgentProvider } from '../../../kit/names/provider.js'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import type { SignedCard } from '../../../domain/membership/types.js'
import type { AgentDetail, NodeInfo } from '../../../ports/node-api.js'
import { type CardInterface, interfacesOf, isNamed, pathIdOf, type Reached, segmentOf } from './card-interfaces.js'

/** URI of the extension whose params are the mesh data of an agent or node. */
export const MESH_EXTENSION = 'urn:a2a-node:extension:mesh:1'

/** Most skills on the card of a whole node. */
export const NODE_CARD_MAX_SKILLS = 2000
/** Most UTF-16 units of the JSON of these skills. */
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

/** An extension on a card. */
export interface CardExtension {
  readonly uri: string
  readonly description: string
  readonly params: Readonly<Record<string, unknown>>
}

/** The content of a card, independent of the protocol version. */
export interface CardSubject {
  readonly name: string
  readonly description: string
  readonly version: string
  /** In order of preference. */
  readonly interfaces: readonly CardInterface[]
  readonly skills: readonly CardSkill[]
  readonly pushNotifications: boolean
  readonly extensions: readonly CardExtension[]
  /** Absent: none is known. */
  readonly provider?: AgentProvider
  /** The OAuth server for clients; absent: none. */
  readonly oauth?: CardOAuth
}

/** The OAuth server of a node, as its cards name it. */
export interface CardOAuth {
  /** URL of the server. */
  readonly issuer: string
  /** Descriptions by name of scope. */
  readonly scopes: Readonly<Record<string, string>>
}

/** Addresses and features of a node for its cards. */
export interface CardHost extends Reached {
  /** Do cards name the interface over the mesh (`meshNode`)? Strict clients refuse cards with a binding of others. */
  readonly meshInterface?: boolean
  readonly pushNotifications: boolean
  /** Provider of the node. Absent: none. */
  readonly provider?: AgentProvider
  /** Absent: the node has no OAuth server. */
  readonly oauth?: CardOAuth
}

/** The content of the card of one agent. `original`: the card signed by its own node, for an agent of another node. */
export function agentSubject(
  detail: AgentDetail,
  original: SignedCard | null,
  { base, grpc = null, meshNode, meshInterface, pushNotifications, oauth }: CardHost
): CardSubject {
  const { id, name, description, version, node, tier, sandboxId, revision, provider } = detail
  const claims = {
    agentId: id,
    nodeId: node.id,
    nodeName: node.name,
    tier,
    ...(sandboxId === null ? {} : { sandboxId }),
    revision
  }
  return {
    name,
    description: filled(description, name),
    version,
    // The mesh binding reaches an agent at its own node only.
    interfaces: interfacesOf(
      meshInterface === true && node.id === meshNode ? { base, grpc, meshNode } : { base, grpc },
      pathIdOf(detail)
    ),
    skills: detail.capabilities.map((capability) => skillOf(capability, [id])),
    pushNotifications,
    ...(provider === undefined ? {} : { provider }),
    ...(oauth === undefined ? {} : { oauth }),
    extensions: [
      meshExtension('Where this agent is in its mesh.', original === null ? claims : { ...claims, original })
    ]
  }
}

/** The content of the card at the root: that of the agent that answers there, else that of the whole node. */
export function rootSubject(
  info: Pick<NodeInfo, 'node' | 'defaultAgent'>,
  agents: readonly AgentDetail[],
  host: CardHost & { readonly version: string }
): CardSubject {
  const { defaultAgent: name = null } = info
  const agent = name === null ? undefined : agents.find((one) => isNamed(one, name))
  if (agent === undefined) return nodeSubject(info, agents, host)
  return { ...agentSubject(agent, null, host), interfaces: interfacesOf(reachedOf(host), null) }
}

function reachedOf({ base, grpc = null, meshNode, meshInterface }: CardHost): Reached {
  return meshInterface === true && meshNode !== undefined ? { base, grpc, meshNode } : { base, grpc }
}

/** The content of the card of a whole node: the capabilities of its agents and of the known agents of other nodes. */
export function nodeSubject(
  { node }: Pick<NodeInfo, 'node'>,
  agents: readonly AgentDetail[],
  host: CardHost & { readonly version: string }
): CardSubject {
  const { pushNotifications, provider, oauth, version } = host
  const all = agents.flatMap((agent) => {
    const segment = segmentOf(pathIdOf(agent))
    return agent.capabilities.map((capability) => ({
      ...skillOf(capability, [agent.id]),
      // A segment has no slash, so the ids are unique.
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
    interfaces: interfacesOf(reachedOf(host), null),
    skills,
    pushNotifications,
    ...(provider === undefined ? {} : { provider }),
    ...(oauth === undefined ? {} : { oauth }),
    extensions: [
      meshExtension(
        'The node of a mesh that serves these agents.',
        left === 0 ? claims : { ...claims, skillsLeftOut: left }
      )
    ]
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

/** The first skills within the limits of a card. */
function fitting(skills: readonly CardSkill[]): readonly CardSkill[] {
  let length = 0
  const end = skills.findIndex((skill, at) => {
    length += JSON.stringify(skill).length + 1
    return at >= NODE_CARD_MAX_SKILLS || length > NODE_CARD_MAX_SKILLS_LENGTH
  })
  return end < 0 ? skills : skills.slice(0, end)
}

/** Cards require a description: the name replaces an empty one. */
function filled(text: string, name: string): string {
  return text.trim() === '' ? name : text
}
