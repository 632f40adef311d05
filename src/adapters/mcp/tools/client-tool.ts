import { asNodeError, type ErrorBody, type ErrorCode } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { boundedCheck } from '../../../kit/schema/cost.js'
import { faultText } from '../../../kit/schema/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { nearest, shown } from '../../../kit/text.js'
import type { ToolChoice, ToolChooser, WantedCall } from '../../../ports/agent-tools.js'
import type { ImportedServerInfo } from '../../../ports/imported-tools.js'
import type { RegisteredTool, ToolContext, ToolSchema } from '../server/tool.js'
import { objectRoot } from './mesh-tools.js'
import { PublishedNames } from './published-names.js'
import { publishedSchema } from './published-schema.js'

/** Tools that an error names. */
const NAMED = 50
/** Tools that an error describes. */
const DESCRIBED = 20
/** Characters of a name and of a description in an error. */
const MAX_SUMMARY = 80
/** Characters of a description for a model. */
const MAX_DESCRIPTION = 1024

/** Why the client tool asked no server. */
export type ToolChoiceCode = 'SERVER_NOT_CONFIGURED' | 'TOOL_NOT_FOUND' | 'TOOL_NOT_CHOSEN'

/** Why the client tool has no result: its own reason, or the code with which the call of the tool ended. */
export type ToolExecutionCode = ToolChoiceCode | ErrorCode

/** The error of a failed client tool (spec protocol-adapters, 3.2). */
export class ToolExecutionError extends Error {
  readonly code: ToolExecutionCode
  /**
   * `available`: the alternatives; `tools`: the first of them, described; `error`: the error of the call; `retryAfter`:
   * seconds. JSON.
   */
  readonly data: {
    readonly available?: readonly string[]
    readonly tools?: readonly { readonly name: string; readonly description: string }[]
    readonly error?: ErrorBody
    readonly retryAfter?: number
  }

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
  /**
   * Calls a capability of an agent of this node in the name of the tool's caller, so that policy applies. Never
   * rejects.
   */
  call(
    work: { readonly agent: string; readonly capability: string; readonly input: unknown },
    context: ToolContext
  ): Promise<{ readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: ErrorBody }>
  /**
   * The errors of the capabilities of an agent that the rules refuse to the tool's caller.
   * @throws NodeError when there is no such agent
   */
  refusals(agent: string, capabilities: readonly string[]): Promise<ReadonlyMap<string, ErrorBody>>
  readonly compileSchema: CompileSchema
  /** Chooses a tool by the prompt; null: the caller may not have it asked. */
  readonly chooser: ToolChooser | null
}

const INPUT_SCHEMA = {
  type: 'object',
  required: ['serverUrl'],
  additionalProperties: false,
  properties: {
    serverUrl: {
      type: 'string',
      minLength: 1,
      maxLength: 2048,
      description: 'URL or name of an MCP server in the config of this node.'
    },
    tool: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'Which of its tools; may be left out when it has one.'
    },
    arguments: { type: 'object', description: 'Input of the tool.' },
    prompt: {
      type: 'string',
      maxLength: 65_536,
      description:
        'Instead of arguments. It is the input of a tool that takes one text; else a language model of this node, if it has one, ' +
        'chooses the tool and its arguments.'
    }
  }
} as const

/**
 * The tool `mcp_client`: runs a tool of an MCP server that the config of this node names, and of no other; a caller can
 * never have it reach an address of its own. The result is text; structured ones are JSON. @throws ToolExecutionError
 * from its handler.
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
      const server = serverOf(deps, args)
      const candidates = candidatesOf(server, args)
      const { tool, input } =
        directWork(server, candidates, args) ?? (await chosenWork(deps, { server, candidates, args }, context))
      const outcome = await deps.call({ agent: server.agent, capability: tool.capability, input }, context)
      if (outcome.ok) return typeof outcome.result === 'string' ? outcome.result : JSON.stringify(outcome.result)
      throw failedCall(outcome.error)
    }
  }
}

type ToolArgs = Readonly<Record<string, unknown>>
type ToolInfo = ImportedServerInfo['tools'][number]

/** A tool and its input. */
interface Work {
  readonly tool: ToolInfo
  readonly input: unknown
}

