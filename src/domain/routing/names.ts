import { LookAlikes } from '../../kit/names/look-alikes.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { MIN_ID_CHARACTERS } from '../../kit/resolve-id.js'
import { nearest } from '../../kit/text.js'
import type { NodeId } from '../../kit/ids.js'
import type { AgentAddress } from '../card/card.js'

/** A node with the name its certificate gives it. Lists of them come in the order of admission, the owner first. */
export interface NodeName {
  readonly id: NodeId
  readonly name: string
}

/** An agent as names resolve it. */
export type AgentName = AgentAddress

/** Result of resolving a typed text. Candidates and nearest names are ready to type. */
export type Resolution<T> =
  | { readonly kind: 'found'; readonly value: T }
  | { readonly kind: 'ambiguous'; readonly candidates: readonly string[] }
  | { readonly kind: 'none'; readonly nearest: readonly string[] }

/** Fewest characters of an id that may stand for it. */
const MIN_PREFIX = MIN_ID_CHARACTERS

/** The short form in which tables show an id: `k7f2...9d3a`. */
const SHORT_ID = /^([a-z0-9]{4,})\.\.\.([a-z0-9]{4,})$/

/** Splits `agentId@node` at the first `@`; null when there is none or a side is empty. */
export function splitAddress(text: string): { readonly agentId: string; readonly node: string } | null {
  const at = text.indexOf('@')
  return at < 1 || at === text.length - 1 ? null : { agentId: text.slice(0, at), node: text.slice(at + 1) }
}

/**
 * The displayed names of nodes: the certificate's, made safe by {@link safeName}. A name like that of an earlier node
 * gets a suffix: `name-<first 4 of id>` (more of the id if that is taken too).
 */
export function displayNames(nodes: readonly NodeName[]): Map<NodeId, string> {
  const names = new Map<NodeId, string>()
  const taken = new Set<string>()
  const looks = new LookAlikes()
  for (const { id, name } of nodes) {
    const base = safeName(name, NODE_NAME) || 'node'
    const isLike = looks.find(base) !== null
    let unique = base
    for (let length = MIN_PREFIX; (taken.has(unique) || (isLike && unique === base)) && length <= id.length; length++)
      unique = `${base}-${id.slice(0, length)}`
    taken.add(unique)
    looks.add(base)
    names.set(id, unique)
  }
  return names
}

/** The node of a text: its id, its displayed name, a unique prefix (at least 4) of its id, or the short form of it. */
export function resolveNode(text: string, nodes: readonly NodeName[]): Resolution<NodeId> {
  const names = displayNames(nodes)
  if (names.has(text)) return { kind: 'found', value: text }
  // The displayed or the certified name; a suffix of the id does not change the name.
  for (const form of [text, safeName(text, NODE_NAME)])
    for (const [id, name] of names) if (name === form) return { kind: 'found', value: id }
  const hits = [...names.keys()].filter((id) => isShortFor(text, id))
  return oneOf(hits, (id) => names.get(id) ?? id) ?? { kind: 'none', nearest: nearest(text, names.values()) }
}

/**
 * The nodes that a text in a rule may mean: by displayed name, or by prefix (at least 4) or short form of an id. A name
 * means its node, unless the id of an earlier node begins like that. So no one is meant by a chosen name, nor by a key
 * made to begin with another's name. Several: ambiguous. A name with a suffix of the id, since it looks like an earlier
 * one, is still meant by the name alone. `names`: of {@link displayNames}.
 */
export function nodesMeant(text: string, names: ReadonlyMap<NodeId, string>): NodeId[] {
  const typed = safeName(text, NODE_NAME)
  const isNamed = (name: string): boolean => name === text || name === typed
  const fitting = [...names].filter(([id, name]) => isNamed(name) || isShortFor(text, id))
  const [first] = fitting
  if (first === undefined) return [...names].filter(([id, name]) => isWithId(name, { of: typed, id })).map(([id]) => id)
  return isNamed(first[1]) ? [first[0]] : fitting.map(([id]) => id)
}

function isWithId(name: string, { of, id }: { readonly of: string; readonly id: NodeId }): boolean {
  const start = name.slice(of.length + 1)
  return name.startsWith(`${of}-`) && start.length >= MIN_PREFIX && id.startsWith(start)
}

function isShortFor(text: string, id: string): boolean {
  if (text.length >= MIN_PREFIX && id.startsWith(text)) return true
  const short = SHORT_ID.exec(text)
  return short !== null && id.startsWith(short[1] ?? text) && id.endsWith(short[2] ?? text)
}

function oneOf<T>(hits: readonly T[], label: (hit: T) => string): Resolution<T> | null {
  const [first] = hits
  if (first === undefined) return null
  return hits.length === 1 ? { kind: 'found', value: first } : { kind: 'ambiguous', candidates: hits.map(label) }
}

/**
 * The agent of a text: `id@node` (the node as for {@link resolveNode}), a bare id of one node alone, or a unique prefix
 * (at least 4) of an id.
 */
export function resolveAgent(
  text: string,
  agents: readonly AgentName[],
  nodes: readonly NodeName[]
): Resolution<AgentName> {
  const names = displayNames(nodes)
  const label = (agent: AgentAddress): string => `${agent.agentId}@${names.get(agent.nodeId) ?? agent.nodeId}`
  const address = splitAddress(text)
  if (address === null) return amongAgents(text, agents, label)
  const node = resolveNode(address.node, nodes)
  const on = (places: readonly string[]): string[] => places.map((one) => `${address.agentId}@${one}`)
  if (node.kind === 'ambiguous') return { kind: 'ambiguous', candidates: on(node.candidates) }
  const labels = agents.map(label)
  if (node.kind === 'none') return { kind: 'none', nearest: on(node.nearest).filter((one) => labels.includes(one)) }
  const here = agents.filter((agent) => agent.nodeId === node.value)
  const found = amongAgents(address.agentId, here, label)
  return found.kind === 'none' && found.nearest.length === 0 ? { kind: 'none', nearest: nearest(text, labels) } : found
}

function amongAgents(
  id: string,
  agents: readonly AgentAddress[],
  label: (agent: AgentAddress) => string
): Resolution<AgentAddress> {
  const exact = agents.filter((agent) => agent.agentId === id)
  const hits =
    exact.length > 0 || id.length < MIN_PREFIX ? exact : agents.filter((agent) => agent.agentId.startsWith(id))
  const found = oneOf(hits, label)
  if (found !== null) return found
  const words = new Set(
    nearest(
      id,
      agents.map((agent) => agent.agentId)
    )
  )
  return {
    kind: 'none',
    nearest: agents
      .filter((agent) => words.has(agent.agentId))
      .map(label)
      .slice(0, 3)
  }
}
