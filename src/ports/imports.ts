import type { AbortSignalLike } from '../kit/clock.js'
import type { AgentDefinition, AgentOutcome, AgentRun, AgentTask } from './agent-runtime.js'
import type { ImportedServerInfo, ToolListChange } from './imported-tools.js'

/** The result of one server or file of an import. `unchanged`: an earlier import wrote the same. */
export type ImportStatus = 'imported' | 'unchanged' | 'skipped' | 'refused'

/** Events of a connection. */
export interface ImportEvents {
  /** The other side says that its list changed. */
  onChanged(): void
  /** The other side forgot the session and did nothing. */
  onLost(reason: string): void
  /** It became unusable without a call of `close`. */
  onClosed(reason: string): void
}

/** An open connection to something imported. */
export interface ImportConnection<T = object> {
  /** The current offer of the other side, read and bounded. Rejects with the reason. */
  list(signal: AbortSignalLike): Promise<T>
  /** Ends it. Idempotent. */
  close(): Promise<void>
}

/** The link to something imported, as its calls use it. */
export interface ImportCalls<C = ImportConnection> {
  /** The connection when the other side is ready, after `waitMs` at most; else the reason why there is none. */
  ready(waitMs: number, signal: AbortSignalLike): Promise<C | string>
  /** Notes that a call is under way until the returned function is called. */
  calling(): () => void
  /** Asks for the list soon, to see whether the other side is alive. */
  doubt(): void
}

/** A tool of an MCP server, or a skill of an A2A agent. */
export interface ImportItem {
  readonly name: string
  readonly description: string
  /** As lists show it. */
  readonly inputSchema: unknown
}

/** The agent that stands for something imported. */
export interface ImportOffer {
  readonly definition: AgentDefinition
  /** Names of items that did not fit into its card. */
  readonly leftOut: readonly string[]
}

/** Words for an import in messages, settings and error codes. */
export interface ImportWords {
  readonly what: 'MCP server' | 'A2A agent'
  readonly short: 'server' | 'agent'
  /** The pinned subject. */
  readonly thing: 'tool list' | 'card'
  /** Name of the setting that chooses items. */
  readonly items: 'tools' | 'skills'
  readonly section: 'mcp.servers' | 'a2a.agents'
  /** Documents of the home begin so: `mcp-<name>`. */
  readonly document: 'mcp' | 'a2a'
  /** The step of a person when the accepted one cannot be read. */
  readonly advice: string
  readonly notYet: string
  readonly failedCode: string
  readonly changedCode: string
}

/**
 * One entry of the config that imports agents: the part that its protocol determines. Pins, changes, retries and status
 * are the same for all. `T`: the pinned value; `O`: its agent; `C`: a connection to it.
 */
export interface ImportAdapter<
  T = object,
  O extends ImportOffer = ImportOffer,
  C extends ImportConnection<T> = ImportConnection<T>
> {
  readonly words: ImportWords
  /**
   * `name`: in the config, and of its agent; `pin`: sha256 of the only thing that may be in force, null for the one
   * seen first.
   */
  readonly spec: { readonly name: string; readonly pin: string | null }
  readonly transport: ImportedServerInfo['transport']
  /** URL by which it may be named too; null: none. */
  readonly address: string | null
  /** How long a list may take, in milliseconds. */
  readonly listTimeoutMs: number
  /** Opens a connection; rejects with the reason. An abort ends the opening. */
  open(events: ImportEvents, signal: AbortSignalLike): Promise<C>
  /** Does the config offer the item of this name? */
  isAllowed(name: string): boolean
  /** sha256 that pins are compared with. */
  hash(value: T): string
  /** Nothing to trust at first sight. */
  isNothing(value: T): boolean
  /**
   * The accepted value with members outside its hash that it lacks, from the one seen now of the same hash; null: it
   * lacks none.
   */
  completed?(accepted: T, seen: T): T | null
  /** As the home keeps it. */
  encode(value: T): Readonly<Record<string, unknown>>
  /** Decodes the stored form within the bounds of untrusted input; null: it cannot be used. */
  decode(stored: Readonly<Record<string, unknown>>): T | null | Promise<T | null>
  /** How `after` differs from `before`; null: it does not. */
  change(before: T | null, after: T): ToolListChange | null
  /**
   * A change for people, as the end of a sentence. `listed`: sha256 to pin, where the config pins another; else null.
   */
  changeText(change: ToolListChange, listed: string | null): string
  items(value: T): readonly ImportItem[]
  /** Items that cannot be used, each with the reason. */
  faults(value: T): readonly { readonly name: string; readonly reason: string }[]
  /** Capability of the item of this name. */
  capability(name: string): string
  /** Its agent with the items of these names. */
  offer(value: T, names: ReadonlySet<string>): O
  /** Its agent while nothing is pinned, by the value seen last; null: none. */
  unpinned?(seen: T | null): O | null
  /** Runs one capability. Never rejects. `offer`: null while nothing is in force. */
  call(
    task: AgentTask,
    run: AgentRun,
    now: { readonly offer: O | null; readonly link: ImportCalls<C> }
  ): Promise<AgentOutcome>
}
