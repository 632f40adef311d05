import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { Calls, NodeApi, SwarmResults } from '../../../ports/node-api.js'
import { callAgentAsTool, sendAsTool } from './mesh-call.js'
import type { RunAsking } from './asking-calls.js'
import type { ToolSchema, RegisteredTool, ToolContext, ToolHandler } from '../server/tool.js'

/** Dependencies of {@link a2aTools}. */
export interface A2AToolsDeps {
  readonly api: NodeApi
  readonly compileSchema: CompileSchema
  /** Values of agents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
  /** Runs calls whose agents may ask the client. */
  readonly asking?: RunAsking
}

/** A tool of the node, as a row of the table below. */
interface A2AToolRow {
  readonly description: string
  readonly properties: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
  readonly annotations?: Readonly<Record<string, unknown>>
  /** Milliseconds; absent: the default of all tools; null: it sees to that itself. */
  readonly timeoutMs?: null
  run(args: Args, deps: A2AToolsDeps): (context: ToolContext) => Promise<unknown>
}

type Args = Readonly<Record<string, unknown>>

const text = (description: string, maxLength = 256): object => ({
  type: 'string',
  minLength: 1,
  maxLength,
  description
})
const TIMEOUT = {
  type: 'integer',
  minimum: 1,
  maximum: 86_400,
  description: 'wait for the answer (default 30)'
}
const JUSTIFICATION = text('why: needed to reach a more powerful tier (L0, L1) from L2 or L3', 1024)
const NO_WAIT = { type: 'boolean', description: 'false: gives a task id for a2a_task at once (default true)' }
const READ_ONLY = { readOnlyHint: true }

const ROWS: Readonly<Record<string, A2AToolRow>> = {
  a2a_list_agents: {
    description: 'Lists the agents of the mesh: address (id@node), tier, status and capabilities.',
    properties: {
      capability: text('only those that offer this capability', 128),
      origin: { enum: ['local', 'remote'] }
    },
    annotations: READ_ONLY,
    run: (args, deps) => async () => await listAgents(args, deps)
  },
  a2a_send: {
    description:
      "Sends a text (or a JSON object as text) to an agent's default capability and gives its answer; to * it goes to all agents without side effects.",
    properties: {
      agent: text('id@node, a bare id when only one node has it, or *'),
      text: text('what to say', 1_048_576),
      justification: JUSTIFICATION,
      timeoutSeconds: TIMEOUT,
      wait: NO_WAIT,
      all: { type: 'boolean', description: 'with *: also agents with side effects (default false)' }
    },
    required: ['agent', 'text'],
    timeoutMs: null,
    run: (args, deps) => async (context) => await sendAsTool(deps, messageOf<'message.send'>(args), context)
  },
  a2a_call: {
    description:
      'Asks an agent for one capability and gives its result. Without an agent the node picks one that may and can.',
    properties: {
      capability: text('id of the capability, e.g. text.stats', 128),
      input: { description: 'its input, as its schema says (default {})' },
      agent: text('id@node, or a bare id'),
      justification: JUSTIFICATION,
      timeoutSeconds: TIMEOUT,
      wait: NO_WAIT
    },
    required: ['capability'],
    timeoutMs: null,
    run: (args, deps) => async (context) => {
      const { agent = null, input = {} } = args as { agent?: string; input?: unknown }
      return await callAgentAsTool(deps, { ...messageOf<'message.call'>(args), agent, input }, context)
    }
  },
  a2a_task: {
    description: 'Gives state, result and events of a task, or status and results of a swarm; or cancels it.',
    properties: {
      id: text('id of the task or swarm'),
      cancel: { type: 'boolean', description: 'true: cancel it (default false)' }
    },
    required: ['id'],
    run: (args, deps) => async () => deps.toJson(await taskOrSwarm(deps.api, args as { id: string; cancel?: boolean }))
  },
  a2a_swarm: {
    description:
      'Spreads work over all agents of the mesh that offer a capability, and gives every result: `map` gives each item to one agent, `each` asks every agent once, `race` takes the first good answer, `vote` that of the majority.',
    properties: {
      goal: text('what it is for; agents read it', 65_536),
      capability: text('what agents are asked for', 128),
      strategy: { enum: ['each', 'map', 'race', 'vote'], description: 'default: map with items, else each' },
      items: {
        type: 'array',
        minItems: 1,
        maxItems: 10_000,
        items: { anyOf: [{ type: 'string', minLength: 1, maxLength: 4096 }, { type: 'object' }] },
        description: 'for map: an object is the input of its run as it is; a text becomes {"item": text}'
      },
      input: { description: 'for each, race and vote: the input of everyone (default {})' },
      reduce: text('makes one of the results: concat, merge, count, first, or a capability', 128),
      deadlineSeconds: {
        type: 'integer',
        minimum: 1,
        maximum: 86_400,
        description: 'default 600'
      },
      justification: JUSTIFICATION,
      wait: NO_WAIT
    },
    required: ['goal', 'capability'],
    timeoutMs: null,
    run: (args, deps) => async (context) => await runSwarm(args, { deps, context })
  }
}

