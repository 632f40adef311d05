import type { Problem } from './node-api.js'

/** One tool of an imported MCP server. */
export interface ImportedToolInfo {
  /** As the server calls it. */
  readonly name: string
  /** Its capability on the agent of the server. */
  readonly capability: string
  readonly description: string
  /** JSON Schema of its input, of a large one the outline; `{}` for a tool that cannot be used. */
  readonly inputSchema: unknown
  /** May it be called now? */
  readonly offered: boolean
  /** Why it is not offered; null when it is. */
  readonly reason: string | null
}

/** A tool whose definition differs from the accepted one. */
export interface ToolChange {
  readonly name: string
  /** Changed parts: `description`, `inputSchema` ... */
  readonly parts: readonly string[]
  /** As the server describes it now. */
  readonly description: string
}

/** How the tool list of a server differs from the one that was accepted. */
export interface ToolListChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly ToolChange[]
}

/** `starting`: the program or the connection comes up; `failed`: it did not, and is tried again. */
export type ImportedServerState = 'idle' | 'starting' | 'ready' | 'failed' | 'closed'

/** One imported MCP server in its present state. */
export interface ImportedServerInfo {
  readonly name: string
  /** Id of the agent that offers its tools. */
  readonly agent: string
  /** `a2a`: no MCP server, but an A2A agent, whose tools are its skills. */
  readonly transport: 'stdio' | 'http' | 'a2a'
  /** Of the card of an A2A agent, as the config has it; null for a server. */
  readonly url: string | null
  readonly state: ImportedServerState
  readonly tools: readonly ImportedToolInfo[]
  /** sha256 of the tool list in force; null while there is none. */
  readonly pinned: string | null
  readonly pinnedBy: 'config' | 'first-sight' | 'accepted' | null
  /** sha256 of the list that the server gives now, where it is another one; null: the same, or unknown. */
  readonly listed: string | null
  readonly change: ToolListChange | null
  readonly lastError: string | null
  /** ISO time of the last list that the server gave. */
  readonly lastListedAt: string | null
  /** Starts after the first. */
  readonly restarts: number
}

/** The MCP servers of the config. */
export interface ImportedTools {
  list(): readonly ImportedServerInfo[]
  /** The server of that name or exact address; null: none. */
  named(text: string): ImportedServerInfo | null
  /**
   * Fetches the tools of a server now (null: of every server) and waits for the outcome. `accept`: sha256 of a list
   * that a person reviewed, in force from then on; null: none.
   * @throws NodeError TOOL_SERVER_NOT_FOUND; CONFLICT when the server now gives another list, or the config pins
   * another.
   */
  refresh(server: string | null, accept: string | null): Promise<readonly ImportedServerInfo[]>
  /** Current faults, for `status`. */
  problems(): readonly Problem[]
}

/** Calls that find A2A agents elsewhere. */
export interface RemoteCalls {
  /**
   * The agent of this node and its capability that reach the A2A agent of a card. `isWrapped`: its input is
   * `{card, skill?, input, justification?}`; else it is the input itself.
   */
  'a2a.find': {
    params: { readonly card: string; readonly skill?: string }
    result: { readonly agent: string; readonly capability: string; readonly isWrapped: boolean }
  }
}
