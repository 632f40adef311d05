import type { Severity, AgentLogLine } from '../../../domain/task/question.js'
import type { ClientSide } from '../tools/client-ask.js'

/** A JSON Schema whose root is an object. */
export type ToolSchema = Readonly<Record<string, unknown>>

/** A tool as clients see it (spec mcp-runtime, ToolDefinition). */
export interface ToolDefinition {
  /**
   * Canonical, e.g. `text.stats` or `text@gpu-box.stats`; 1 to 256 characters. Published under {@link publishedName}.
   */
  readonly name: string
  readonly description: string
  readonly inputSchema: ToolSchema
  readonly outputSchema?: ToolSchema
  readonly version?: string
  /** Hints of the protocol: `readOnlyHint`, `idempotentHint`, ... */
  readonly annotations?: Readonly<Record<string, unknown>>
  /** The agent that offers it, as `id@node`; absent for tools of the server itself. */
  readonly source?: string
  /** The description without the agent that offers it. */
  readonly purpose?: string
  /** Hash of the whole definition, where this one has only the outline of the input schema. Never shown to a model. */
  readonly outlineOf?: string
  /** Its argument `node`, which names one of the machines that offer the tool. Absent: one machine offers it. */
  readonly nodeArgument?: { readonly schema: ToolSchema; readonly isRequired: boolean }
  /** Labels of the node of that agent. */
  readonly labels?: readonly string[]
}

/**
 * A line of a tool in the log of the node, with its correlation and run ids. A client that asked for its level gets it,
 * too.
 */
export type ToolLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>
) => void

/** The log lines of a call for a client that asked for them. */
export interface ClientLines {
  /** The least level that it wants. */
  readonly least: Severity
  /** Sends a line, if its level is wanted. */
  send(line: AgentLogLine): void
}

/** Context of a handler (spec mcp-runtime, ToolContext). */
export interface ToolContext {
  readonly runId: string
  readonly correlationId: string
  readonly log: ToolLog
  /** Aborts at the deadline, when the client cancels and when the connection ends; a handler should stop then. */
  readonly abortSignal: AbortSignal
  /** Sends progress to the client; does nothing when the client did not ask for it. */
  progress(report: { readonly progress: number; readonly total?: number; readonly message?: string }): void
  /** The client's abilities and its answers so far. To ask it something, return `askClient(...)`. */
  readonly client: ClientSide
  /** Takes log lines of others for the client; null when it wants none. Lines of `log` go there by themselves. */
  readonly lines: ClientLines | null
}

/** Runs a tool. A thrown error becomes a tool error; its result must be JSON, `undefined` counts as null. */
export type ToolHandler = (args: Readonly<Record<string, unknown>>, context: ToolContext) => Promise<unknown>

/** A tool that can be called. */
export interface RegisteredTool {
  readonly definition: ToolDefinition
  readonly handler: ToolHandler
  /** Compiled when it was registered: the faults of arguments, empty when they fit. */
  readonly validator: (args: unknown) => readonly { readonly path: string; readonly message: string }[]
  /**
   * Milliseconds until its caller is answered with TIMEOUT; absent: `tools.defaultTimeoutMs`; null: the handler sees to
   * it.
   */
  readonly timeoutMs?: number | null
  /**
   * false: it runs without a slot, also when all are taken. For tools that only look at this process. Default: true.
   */
  readonly needsSlot?: boolean
}

/** Where tools come from: a registry, the agents of the mesh, the meta tools. */
export interface ToolSource {
  /** In no particular order. */
  list(): readonly ToolDefinition[] | Promise<readonly ToolDefinition[]>
  /** By canonical or published name. */
  get(name: string): RegisteredTool | undefined | Promise<RegisteredTool | undefined>
  /** By another name of it, which no tool of any source has as canonical or published one. */
  alias?(name: string): Promise<RegisteredTool | undefined>
  /** Calls back when `list` changes; returns the function that ends it. */
  onChange?(changed: () => void): () => void
}