/** Names of {@link a2aTools}. */
export const A2A_TOOLS: ReadonlySet<string> = new Set(Object.keys(ROWS))

/** The tools that work the mesh: `a2a_list_agents`, `a2a_send`, `a2a_call`, `a2a_task`, `a2a_swarm`. */
export function a2aTools(deps: A2AToolsDeps): readonly RegisteredTool[] {
  return Object.entries(ROWS).map(([name, { description, properties, required = [], annotations, timeoutMs, run }]) => {
    const inputSchema: ToolSchema = { type: 'object', properties, required, additionalProperties: false }
    const handler: ToolHandler = async (args, context) => await run(args, deps)(context)
    return {
      definition: { name, description, inputSchema, ...(annotations === undefined ? {} : { annotations }) },
      validator: deps.compileSchema(inputSchema),
      handler,
      ...(timeoutMs === undefined ? {} : { timeoutMs })
    }
  })
}

/** The parameters of a message; the schema has checked their types. */
function messageOf<N extends 'message.send' | 'message.call'>({ timeoutSeconds, ...rest }: Args): Calls[N]['params'] {
  const timeout = typeof timeoutSeconds === 'number' ? { timeoutMs: timeoutSeconds * 1000 } : {}
  return { ...rest, ...timeout } as unknown as Calls[N]['params']
}

async function listAgents({ capability, origin }: Args, { api }: A2AToolsDeps): Promise<unknown> {
  const asked = origin === undefined ? {} : { origin: origin as 'local' | 'remote' }
  const { agents, problems } = await api.call('agents.list', asked)
  const wanted = typeof capability === 'string' ? agents.filter((one) => one.capabilities.includes(capability)) : agents
  return {
    agents: wanted.map((one) => ({
      agent: one.address,
      tier: one.tier,
      status: one.status,
      origin: one.origin,
      capabilities: one.capabilities,
      labels: one.labels
    })),
    ...(problems.length === 0 ? {} : { problems })
  }
}

/** The prefix of the id tells a task from a swarm. */
async function taskOrSwarm(
  api: NodeApi,
  { id, cancel = false }: { readonly id: string; readonly cancel?: boolean }
): Promise<unknown> {
  if (!id.startsWith('swarm_'))
    return cancel ? await api.call('tasks.cancel', { id }) : await api.call('tasks.show', { id })
  const info = cancel ? await api.call('swarm.cancel', { id }) : await api.call('swarm.show', { id })
  if (info.status === 'running' || info.status === 'stalled') return info
  return { ...info, ...(await api.call('swarm.results', { id: info.id })) }
}

interface SwarmRun {
  readonly deps: A2AToolsDeps
  readonly context: ToolContext
}

async function runSwarm(args: Args, { deps, context }: SwarmRun): Promise<unknown> {
  const { wait, deadlineSeconds, items, strategy, ...rest } = args
  if (items !== undefined && rest['input'] !== undefined)
    throw new NodeError('INVALID_INPUT', '`input` is only allowed without `items`; put one input object in each item')
  const named = Array.isArray(items) ? items.map((one: unknown, at) => itemOf(one, at)) : undefined
  const { id } = await deps.api.call('swarm.start', {
    ...rest,
    strategy: typeof strategy === 'string' ? strategy : named === undefined ? 'each' : 'map',
    ...(named === undefined ? {} : { items: named }),
    ...(typeof deadlineSeconds === 'number' ? { deadlineMs: deadlineSeconds * 1000 } : {})
  } as unknown as Calls['swarm.start']['params'])
  if (wait === false) return { id, status: 'running', next: 'a2a_task with this id tells what becomes of it' }
  await followSwarm(id, { deps, context })
  const results: SwarmResults = await deps.api.call('swarm.results', { id })
  return deps.toJson(results)
}

/** Follows a swarm to its end; cancels it when its caller has given it up. */
async function followSwarm(id: string, { deps: { api }, context }: SwarmRun): Promise<void> {
  const { abortSignal, progress } = context
  let ended = 0
  for await (const event of api.watch('swarm.watch', { id }, { signal: abortSignal })) {
    if (event.type === 'item')
      progress({ progress: ++ended, message: `${event.item}: ${event.status} (${event.agent ?? 'nobody'})` })
    else if (event.type === 'waiting' && event.waitingFor === 'approval') {
      progress({ progress: ended, message: `${event.item}: waiting for approval at ${event.agent}` })
    }
  }
  if (abortSignal.aborted) await api.call('swarm.cancel', { id }).catch(() => {})
}

function itemOf(one: unknown, at: number): { item: string; input: unknown } {
  return isRecord(one) ? { item: `item ${at + 1}`, input: one } : { item: String(one), input: { item: one } }
}
