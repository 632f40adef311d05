import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { asNodeError, NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { faultText } from '../../../kit/schema/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { shown } from '../../../kit/text.js'
import type { AgentToolbox, AgentToolChoice } from '../../../ports/agent-tools.js'
import type { AgentInfo, NodeApi } from '../../../ports/node-api.js'
import { callAgent } from './mesh-call.js'
import { allowedNames } from '../../../kit/glob.js'
import { type MeshTool, toolsOf } from './mesh-tools.js'
import type { InvocationRecord } from '../../../ports/tool-calls.js'
import { type InvocationEvent, invocationEvent } from '../server/tool-record.js'
import { publishedAs, PublishedNames } from './published-names.js'
import { publishedSchema } from './published-schema.js'
import { knownDefinitions, slowAgents, wholeDefinitions } from './whole-definitions.js'

/** Dependencies of {@link openToolbox}. */
export interface AgentToolboxDeps {
  /** Acts as the agent: it shows only agents that this one may see, and calls in its name. */
  readonly api: NodeApi
  /** Its id on this node. */
  readonly agentId: string
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
  /** Called when a call of a tool ended. */
  readonly onCall?: (call: InvocationEvent) => void
}

type CallDeps = AgentToolboxDeps & Pick<AgentToolChoice, 'timeoutMs'>

/** A tool of an agent. */
interface Offered {
  readonly tool: MeshTool
  readonly address: string
}

/**
 * The capabilities of other agents that an agent wants and that the rules of this node let it call, under published
 * names.
 * @throws NodeError when the agent may not list agents
 */
export async function openToolbox(
  deps: AgentToolboxDeps,
  choice: AgentToolChoice,
  signal: AbortSignalLike
): Promise<AgentToolbox> {
  const { agents } = await deps.api.call('agents.list', {}, { signal })
  const own = agents.find(({ id, origin }) => id === deps.agentId && origin === 'local')
  if (own === undefined) throw new NodeError('AGENT_NOT_FOUND', `the agent ${deps.agentId} has no card yet`)
  const offered = new Map<string, Offered>()
  let left = 0
  for (const agent of agents) {
    if (agent.address === own.address || agent.status === 'offline' || signal.aborted) continue
    for (const one of await wantedOf(deps, agent, choice.globs)) {
      if (!(await mayCall(deps.api, own.address, one))) continue
      if (offered.size < choice.max) offered.set(one.tool.definition.name, one)
      else left++
    }
  }
  const definitions = [...offered.values()].map(({ tool }) => tool.definition)
  for (const definition of await wholeDefinitions(
    { ...deps, known: knownDefinitions(), slow: slowAgents() },
    definitions
  )) {
    const one = offered.get(definition.name)
    if (one !== undefined) offered.set(definition.name, { ...one, tool: { ...one.tool, definition } })
  }
  return toolbox({ ...deps, timeoutMs: choice.timeoutMs }, offered, left)
}

async function wantedOf(
  deps: AgentToolboxDeps,
  { address }: AgentInfo,
  globs: readonly string[]
): Promise<readonly Offered[]> {
  const isWanted = allowedNames(globs)
  try {
    const tools = toolsOf(await deps.api.call('agents.show', { agent: address }), deps)
    return tools
      .filter((tool) => !tool.isRefused && (isWanted(tool.capability) || isWanted(tool.definition.name)))
      .map((tool) => ({ tool, address }))
  } catch {
    // It went away in between.
    return []
  }
}

/** May the agent call the tool, perhaps after a person's approval? A denied tool would only cost a model turns. */
async function mayCall(api: NodeApi, from: string, { address, tool }: Offered): Promise<boolean> {
  try {
    return (await api.call('policy.test', { from, to: address, capability: tool.capability })).decision !== 'deny'
  } catch {
    return false
  }
}

function toolbox(deps: CallDeps, offered: ReadonlyMap<string, Offered>, left: number): AgentToolbox {
  const names = new PublishedNames()
  for (const name of offered.keys()) names.add(name)
  const tools = [...offered.values()].map(({ tool: { definition } }) => ({
    name: names.published(definition.name),
    description: definition.description,
    inputSchema: publishedSchema(definition.inputSchema)
  }))
  return {
    tools,
    left,
    async call(name, args, signal) {
      const one = offered.get(names.resolve(name) ?? '')
      return await counted(deps, { tool: one?.tool.definition.name ?? null, called: name }, async () => {
        if (one === undefined) throw new NodeError('CAPABILITY_NOT_FOUND', `there is no tool ${shown(name)}`)
        return await callTool(deps, one, { args, signal })
      })
    }
  }
}

/** Reports the end of a call. `tool`: its canonical name; null: there is no such tool. */
async function counted(
  { clock, onCall }: CallDeps,
  { tool, called }: { readonly tool: string | null; readonly called: string },
  call: () => Promise<unknown>
): Promise<unknown> {
  const from = clock.monotonic()
  const report = (error: InvocationRecord['error']): void => {
    const names = tool === null ? { tool: shown(called), isUnknown: true } : { tool, ...publishedAs(tool, called) }
    const ended = error === undefined ? ({ outcome: 'success' } as const) : ({ outcome: 'tool_error', error } as const)
    const event = invocationEvent({
      ...names,
      ...ended,
      durationMs: clock.monotonic() - from,
      correlationId: '',
      at: clock.now()
    })
    if (event !== null) onCall?.(event)
  }
  try {
    const result = await call()
    report(undefined)
    return result
  } catch (error) {
    report(asNodeError(error))
    throw error
  }
}

async function callTool(
  deps: CallDeps,
  { tool, address }: Offered,
  { args, signal }: { readonly args: unknown; readonly signal: AbortSignalLike }
): Promise<unknown> {
  if (!isRecord(args)) throw new NodeError('INVALID_INPUT', 'the arguments are no JSON object')
  const faults = tool.validator(args)
  if (faults.length > 0) throw new NodeError('INVALID_INPUT', `the arguments do not fit: ${faultText(faults)}`)
  const call = { agent: address, capability: tool.capability, input: tool.inputOf(args), timeoutMs: deps.timeoutMs }
  return await callAgent(deps, call, { abortSignal: signal, progress: () => {} })
}