function serverOf(deps: ClientToolDeps, args: ToolArgs): ImportedServerInfo {
  const text = String(args['serverUrl'])
  const server = deps.serverOf(text)
  if (server !== null) return server
  const available = deps.servers().map(({ name }) => name)
  throw new ToolExecutionError(
    'SERVER_NOT_CONFIGURED',
    `no MCP server "${shown(text)}" in the config of this node${hintOf(text, available)}`,
    {
      available
    }
  )
}

/** The named tool, or every offered one; at least one. */
function candidatesOf(server: ImportedServerInfo, args: ToolArgs): readonly ToolInfo[] {
  const offered = server.tools.filter((tool) => tool.offered)
  const available = namesOf(offered)
  const name = typeof args['tool'] === 'string' ? args['tool'] : null
  const named = server.tools.find((one) => one.name === name || one.capability === name)
  if (offered.length === 0 && named === undefined)
    throw new ToolExecutionError('TOOL_NOT_FOUND', `${server.name} offers no tool now${whyNone(server)}`, { available })
  if (name === null) return offered
  if (named?.offered === true) return [named]
  const reason =
    named === undefined
      ? `${server.name} has no tool "${shown(name)}"`
      : `${server.name} does not offer "${shown(name)}": ${named.reason}`
  throw new ToolExecutionError('TOOL_NOT_FOUND', `${reason}${hintOf(name, available)}`, { available })
}

function namesOf(tools: readonly ToolInfo[]): readonly string[] {
  return tools.map(({ name }) => name).slice(0, NAMED)
}

function whyNone({ state, lastError }: ImportedServerInfo): string {
  if (state === 'ready') return ''
  return lastError === null ? ` (${state})` : ` (${state}: ${shown(lastError, 1000)})`
}

/**
 * The work that the arguments alone decide; null: a prompt has to be understood.
 * @throws ToolExecutionError without a prompt
 */
function directWork(server: ImportedServerInfo, candidates: readonly ToolInfo[], args: ToolArgs): Work | null {
  const { prompt, arguments: input } = args
  const [tool, ...others] = candidates
  const isAlone = tool !== undefined && others.length === 0
  if (isAlone && input !== undefined) return { tool, input }
  if (isAlone && prompt === undefined) return { tool, input: {} }
  const place = isAlone ? promptPlace(tool.inputSchema) : null
  if (isAlone && place !== null) return { tool, input: { [place]: prompt } }
  const isPrompt = typeof prompt === 'string' && prompt.trim() !== ''
  if (isPrompt && input === undefined) return null
  throw notChosen(server, candidates)
}

interface Choosing {
  readonly server: ImportedServerInfo
  readonly candidates: readonly ToolInfo[]
  readonly args: ToolArgs
}

/**
 * The work that a model chooses for the prompt. Its answer is checked like that of a stranger.
 * @throws ToolExecutionError
 */
async function chosenWork(
  deps: ClientToolDeps,
  { server, candidates: all, args }: Choosing,
  context: ToolContext
): Promise<Work> {
  if (deps.chooser === null) throw notChosen(server, all)
  const candidates = await allowedOf(deps, server, all)
  const names = new PublishedNames()
  const offered = new Map<string, { readonly tool: ToolInfo; readonly inputSchema: ToolSchema }>()
  for (const tool of candidates) {
    const inputSchema = objectRoot(tool.inputSchema)
    if (inputSchema === null) continue
    names.add(tool.name)
    offered.set(tool.name, { tool, inputSchema })
  }
  if (offered.size === 0) throw notChosen(server, candidates)
  const tools = [...offered.values()].map(({ tool: { name, description }, inputSchema }) => ({
    name: names.published(name),
    description: shown(`${name}: ${description}`, MAX_DESCRIPTION),
    inputSchema: publishedSchema(inputSchema)
  }))
  const choice = await deps.chooser.choose({ prompt: String(args['prompt']), tools }, context.abortSignal)
  if (context.abortSignal.aborted) throw new ToolExecutionError('CANCELED', 'canceled while a model chose the tool')
  const { call, reason, retryAfter } = onlyCall(choice)
  if (call === null) throw notChosen(server, candidates, { reason, retryAfter })
  const chosen = offered.get(names.resolve(call.name) ?? '')
  if (chosen === undefined)
    throw notChosen(server, candidates, {
      reason: `the model chose "${shown(call.name, MAX_SUMMARY)}", which is none of them`
    })
  const { tool, inputSchema } = chosen
  const faults = boundedCheck(deps.compileSchema(inputSchema), inputSchema)(call.args)
  const fault = call.fault ?? (faults.length === 0 ? null : faultText(faults))
  if (fault !== null)
    throw notChosen(server, candidates, {
      reason: `the arguments of the model do not fit ${shown(tool.name, MAX_SUMMARY)}: ${shown(fault)}`
    })
  context.log('info', `a model chose the tool ${shown(tool.name)} of ${server.name}`)
  return { tool, input: call.args }
}

