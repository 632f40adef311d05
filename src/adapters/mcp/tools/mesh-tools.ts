import { createHash } from 'node:crypto'
import type { NodeApi, AgentDetail, AgentInfo } from '../../../ports/node-api.js'
import { type CapabilityDescriptor, NOT_GRANTED } from '../../../domain/card/card.js'
import type { Clock } from '../../../kit/clock.js'
import { allowedNames } from '../../../kit/glob.js'
import { boundedCheck, placeBelow, type SchemaPlace } from '../../../kit/schema/cost.js'
import type { CompileSchema, SchemaFault } from '../../../kit/sign.js'
import { asNodeError } from '../../../kit/errors.js'
import { canonicalJson, isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { servedContext } from '../imported/context-capability.js'
import { capabilityPrefix } from '../imported/imported-card.js'
import { givesDefinitions, hashOf } from '../imported/tool-definition.js'
import { agentChanges, type SharedChanges } from '../resources/followed-watch.js'
import { absentTool } from './absent-tool.js'
import type { RunAsking } from './asking-calls.js'
import { callAgentAsTool, type MeshCallDeps } from './mesh-call.js'
import type { MeshSource } from './exposed-tools.js'
import { type ToolOfAgent, NamedTools } from './named-tools.js'
import { listedTools, NODE, withNode } from './node-choice.js'
import { type NamedTool, namesOf } from './tool-aliases.js'
import { type KnownDefinitions, slowAgents, wholeDefinitions } from './whole-definitions.js'
import type { ToolSchema, RegisteredTool, ToolDefinition } from '../server/tool.js'

/** Dependencies of {@link MeshTools}. */
export interface MeshToolsDeps extends Pick<MeshCallDeps, 'onContent'> {
  /** The API of the caller of the tools: it shows only agents that the caller may see. */
  readonly api: NodeApi
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
  /** Runs calls whose agents may ask the client. */
  readonly asking?: RunAsking
  readonly known: KnownDefinitions
  /** Globs of the only tools, by any of their names; null: all. */
  readonly chosen: readonly string[] | null
  /** Globs of the tools of {@link MeshTools.favorites}. */
  readonly favorites: readonly string[]
}

/** Dependencies of single tools. */
type ToolDeps = Pick<MeshToolsDeps, 'api' | 'asking' | 'compileSchema' | 'toJson' | 'onContent'>

/** A capability of an agent as a tool. */
export interface MeshTool extends RegisteredTool {
  readonly capability: string
  /** Its agent refuses each call: it is not listed. */
  readonly isRefused: boolean
  /** The same for tools of one version on several machines; null: it has an argument `node` of its own. */
  readonly sameAs: string | null
  /** The name of such a tool on this machine. */
  readonly localName: string
  /** The input of the capability for the arguments of the tool. */
  inputOf(args: Readonly<Record<string, unknown>>): unknown
}

/** The tools of one agent, as its card was when they were made. */
interface MeshAgentTools {
  readonly revision: number
  readonly tools: readonly MeshTool[]
}

/** Name of the argument that holds the input of a capability whose input is no object. */
const INPUT = 'input'
/** Favorite tools in a list, at most. */
const MAX_FAVORITES = 64
/** Characters of a capability's description for a client. */
const MAX_DESCRIPTION = 4096

/**
 * The capabilities of all agents that the caller sees, as tools: `agent.tool` for an agent of this node,
 * `agent@node.tool` for one of another. Tools of agents that are offline are not listed, and their calls fail. Cards
 * are read once a revision.
 */
export class MeshTools implements MeshSource {
  readonly #deps: MeshToolsDeps
  readonly #agents = new Map<string, MeshAgentTools>()
  readonly #changes: SharedChanges<void>
  readonly #fits: (name: string) => boolean
  readonly hasFavorites: boolean
  readonly #slow = slowAgents()
  /** Tools that are listed: see {@link listedTools}. */
  #listed = new NamedTools()
  #present = new NamedTools()
  /** Tools of agents whose node is offline: not listed, but known to errors. */
  #absent = new NamedTools()
  /** Agents changed since they were looked at, or nobody has looked yet. */
  #isStale = true

  constructor(deps: MeshToolsDeps) {
    this.#deps = deps
    this.#changes = agentChanges(deps, {})
    this.#fits = allowedNames(deps.chosen)
    this.hasFavorites = deps.favorites.length > 0
  }

  async list(): Promise<readonly ToolDefinition[]> {
    await this.#refresh()
    return this.#listed.all().flatMap(({ tool }) => (tool.isRefused ? [] : [tool.definition]))
  }

  async whole(definitions: readonly ToolDefinition[]): Promise<readonly ToolDefinition[]> {
    return (await wholeDefinitions({ ...this.#deps, slow: this.#slow }, definitions)).map(withNode)
  }

  async count(): Promise<number> {
    const listed = await this.list()
    const shared = new Set(this.#listed.all().map(({ tool }) => tool.sameAs))
    return listed.length + this.#absent.all().filter(({ tool }) => !tool.isRefused && !shared.has(tool.sameAs)).length
  }

  async favorites(): Promise<readonly ToolDefinition[]> {
    if (!this.hasFavorites) return []
    await this.#refresh()
    const fits = allowedNames(this.#deps.favorites)
    const found = new Map<string, ToolDefinition>()
    // A tool of several machines stands for that of each, unless a favorite is the tool of one machine.
    for (const { tool, agent } of [...this.#listed.all(), ...this.#present.all(), ...this.#absent.all()]) {
      const { definition, capability, isRefused } = tool
      const key = tool.sameAs ?? definition.name
      if (isRefused || found.has(key) || found.size >= MAX_FAVORITES) continue
      if (namesOf({ name: definition.name, capability, agent }).some(fits)) found.set(key, definition)
    }
    return [...found.values()]
  }

  #isChosen(tool: NamedTool): boolean {
    return this.#deps.chosen === null || namesOf(tool).some(this.#fits)
  }

  /** A tool that is not known, or may have changed, is looked for once more: its agent may have come a moment ago. */
  async get(name: string): Promise<RegisteredTool | undefined> {
    const known = this.#named(name)
    if (known !== undefined && !this.#isStale) return known.tool
    await this.#refresh()
    return this.#named(name)?.tool ?? this.#absentTool(this.#absent.get(name))
  }

  async alias(name: string): Promise<RegisteredTool | undefined> {
    if (this.#isStale) await this.#refresh()
    const known = this.#present.alias(name) ?? this.#listed.alias(name)
    return known?.tool ?? this.#absentTool(this.#absent.alias(name))
  }

  #named(name: string): ToolOfAgent | undefined {
    return this.#listed.get(name) ?? this.#present.get(name)
  }

  #absentTool(one: ToolOfAgent | undefined): RegisteredTool | undefined {
    return one === undefined ? undefined : absentTool(one, this.#present, this.#deps.api)
  }

  onChange(changed: () => void): () => void {
    return this.#changes.on(() => {
      this.#isStale = true
      changed()
    })
  }

  async #refresh(): Promise<void> {
    this.#isStale = false
    const agents = await this.#visible()
    const [present, absent] = [new NamedTools(), new NamedTools()]
    for (const agent of agents) {
      const named = agent.status === 'offline' ? absent : present
      for (const tool of await this.#toolsOf(agent))
        if (this.#isChosen({ name: tool.definition.name, capability: tool.capability, agent }))
          named.add({ tool, agent })
    }
    const visible = new Set(agents.map(({ address }) => address))
    for (const address of this.#agents.keys()) if (!visible.has(address)) this.#agents.delete(address)
    this.#present = present
    this.#absent = absent
    this.#listed = new NamedTools()
    const asAbsent = (one: ToolOfAgent): RegisteredTool => absentTool(one, present, this.#deps.api)
    for (const one of listedTools({ present: present.all(), absent: absent.all(), asAbsent })) this.#listed.add(one)
  }

  /** Empty for a caller that may call agents but not list them: it has the tools that take an address. */
  async #visible(): Promise<readonly AgentInfo[]> {
    try {
      const { agents } = await this.#deps.api.call('agents.list', {})
      return agents
    } catch (error) {
      if (asNodeError(error).code === 'FORBIDDEN') return []
      this.#isStale = true
      throw error
    }
  }

  async #toolsOf({ address, revision }: AgentInfo): Promise<readonly MeshTool[]> {
    const known = this.#agents.get(address)
    if (known?.revision === revision) return known.tools
    try {
      const detail = await this.#deps.api.call('agents.show', { agent: address })
      const tools = toolsOf(detail, this.#deps)
      this.#agents.set(address, { revision: detail.revision, tools })
      return tools
    } catch {
      // It went away in between; the next look tells.
      return []
    }
  }
}

/** Every capability of an agent as a tool. */
export function toolsOf(agent: AgentDetail, deps: ToolDeps): readonly MeshTool[] {
  const isForNodes = (one: CapabilityDescriptor): boolean =>
    givesDefinitions(agent.id, one) || servedContext(agent.id, one) !== null
  const capabilities = agent.capabilities.filter((one) => !isForNodes(one))
  const short = capabilities.map(({ id }) => shortName(agent.id, id))
  return capabilities.map((capability, at) => {
    const name = short[at] ?? capability.id
    const isTaken = short.indexOf(name) !== short.lastIndexOf(name)
    return toolOf(agent, { capability, tool: isTaken ? capability.id : name, deps })
  })
}

/** `text.stats` of the agent `text` is its tool `stats`. */
function shortName(agentId: string, capability: string): string {
  return capability.startsWith(`${agentId}.`) && capability.length > agentId.length + 1
    ? capability.slice(agentId.length + 1)
    : capability
}

/** A tool of an imported server has the server's name in its own already. */
function localToolName({ id }: AgentDetail, tool: string): string {
  return tool.startsWith(capabilityPrefix(id)) ? tool : `${id}.${tool}`
}

interface ToolMaking {
  readonly capability: CapabilityDescriptor
  /** Its name behind that of its agent. */
  readonly tool: string
  readonly deps: ToolDeps
}

function toolOf(agent: AgentDetail, { capability, tool, deps }: ToolMaking): MeshTool {
  const { address } = agent
  const localName = localToolName(agent, tool)
  const name = agent.origin === 'local' ? localName : `${agent.id}@${agent.node.name}.${tool}`
  const root = objectRoot(capability.inputSchema)
  const inputSchema: ToolSchema = root ?? {
    type: 'object',
    properties: { [INPUT]: moved(capability.inputSchema, 'schema') },
    required: [INPUT],
    additionalProperties: false
  }
  const inputOf: MeshTool['inputOf'] = (args) => (root === null ? args[INPUT] : args)
  return {
    definition: { name, inputSchema, ...outputSchemaOf(capability, deps), ...describedBy(agent, capability) },
    capability: capability.id,
    isRefused: capability.tags?.includes(NOT_GRANTED) === true,
    sameAs: versionKey(agent, capability, inputSchema),
    localName,
    inputOf,
    // A pattern in another node's schema could block this node. That node checks the arguments itself and reports
    // faults.
    validator:
      agent.origin === 'local'
        ? boundedCheck(deps.compileSchema(inputSchema), inputSchema)
        : root === null
          ? hasInput
          : () => [],
    // A request has a deadline of its own, and may wait for a person.
    timeoutMs: null,
    handler: async (args, context) =>
      await callAgentAsTool(deps, { agent: address, capability: capability.id, input: inputOf(args) }, context)
  }
}

/** The key of {@link MeshTool.sameAs}. Tags are of the machine, except for the hash of a whole definition. */
function versionKey(
  { id, version }: AgentDetail,
  { tags = [], ...capability }: CapabilityDescriptor,
  { properties }: ToolSchema
): string | null {
  const hash = hashOf({ tags })
  const names = isRecord(properties) ? Object.keys(properties) : []
  // An outline without names may leave out an argument of that name.
  if (names.includes(NODE) || (hash !== null && names.length === 0)) return null
  return createHash('sha256')
    .update(canonicalJson([id, version, capability, hash]))
    .digest('base64url')
}

/** Clients compile it when they list the tools, and refuse the whole list for one that they cannot compile. */
function outputSchemaOf(
  { outputSchema }: CapabilityDescriptor,
  { compileSchema }: Pick<MeshToolsDeps, 'compileSchema'>
): Pick<ToolDefinition, 'outputSchema'> {
  if (!isRecord(outputSchema) || outputSchema['type'] !== 'object') return {}
  // Clients know one dialect, each another.
  const { $schema: _dialect, ...schema } = outputSchema
  try {
    compileSchema(schema)
    return { outputSchema: schema }
  } catch {
    return {}
  }
}

function describedBy(
  { address, name, labels }: AgentDetail,
  capability: CapabilityDescriptor
): Omit<ToolDefinition, 'name' | 'inputSchema'> {
  const effect = capability.sideEffect ?? 'exec'
  const hash = hashOf(capability)
  const purpose = shown(capability.description || capability.name, MAX_DESCRIPTION)
  return {
    description: `${purpose} (${shown(name)}, ${shown(address)})`,
    purpose,
    source: address,
    labels,
    ...(hash === null ? {} : { outlineOf: hash }),
    annotations: {
      readOnlyHint: effect === 'none' || effect === 'read',
      idempotentHint: capability.idempotent === true,
      openWorldHint: effect === 'exec'
    }
  }
}

function hasInput(args: unknown): readonly SchemaFault[] {
  return isRecord(args) && args[INPUT] !== undefined
    ? []
    : [{ path: '', message: `must have ${JSON.stringify(INPUT)}` }]
}

/** A schema below the root of another one: its references lead where they led. */
function moved(value: unknown, place: SchemaPlace): unknown {
  if (place === 'data') return value
  if (Array.isArray(value)) return value.map((one) => moved(one, 'schema'))
  // With a base of its own they do anyway.
  if (!isRecord(value) || typeof value['$id'] === 'string') return value
  const entries = Object.entries(value).map(([key, one]): [string, unknown] => {
    const isPointer = place === 'schema' && key === '$ref' && typeof one === 'string' && /^#(\/|$)/.test(one)
    return [key, isPointer ? `#/properties/${INPUT}${one.slice(1)}` : moved(one, placeBelow(place, key))]
  })
  return Object.fromEntries(entries)
}

/** The schema with an object as its root, which arguments always are; null when the input can be none. */
export function objectRoot(schema: unknown): ToolSchema | null {
  if (!isRecord(schema)) return schema === false ? null : { type: 'object' }
  const { type } = schema
  if (type === 'object') return schema
  return type === undefined || (Array.isArray(type) && type.includes('object')) ? { ...schema, type: 'object' } : null
}
