import { NodeError } from '../../../kit/errors.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { HEALTH_OPTIONS, HEALTH_SCHEMA } from './health-tool.js'
import { publishedName } from './published-names.js'
import type { ToolSchema, ToolContext, ToolHandler, ToolSource } from '../server/tool.js'
import { duplicateTool, ToolRegistry } from '../server/tool-registry.js'

/** The callers that may change the list of tools (`tools.adminPolicy`). */
export type AdminPolicy = 'deny_all' | 'local_stdio_only' | 'token'

/** How the client of a connection came here. */
export interface AdminCaller {
  readonly transport: 'stdio' | 'http' | 'mesh'
  /** Did it show a token of this node? */
  readonly hasToken: boolean
}

/** Type of a dynamic tool: its handler comes with the type, never from the client. */
export type ToolType = 'echo' | 'health' | 'agentProxy'

/** Dependencies of {@link adminTools}. */
export interface AdminDeps {
  readonly settings: {
    /** `tools.adminRegistrationEnabled`. */
    readonly adminRegistrationEnabled: boolean
    /** `security.dynamicRegistrationEnabled`. */
    readonly dynamicRegistrationEnabled: boolean
    /** `tools.adminPolicy`. */
    readonly adminPolicy: AdminPolicy
  }
  readonly caller: AdminCaller
  readonly compile: CompileSchema
  /** The registry that the admin tools change. */
  readonly registry: ToolRegistry
  /** Does the caller have a tool of that name, from any source, or one that clients would see as the same? */
  readonly isTaken: (name: string) => Promise<boolean>
  readonly health: ToolHandler
  /** Sends a message to an agent and resolves with its answer. */
  readonly sendMessage: (
    targetAgentId: string,
    message: Readonly<Record<string, unknown>>,
    context: ToolContext
  ) => Promise<unknown>
}

/**
 * The schema of each type (spec mcp-runtime, ToolType Canonical Schemas): one that a client names must be the same,
 * byte by byte.
 */
const TYPE_SCHEMAS: Readonly<Record<ToolType, ToolSchema>> = {
  echo: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  health: HEALTH_SCHEMA,
  agentProxy: {
    type: 'object',
    properties: { targetAgentId: { type: 'string' }, message: { type: 'object' } },
    required: ['targetAgentId', 'message']
  }
}

const REGISTER_SCHEMA: ToolSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 256 },
    description: { type: 'string', maxLength: 16_384 },
    version: { type: 'string', maxLength: 64 },
    toolType: { type: 'string' },
    inputSchema: { type: 'object' }
  },
  required: ['name', 'description', 'toolType'],
  additionalProperties: false
}

const UNREGISTER_SCHEMA: ToolSchema = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1, maxLength: 256 } },
  required: ['name'],
  additionalProperties: false
}

/**
 * `admin/registerTool` and `admin/unregisterTool` for one kind of caller. Without both settings the source is empty;
 * with them, each call is checked against the policy.
 */
export function adminTools(deps: AdminDeps): ToolSource {
  const { settings, compile } = deps
  const tools = new ToolRegistry(compile)
  if (!settings.adminRegistrationEnabled || !settings.dynamicRegistrationEnabled) return tools
  const guarded =
    (run: (args: Readonly<Record<string, unknown>>) => unknown): ToolHandler =>
    async (args) => {
      enforceAdminPolicy(settings.adminPolicy, deps.caller)
      return await run(args)
    }
  tools.register(
    {
      name: 'admin/registerTool',
      description: `Registers a tool of one of the types ${Object.keys(TYPE_SCHEMAS).join(', ')}.`,
      inputSchema: REGISTER_SCHEMA
    },
    guarded((args) => registerTool(args, deps))
  )
  tools.register(
    { name: 'admin/unregisterTool', description: 'Removes a registered tool.', inputSchema: UNREGISTER_SCHEMA },
    guarded(({ name }) => unregisterTool(String(name), deps.registry))
  )
  return tools
}

/** @throws NodeError FORBIDDEN when the caller may not change the list of tools. */
function enforceAdminPolicy(policy: AdminPolicy, { transport, hasToken }: AdminCaller): void {
  if (policy === 'local_stdio_only' && transport === 'stdio') return
  if (policy === 'token' && transport === 'http' && hasToken) return
  const why = {
    deny_all: 'admin operations are disabled',
    local_stdio_only: 'admin operations are allowed over stdio only',
    token: 'admin operations are allowed over HTTP with a local token only'
  }
  throw new NodeError('FORBIDDEN', why[policy], { data: { setting: 'tools.adminPolicy', policy } })
}

async function registerTool(
  args: Readonly<Record<string, unknown>>,
  deps: AdminDeps
): Promise<{ readonly registered: string }> {
  const { toolType, inputSchema: asserted } = args
  if (!isToolType(toolType)) {
    throw new NodeError('INVALID_INPUT', `toolType must be one of ${Object.keys(TYPE_SCHEMAS).join(', ')}`, {
      data: { toolType }
    })
  }
  const inputSchema = TYPE_SCHEMAS[toolType]
  if (asserted !== undefined && JSON.stringify(asserted) !== JSON.stringify(inputSchema)) {
    throw new NodeError('INVALID_INPUT', `inputSchema is not that of ${toolType}; leave it out or give exactly this`, {
      data: { inputSchema }
    })
  }
  // As the schema of the admin tool has it.
  const { name, description, version } = args as {
    readonly name: string
    readonly description: string
    readonly version?: string
  }
  const named = { name, description, inputSchema }
  // Another call may have registered it while the rest was looked through.
  if ((await deps.isTaken(name)) || deps.registry.get(publishedName(name)) !== undefined) throw duplicateTool(name)
  deps.registry.register(
    version === undefined ? named : { ...named, version },
    handlerOf(toolType, deps),
    toolType === 'health' ? HEALTH_OPTIONS : {}
  )
  return { registered: name }
}

function unregisterTool(name: string, registry: ToolRegistry): { readonly unregistered: string } {
  const canonical = registry.get(name)?.definition.name
  if (canonical === undefined || !registry.unregister(canonical)) {
    throw new NodeError('CAPABILITY_NOT_FOUND', `there is no registered tool ${JSON.stringify(name)}`)
  }
  return { unregistered: canonical }
}

function handlerOf(type: ToolType, { health, sendMessage }: AdminDeps): ToolHandler {
  switch (type) {
    case 'echo':
      return ({ message }) => Promise.resolve({ message })
    case 'health':
      return health
    case 'agentProxy':
      return ({ targetAgentId, message }, context) =>
        sendMessage(String(targetAgentId), message as Readonly<Record<string, unknown>>, context)
  }
}

function isToolType(type: unknown): type is ToolType {
  return typeof type === 'string' && Object.hasOwn(TYPE_SCHEMAS, type)
}