/**
 * The tools that the rules let the caller use: a refused one would only cost tokens.
 * @throws ToolExecutionError when they refuse all
 */
async function allowedOf(
  { refusals }: ClientToolDeps,
  { agent }: ImportedServerInfo,
  all: readonly ToolInfo[]
): Promise<readonly ToolInfo[]> {
  const judged = refusals(
    agent,
    all.map(({ capability }) => capability)
  )
  const refused = await judged.catch((error: unknown) => Promise.reject(failedCall(asNodeError(error).toBody())))
  const allowed = all.filter(({ capability }) => !refused.has(capability))
  const [first] = refused.values()
  if (allowed.length === 0 && first !== undefined) throw failedCall(first)
  return allowed
}

function onlyCall(choice: ToolChoice): {
  readonly call: WantedCall | null
  readonly reason: string
  readonly retryAfter?: number
} {
  if (!choice.ok)
    return {
      call: null,
      reason: choice.reason,
      ...(choice.retryAfter === null ? {} : { retryAfter: choice.retryAfter })
    }
  const [call, ...others] = choice.calls
  const unseen =
    choice.left === 0 ? '' : `; it did not see ${choice.left} tools, whose words are farther from those of the prompt`
  if (call === undefined) return { call: null, reason: `the model chose none${unseen}` }
  return others.length === 0
    ? { call, reason: '' }
    : { call: null, reason: `the model chose ${choice.calls.length} at once` }
}

/** The error of a call for which no tool or no input was chosen: it lists the tools and says how to name one. */
function notChosen(
  server: ImportedServerInfo,
  candidates: readonly ToolInfo[],
  { reason = '', retryAfter }: { readonly reason?: string; readonly retryAfter?: number | undefined } = {}
): ToolExecutionError {
  const [first] = candidates
  const what =
    candidates.length === 1 && first !== undefined
      ? `${shown(first.name)} does not take one text: give its input as arguments, instead of prompt`
      : `${server.name} has ${candidates.length} tools: name one as tool, and give its input as arguments`
  const tools = candidates.slice(0, DESCRIBED).map(({ name, description }) => ({
    name: shown(name, MAX_SUMMARY),
    description: shown(description, MAX_SUMMARY)
  }))
  const listed = tools.map(({ name, description }) => (description === '' ? name : `${name} (${description})`))
  const more = candidates.length > DESCRIBED ? ` and ${candidates.length - DESCRIBED} more` : ''
  const why = reason === '' ? '' : `; ${reason}`
  return new ToolExecutionError(
    'TOOL_NOT_CHOSEN',
    `${what}${why}${candidates.length === 1 ? '' : `; there are ${listed.join(', ')}${more}`}`,
    {
      available: namesOf(candidates),
      tools,
      ...(retryAfter === undefined ? {} : { retryAfter })
    }
  )
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
  return new ToolExecutionError(error.code, error.message, {
    error,
    ...(typeof retryAfter === 'number' ? { retryAfter } : {})
  })
}

function hintOf(text: string, available: readonly string[]): string {
  const near = nearest(text, available)
  return near.length > 0 ? `; did you mean ${near.join(' or ')}?` : listText(available)
}

function listText(available: readonly string[]): string {
  return available.length === 0
    ? ''
    : `; there ${available.length === 1 ? 'is' : 'are'} ${available.map((one) => shown(one)).join(', ')}`
}
