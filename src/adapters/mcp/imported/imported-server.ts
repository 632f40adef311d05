import { allowedNames } from '../../../kit/glob.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { boundedCheck } from '../../../kit/schema/cost.js'
import { faultText } from '../../../kit/schema/text.js'
import type { Check, CompileSchema } from '../../../kit/sign.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { ToolListChange } from '../../../ports/imported-tools.js'
import type { ImportAdapter, ImportCalls, ImportEvents, ImportItem, ImportWords } from '../../../ports/imports.js'
import type { Clock } from '../../../kit/clock.js'
import { contextId } from './context-capability.js'
import { ImportedContext } from './imported-context.js'
import { instructionsOf } from './context-index.js'
import { capabilityId, cardSchema, type ImportedCard, type ImportedCardSpec, importedCard } from './imported-card.js'
import type { Connection, OpenConnection, ToolRun } from './imported-connection.js'
import { failedCall, ImportedFault } from './imported-fault.js'
import { changeOf, type ImportedList, type ImportedTool, listHash, readList } from './imported-list.js'
import { outcomeOf } from './imported-result.js'
import { safeSchema } from './imported-schema.js'
import { definitionsId, givenDefinitions } from './tool-definition.js'

/** How long a call waits for a server that comes up, in milliseconds. */
export const READY_WAIT_MS = 10_000
/** How long a server may take to list its tools, in milliseconds. */
export const LIST_TIMEOUT_MS = 10_000

/** Its words in messages. */
export const WORDS: ImportWords = {
  what: 'MCP server',
  short: 'server',
  thing: 'tool list',
  items: 'tools',
  section: 'mcp.servers',
  document: 'mcp',
  advice: 'look at its tools, then accept them',
  notYet: 'has not come up yet',
  failedCode: 'TOOL_SERVER_FAILED',
  changedCode: 'TOOLS_CHANGED'
}

/** One server of the config. */
export interface ImportedServerSpec extends ImportedCardSpec {
  readonly transport: 'stdio' | 'http'
  /** As the config has it; null for a program. */
  readonly url: string | null
  /** Globs of the tools that are offered; null: all. */
  readonly tools: readonly string[] | null
  /** sha256 of the only list that is offered. */
  readonly pin: string | null
}

/** Dependencies of {@link ImportedServer}. */
export interface ImportedServerDeps {
  readonly spec: ImportedServerSpec
  readonly open: OpenConnection
  readonly compileSchema: CompileSchema
  readonly clock: Clock
}

type ServerConnection = Connection<ImportedList>

/** How one call reaches the server and is followed. */
interface ServerCall {
  readonly run: ToolRun
  readonly link: ImportCalls<ServerConnection>
}

/** An MCP server as an import: its tool list is pinned, and each tool is a capability. */
export class ImportedServer implements ImportAdapter<ImportedList, ImportedCard, ServerConnection> {
  readonly spec: ImportedServerSpec
  readonly words = WORDS
  readonly listTimeoutMs = LIST_TIMEOUT_MS
  readonly transport: ImportedServerSpec['transport']
  readonly address: string | null
  readonly isAllowed: (name: string) => boolean
  readonly #deps: ImportedServerDeps
  readonly #context: ImportedContext

  constructor(deps: ImportedServerDeps) {
    this.spec = deps.spec
    this.transport = deps.spec.transport
    this.address = deps.spec.url
    this.#deps = deps
    this.#context = new ImportedContext({ ...deps.spec, clock: deps.clock })
    this.isAllowed = allowedNames(deps.spec.tools)
  }

  async open(events: ImportEvents, signal: AbortSignal): Promise<ServerConnection> {
    const connection = await this.#deps.open(events, signal)
    return {
      context: connection.context,
      list: (stop: AbortSignal) => this.#list(connection, stop),
      call: (tool, input, run) => connection.call(tool, input, run),
      close: () => connection.close()
    }
  }

  hash({ tools }: ImportedList): string {
    return listHash(this.#allowed(tools))
  }

  isNothing({ tools }: ImportedList): boolean {
    return tools.length === 0
  }

  /** Instructions are in force as they were seen with the list that is. */
  completed(accepted: ImportedList, { instructions }: ImportedList): ImportedList | null {
    return accepted.instructions === undefined && instructions !== undefined ? { ...accepted, instructions } : null
  }

  encode({ tools, instructions }: ImportedList): Readonly<Record<string, unknown>> {
    return { hash: listHash(tools), tools, ...(instructions === undefined ? {} : { instructions }) }
  }

  async decode({ hash, tools, instructions }: Readonly<Record<string, unknown>>): Promise<ImportedList | null> {
    if (!Array.isArray(tools)) return null
    const given = tools.map((tool: unknown) =>
      isRecord(tool)
        ? {
            ...tool,
            outputSchema: tool['outputSchema'] ?? undefined,
            annotations: { readOnlyHint: tool['claimsReadOnly'] === true }
          }
        : tool
    )
    const list = await readList(given, this.#deps.compileSchema)
    if (list.faults.length > 0 || listHash(list.tools) !== hash) return null
    return typeof instructions === 'string' ? { ...list, instructions: instructionsOf(instructions) } : list
  }

  change(before: ImportedList | null, after: ImportedList): ToolListChange | null {
    return changeOf(this.#allowed(before?.tools ?? []), this.#allowed(after.tools))
  }

  changeText(change: ToolListChange, listed: string | null): string {
    const count = countText(change)
    return listed === null
      ? `lists other tools than those accepted (${count}); they wait for you`
      : `lists other tools than those pinned in the config (${count}; sha256 ${listed})`
  }

  items({ tools }: ImportedList): readonly ImportItem[] {
    return tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      // Made when it is read: only lists show it.
      get inputSchema() {
        return cardSchema(inputSchema)
      }
    }))
  }

