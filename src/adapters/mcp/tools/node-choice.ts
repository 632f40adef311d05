import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { RegisteredTool, ToolDefinition } from '../server/tool.js'
import type { ToolOfAgent } from './named-tools.js'

/** The argument that names the machine of a tool that several machines offer. */
export const NODE = 'node'
/** Machines that the schema of the argument names; a call may name any other one that offers the tool. */
const MAX_NAMED = 32

/** Tools of agents whose nodes are online, and of the others. */
export interface OfferedTools {
  readonly present: readonly ToolOfAgent[]
  readonly absent: readonly ToolOfAgent[]
  /** The tool of an offline node: each call of it fails. */
  asAbsent(one: ToolOfAgent): RegisteredTool
}

/**
 * The tools of a list: one that several machines offer in the same version is there once, with the argument `node`. It
 * is optional where this machine offers the tool: a member must not attract calls by a copy of a tool. The name is that
 * of this machine, also where only others offer it. Offline machines count, so that the list stays while they come and
 * go. In the order of `present`.
 */
export function listedTools({ present, absent, asAbsent }: OfferedTools): readonly ToolOfAgent[] {
  const groups = groupsOf([...present, ...absent])
  const owners = ownersOf(present, groups)
  const isPresent = new Set(present)
  return present.flatMap((one) => {
    const { sameAs, localName } = one.tool
    const group = sameAs === null ? undefined : groups.get(sameAs)
    // Another version here, or two versions on other machines, would have the same name; that of this machine keeps it.
    const isNamed = (all: readonly ToolOfAgent[]): boolean =>
      all.some(({ agent }) => agent.origin === 'local') || (owners.get(localName)?.size ?? 0) <= 1
    if (group === undefined || !isNamed(group)) return [one]
    const ordered = group.toSorted((a, b) => Number(isPresent.has(b)) - Number(isPresent.has(a)) || byPreference(a, b))
    if (ordered[0] !== one) return []
    const callable = (other: ToolOfAgent): RegisteredTool => (isPresent.has(other) ? other.tool : asAbsent(other))
    return [{ agent: one.agent, tool: { ...one.tool, ...chosenByNode(one, ordered, callable) } }]
  })
}

/** Adds the argument `node` to the input schema of a tool that has one. */
export function withNode(definition: ToolDefinition): ToolDefinition {
  const { inputSchema, nodeArgument } = definition
  if (nodeArgument === undefined) return definition
  const { schema, isRequired } = nodeArgument
  const { properties, required } = inputSchema
  const all = { ...(isRecord(properties) ? properties : {}), [NODE]: schema }
  const needed = isRequired ? { required: [...new Set(Array.isArray(required) ? [...required, NODE] : [NODE])] } : {}
  return { ...definition, inputSchema: { ...inputSchema, properties: all, ...needed } }
}

/** Tools of two or more machines in the same version. */
function groupsOf(tools: readonly ToolOfAgent[]): ReadonlyMap<string, readonly ToolOfAgent[]> {
  const groups = new Map<string, ToolOfAgent[]>()
  for (const one of tools) {
    const { sameAs, isRefused } = one.tool
    if (sameAs === null || isRefused) continue
    const group = groups.get(sameAs)
    if (group === undefined) groups.set(sameAs, [one])
    else group.push(one)
  }
  for (const [key, { length }] of groups) if (length < 2) groups.delete(key)
  return groups
}

/** The tools and groups that would have each name. */
function ownersOf(
  present: readonly ToolOfAgent[],
  groups: ReadonlyMap<string, readonly ToolOfAgent[]>
): ReadonlyMap<string, ReadonlySet<string>> {
  const owners = new Map<string, Set<string>>()
  const own = (name: string, owner: string): void => void owners.set(name, (owners.get(name) ?? new Set()).add(owner))
  for (const { tool } of present) own(tool.definition.name, tool.sameAs ?? '')
  for (const [key, [first]] of groups) if (first !== undefined) own(first.tool.localName, key)
  return owners
}

/** This machine first. */
function byPreference({ agent: a }: ToolOfAgent, { agent: b }: ToolOfAgent): number {
  return (
    Number(b.origin === 'local') - Number(a.origin === 'local') ||
    order(a.node.name, b.node.name) ||
    order(a.node.id, b.node.id)
  )
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/** The tool of several machines, the preferred one first. */
function chosenByNode(
  first: ToolOfAgent,
  all: readonly ToolOfAgent[],
  callable: (one: ToolOfAgent) => RegisteredTool
): RegisteredTool {
  const { definition, localName: name, validator } = first.tool
  const isHere = first.agent.origin === 'local'
  const names = all.map(({ agent }) => agent.node.name).sort(order)
  const fallback = isHere ? `; default: ${shown(first.agent.node.name)}, this one` : ''
  const schema = {
    type: 'string',
    ...(names.length > MAX_NAMED ? {} : { enum: [...new Set(names)] }),
    description: `machine that does it${fallback}`
  }
  return {
    definition: withNode({ ...definition, name, nodeArgument: { schema, isRequired: !isHere } }),
    validator: (args) => validator(isRecord(args) ? withoutNode(args) : args),
    timeoutMs: null,
    handler: async (args, context) => {
      const { [NODE]: node } = args
      if (node === undefined && !isHere)
        throw new NodeError('INVALID_INPUT', `name the machine in "node": ${listed(names)}`)
      const one =
        node === undefined ? first : all.find(({ agent }) => agent.node.name === node || agent.node.id === node)
      if (one === undefined) throw new NodeError('INVALID_INPUT', `"node" is none of ${listed(names)}`)
      return await callable(one).handler(withoutNode(args), context)
    }
  }
}

function listed(names: readonly string[]): string {
  return names
    .slice(0, MAX_NAMED)
    .map((name) => shown(name))
    .join(', ')
}

function withoutNode(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { [NODE]: _node, ...rest } = args
  return rest
}
