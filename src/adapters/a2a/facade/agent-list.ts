import { asNodeError } from '../../../kit/errors.js'
import type { AgentDetail, AgentInfo, NodeApi } from '../../../ports/node-api.js'
import { pathIdOf } from '../cards/card-interfaces.js'
import { agentOf, type FacadeAgent } from './facade-agents.js'
import { invalidRequest } from './facade-fault.js'

/** Agents of a page, at most. */
export const MAX_AGENT_PAGE = 100
/** Characters of a filter, at most. */
export const MAX_FILTER_LENGTH = 256

/** Parameters of a list of agents. */
const NAMES: ReadonlySet<string> = new Set(['skill', 'tag', 'node', 'q', 'pageSize', 'pageToken'])

/** The place of an agent in the list. It stays when other agents come and go. */
type ListPlace = readonly [rank: number, id: string, node: string]

/** Which agents are listed. */
export interface AgentQuery {
  /** Id of a capability. */
  readonly skill: string | null
  /** Tag of a capability, or label of the agent. */
  readonly tag: string | null
  /** Name or key of the node. */
  readonly node: string | null
  /** Words that all occur in name, description, skills or tags, in lower case. */
  readonly words: readonly string[]
  /** null: all at once. */
  readonly pageSize: number | null
  readonly after: ListPlace | null
}

/** A page of the list: own agents first, then by id and key of the node. */
export interface AgentPage {
  readonly agents: readonly FacadeAgent[]
  /** Token of the next page; '' for the last one. */
  readonly nextPageToken: string
}

/** Reads the query of a list. @throws FacadeFault for unknown, repeated, empty or too long parameters */
export function readAgentQuery(query: string): AgentQuery {
  const params = new URLSearchParams(query)
  for (const name of params.keys()) {
    if (!NAMES.has(name)) throw invalidRequest(`a list of agents takes ${[...NAMES].join(', ')}`)
    if (params.getAll(name).length > 1) throw invalidRequest(`${name}: may be given once`)
  }
  const filter = (name: string): string | null => {
    const text = params.get(name)
    if (text !== null && (text.trim() === '' || text.length > MAX_FILTER_LENGTH))
      throw invalidRequest(`${name}: must be a text of 1 to ${MAX_FILTER_LENGTH} characters`)
    return text
  }
  const size = params.get('pageSize')
  const pageSize = size === null ? null : /^\d{1,3}$/.test(size) ? Number(size) : 0
  if (pageSize !== null && (pageSize < 1 || pageSize > MAX_AGENT_PAGE))
    throw invalidRequest(`pageSize: must be a whole number from 1 to ${MAX_AGENT_PAGE}`)
  const token = params.get('pageToken') ?? ''
  const after = token === '' ? null : readToken(token)
  if (token !== '' && after === null) throw invalidRequest('pageToken: is none that this node gave')
  const words = filter('q')?.toLowerCase().split(/\s+/).filter(Boolean) ?? []
  return { skill: filter('skill'), tag: filter('tag'), node: filter('node'), words, pageSize, after }
}

/** A page of the agents that a caller sees. @throws NodeError FORBIDDEN */
export async function listedAgents(api: NodeApi, query: AgentQuery): Promise<AgentPage> {
  const { skill, node, pageSize, after } = query
  const rows = (await api.call('agents.list', {})).agents.filter(
    (row) =>
      (skill === null || row.capabilities.includes(skill)) &&
      (node === null || row.node.name === node || row.node.id === node) &&
      (after === null || compared(after, placeOf(row)) < 0)
  )
  rows.sort((one, other) => compared(placeOf(one), placeOf(other)))
  const agents: FacadeAgent[] = []
  let last: ListPlace | null = null
  for (const row of rows) {
    const detail = await api.call('agents.show', { agent: row.address }).catch(unlessGone)
    if (detail === null || !fits(detail, query)) continue
    if (last !== null && agents.length === pageSize) return { agents, nextPageToken: tokenOf(last) }
    last = placeOf(row)
    agents.push({ ...agentOf(pathIdOf(detail), detail), capabilities: detail.capabilities.map((one) => one.id) })
  }
  return { agents, nextPageToken: '' }
}

function fits({ name, id, description, labels, capabilities }: AgentDetail, { tag, words }: AgentQuery): boolean {
  const tags = [...labels, ...capabilities.flatMap((one) => one.tags ?? [])]
  if (tag !== null && !tags.includes(tag)) return false
  if (words.length === 0) return true
  const skills = capabilities.flatMap((one) => [one.id, one.name, one.description])
  const text = [id, name, description, ...skills, ...tags].join('\n').toLowerCase()
  return words.every((word) => text.includes(word))
}

function placeOf({ origin, id, node }: Pick<AgentInfo, 'origin' | 'id' | 'node'>): ListPlace {
  return [origin === 'local' ? 0 : 1, id, node.id]
}

/** By code units, which are the same on every machine. */
function compared(one: ListPlace, other: ListPlace): number {
  for (const [at, part] of one.entries()) {
    const than = other[at] ?? ''
    if (part !== than) return part < than ? -1 : 1
  }
  return 0
}

function tokenOf([rank, id, node]: ListPlace): string {
  return `${rank}.${id}@${node}`
}

function readToken(text: string): ListPlace | null {
  const [, rank = '', id = '', node = ''] = /^([01])\.([a-z0-9._-]{1,64})@([a-z0-9]{1,64})$/.exec(text) ?? []
  return rank === '' ? null : [Number(rank), id, node]
}

/** The agent disappeared during the look-up of the others. */
function unlessGone(error: unknown): null {
  if (asNodeError(error).code === 'AGENT_NOT_FOUND') return null
  throw error
}