  faults({ faults }: ImportedList): ImportedList['faults'] {
    return faults
  }

  capability(name: string): string {
    return capabilityId(this.spec.name, name)
  }

  offer({ tools, instructions = '' }: ImportedList, names: ReadonlySet<string>): ImportedCard {
    const offered = tools.filter(({ name }) => names.has(name))
    return importedCard(this.spec, offered, { instructions, context: this.#context.offered(instructions) })
  }

  /** Resources and prompts are not pinned: a server without tools offers them. */
  unpinned(seen: ImportedList | null): ImportedCard | null {
    const context = seen?.tools.length === 0 ? this.#context.offered(seen.instructions ?? '') : null
    return context === null ? null : importedCard(this.spec, [], { instructions: context.index.instructions, context })
  }

  /** Runs one tool. A call that may have run is repeated only when the config allows it, and then once. */
  async call(
    task: Pick<AgentTask, 'capability' | 'input' | 'peer'>,
    run: ToolRun,
    { offer, link }: { readonly offer: ImportedCard | null; readonly link: ImportCalls<ServerConnection> }
  ): Promise<AgentOutcome> {
    if (offer !== null && task.capability === definitionsId(this.spec.name))
      return { ok: true, result: givenDefinitions(task.input, offer.definitions) }
    if (offer?.context !== undefined && offer.context !== null && task.capability === contextId(this.spec.name))
      return await this.#context.call(task, { link, ...run }, offer.context.index)
    const tool = offer?.tools.get(task.capability)
    if (tool === undefined)
      return { ok: false, code: 'TASK_FAILED', message: `the MCP server ${this.spec.name} offers no such tool now` }
    const input = isRecord(task.input) ? task.input : {}
    const fault = this.#inputFault(tool, input)
    if (fault !== null)
      return { ok: false, code: 'TASK_FAILED', message: `the input does not fit ${tool.name}: ${fault}` }
    for (let tries = 1; ; tries++) {
      const outcome = await this.#try(tool, input, { run, link })
      if (!(outcome instanceof ImportedFault)) return outcome
      const mayRepeat =
        outcome.kind === 'session' || (outcome.kind === 'unknown' && this.spec.idempotent.includes(tool.name))
      if (!mayRepeat || tries > 1 || run.signal.aborted) return failedCall(this.spec.name, outcome)
    }
  }

  async #list(connection: Connection, stop: AbortSignal): Promise<ImportedList> {
    const [tools, index] = await Promise.all([connection.list(stop), connection.context.index(stop)])
    this.#context.take(index)
    return { ...(await readList(tools, this.#deps.compileSchema)), instructions: index.instructions }
  }

  #allowed(tools: readonly ImportedTool[]): readonly ImportedTool[] {
    return tools.filter(({ name }) => this.isAllowed(name))
  }

  async #try(
    tool: ImportedTool,
    input: Readonly<Record<string, unknown>>,
    { run, link }: ServerCall
  ): Promise<AgentOutcome | ImportedFault> {
    const connection = await link.ready(READY_WAIT_MS, run.signal)
    if (typeof connection === 'string') return new ImportedFault('unsent', connection)
    const end = link.calling()
    try {
      return this.#judged(tool, outcomeOf(await connection.call(tool, input, run), this.spec.maxOutputBytes))
    } catch (error) {
      const fault = error instanceof ImportedFault ? error : new ImportedFault('unknown', messageOf(error))
      // After an abandoned call the server may be dead; it must not take the next one.
      if (run.signal.aborted || fault.kind === 'unknown') link.doubt()
      return fault
    } finally {
      end()
    }
  }

  /** The card may hold only the outline of a schema: here it is the whole one. */
  #inputFault(tool: ImportedTool, input: unknown): string | null {
    const faults = this.#check(tool.inputSchema)(input)
    return faults.length === 0 ? null : faultText(faults)
  }

  #check(schema: ImportedTool['inputSchema']): Check {
    const safe = safeSchema(schema)
    return boundedCheck(this.#deps.compileSchema(safe), safe)
  }

  #judged({ name, outputSchema }: ImportedTool, outcome: AgentOutcome): AgentOutcome {
    if (!outcome.ok || outputSchema === null) return outcome
    const faults = this.#check(outputSchema)(outcome.result)
    if (faults.length === 0) return outcome
    return {
      ok: false,
      code: 'INVALID_OUTPUT',
      message: `the result does not fit the schema that ${name} promises: ${faultText(faults)}`
    }
  }
}

function countText({ added, removed, changed }: ToolListChange): string {
  return [
    [added.length, 'new'],
    [changed.length, 'changed'],
    [removed.length, 'gone']
  ]
    .filter(([count]) => count !== 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ')
}
