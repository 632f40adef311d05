import type { ErrorBody, ErrorCode } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { nearest, shown } from '../../../kit/text.js'
import type { ImportedServerInfo } from '../../../ports/imported-tools.js'
import type { RegisteredTool, ToolContext } from '../server/tool.js'

/** Tools that an error names. */
const NAMED = 50

/** Why the client tool asked no server. */
export type ToolChoiceCode = 'SERVER_NOT_CONFIGURED' | 'TOOL_NOT_FOUND' | 'TOOL_NOT_CHOSEN'

/** Why the client tool has no result: its own reason, or the code with which the call of the tool ended. */
export type ToolExecutionCode = ToolChoiceCode | ErrorCode

/** The error of a failed client tool (spec protocol-adapters, 3.2). */
export class ToolExecutionError extends Error {
  readonly code: ToolExecutionCode
  /** `available`: the alternatives; `error`: the error of the call; `retryAfter`: seconds. JSON. */
  readonly data: { readonly available?: readonly string[]; readonly error?: ErrorBody; readonly retryAfter?: number }

  constructor(code: ToolExecutionCode, message: string, data: ToolExecutionError['data'] = {}) {
    super(message)
    this.name = 'ToolExecutionError'
    this.code = code
    this.data = data
  }
}

/** Dependencies of {@link mcpClientTool}. */
export interface ClientToolDeps {
  /** The configured server of that name or exact address; null: none. */
  serverOf(text: string): ImportedServerInfo | null
  servers(): readonly ImportedServerInfo[]
  /** Calls a capability of an agent of this node in the name of the tool's caller, so that policy applies. Never rejects. */
  call(
    work: { readonly agent: string; readonly capability: string; readonly input: unknown },
    context: ToolContext
  ): Promise<{ readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: ErrorBody }>
  readonly compileSchema: CompileSchema
}

const INPUT_SCHEMA = {
  type: 'object',
  required: ['serverUrl'],
  additionalProperties: false,
  properties: {
    serverUrl: { type: 'string', minLength: 1, maxLength: 2048, description: 'URL or name of an MCP server in the config of this node.' },
    tool: { type: 'string', minLength: 1, maxLength: 256, description: 'Which of its tools; may be left out when it has one.' },
    arguments: { type: 'object', description: 'Input of the tool.' },
    prompt: { type: 'string', maxLength: 65_536, description: 'Instead of arguments, for a tool with one text as its input.' }
  }
} as const

/**
 * The tool `mcp_client`: runs a tool of an MCP server that the config of this node names, and of no other; a caller can never
 * have it reach an address of its own. The result is text; structured ones are JSON. @throws ToolExecutionError from its handler.
 */
export function mcpClientTool(deps: ClientToolDeps): RegisteredTool {
  return {
    definition: {
      name: 'mcp_client',
      description: 'Runs a tool of an MCP server that the config of this node names.',
      inputSchema: INPUT_SCHEMA,
      annotations: { openWorldHint: true }
    },
    validator: deps.compileSchema(INPUT_SCHEMA),
    // The call it makes has a deadline of its own.
    timeoutMs: null,
    handler: async (args, context) => {
      const { server, tool } = choose(deps, args)
      const work = { agent: server.agent, capability: tool.capability, input: inputOf(deps, args, { server, tool: tool.name }) }
      const outcome = await deps.call(work, context)
      if (outcome.ok) return typeof outcome.result === 'string' ? outcome.result : JSON.stringify(outcome.result)
      throw failedCall(outcome.error)
    }
  }
}

type ToolInfo = ImportedServerInfo['tools'][number]

function choose(
  deps: ClientToolDeps,
  args: Readonly<Record<string, unknown>>
): { readonly server: ImportedServerInfo; readonly tool: ToolInfo } {
  const text = String(args['serverUrl'])
  const server = deps.serverOf(text)
  if (server === null) {
    const available = deps.servers().map(({ name }) => name)
    throw new ToolExecutionError(
      'SERVER_NOT_CONFIGURED',
      `no MCP server "${shown(text)}" in the config of this node${hintOf(text, available)}`,
      { available }
    )
  }
  const offered = server.tools.filter((tool) => tool.offered)
  const available = offered.map(({ name }) => name).slice(0, NAMED)
  const name = typeof args['tool'] === 'string' ? args['tool'] : null
  const named = server.tools.find((one) => one.name === name || one.capability === name)
  if (offered.length === 0 && named === undefined)
    throw new ToolExecutionError('TOOL_NOT_FOUND', `${server.name} offers no tool now${whyNone(server)}`, { available })
  if (name === null) {
    const [only] = offered
    if (only !== undefined && offered.length === 1) return { server, tool: only }
    throw new ToolExecutionError('TOOL_NOT_CHOSEN', `${server.name} has ${offered.length} tools: name one${listText(available)}`, {
      available
    })
  }
  if (named?.offered === true) return { server, tool: named }
  const reason =
    named === undefined ? `${server.name} has no tool "${shown(name)}"` : `${server.name} does not offer "${shown(name)}": ${named.reason}`
  throw new ToolExecutionError('TOOL_NOT_FOUND', `${reason}${hintOf(name, available)}`, { available })
}

function whyNone({ state, lastError }: ImportedServerInfo): string {
  if (state === 'ready') return ''
  return lastError === null ? ` (${state})` : ` (${state}: ${shown(lastError, 1000)})`
}

function inputOf(
  deps: ClientToolDeps,
  args: Readonly<Record<string, unknown>>,
  { server, tool }: { readonly server: ImportedServerInfo; readonly tool: string }
): unknown {
  if (args['arguments'] !== undefined) return args['arguments']
  const { prompt } = args
  if (prompt === undefined) return {}
  const place = promptPlace(server.tools.find((one) => one.name === tool)?.inputSchema)
  if (place !== null) return { [place]: prompt }
  throw new ToolExecutionError('TOOL_NOT_CHOSEN', `${tool} does not take one text: give arguments instead of prompt`, {
    available: deps.servers().flatMap((one) => (one.name === server.name ? one.tools.map(({ name }) => name).slice(0, NAMED) : []))
  })
}

/** The member that takes a prompt: the only required one or the only one there is, if it is a text. */
function promptPlace(schema: unknown): string | null {
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  const required: readonly unknown[] = isRecord(schema) && Array.isArray(schema['required']) ? schema['required'] : []
  const names = required.length > 0 ? required.map(String) : Object.keys(properties)
  const [only] = names
  if (only === undefined || names.length !== 1 || !Object.hasOwn(properties, only)) return null
  const one = properties[only]
  return isRecord(one) && one['type'] === 'string' ? only : null
}

function failedCall(error: ErrorBody): ToolExecutionError {
  const retryAfter = isRecord(error.data) ? error.data['retryAfter'] : undefined
  return new ToolExecutionError(error.code, error.message, { error, ...(typeof retryAfter === 'number' ? { retryAfter } : {}) })
}

function hintOf(text: string, available: readonly string[]): string {
  const near = nearest(text, available)
  return near.length > 0 ? `; did you mean ${near.join(' or ')}?` : listText(available)
}

function listText(available: readonly string[]): string {
  return available.length === 0 ? '' : `; there ${available.length === 1 ? 'is' : 'are'} ${available.map((one) => shown(one)).join(', ')}`
}
