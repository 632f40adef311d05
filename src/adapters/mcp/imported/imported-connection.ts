import type { Client, Transport } from '@modelcontextprotocol/client'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { TokenBucket } from '../../../kit/rate.js'
import { shown } from '../../../kit/text.js'
import type { RunCaller } from '../../../ports/agent-runtime.js'
import type { ProgramSpec, ProgramStarter } from '../../../ports/programs.js'
import type { ImportConnection, ImportEvents } from '../../../ports/imports.js'
import { CALLER_CAPABILITIES, callerMeta, CallerRequests, inRounds } from './caller-requests.js'
import { ContextConnection } from './context-connection.js'
import { boundAnswers } from './imported-answers.js'
import { type FaultScene, ImportedFault, faultOf } from './imported-fault.js'
import { importedFetch, type ListTags } from './imported-http.js'
import type { ImportedTool } from './imported-list.js'
import { readPages, toolPage } from './imported-pages.js'
import { StdioTransport, UNASKED_RATE } from './imported-stdio.js'

/** How long a server may take to begin, in milliseconds. */
export const CONNECT_TIMEOUT_MS = 20_000
/** Milliseconds to wait for the answer to the probe for the newer protocol; a silent program speaks the older one. */
const PROBE_TIMEOUT_MS = 3000
/** Milliseconds to wait until the end of a session is sent. */
const GOODBYE_MS = 1000
/** Shortest wait before a stream that ended is opened again, in milliseconds. */
const MIN_STREAM_RETRY_MS = 1000
/** Longest, in milliseconds. */
const MAX_STREAM_RETRY_MS = 30_000
/** Longest time of the library's own timers; the node has its own deadlines. */
const NEVER_MS = 2_147_483_647
/** Changes of lists are reported as they come; the node reads them itself. */
const AT_ONCE = { autoRefresh: false, debounceMs: 0 } as const

/** Where a server is. */
export type ImportedAddress =
  | { readonly kind: 'stdio'; readonly program: ProgramSpec }
  | { readonly kind: 'http'; readonly url: string; readonly headers: Readonly<Record<string, string>> }

/** An open connection to a server, with its tools as the server writes them. Failures are {@link ImportedFault}. */
export interface Connection<T = readonly unknown[]> extends ImportConnection<T> {
  /** Its resources and prompts. */
  readonly context: ContextConnection
  /** Asks once, and never again by itself. */
  call(tool: ImportedTool, input: Readonly<Record<string, unknown>>, run: ToolRun): Promise<unknown>
}

/** How one call is followed. */
export interface ToolRun {
  readonly signal: AbortSignal
  progress(data: unknown): void
  readonly caller?: RunCaller | undefined
}

/** Opens a connection; rejects with ImportedFault, then nothing of it is left. An abort ends the opening. */
export type OpenConnection = (events: ImportEvents, signal: AbortSignal) => Promise<Connection>

/** Dependencies of {@link connectionsTo}. */
export interface ConnectionDeps {
  /** Reads the secrets too. @throws Error when a variable is not set */
  readonly address: () => ImportedAddress
  readonly programs: ProgramStarter
  readonly clock: Clock
  readonly version: string
  readonly maxOutputBytes: number
  readonly tags: ListTags
  readonly fetch: typeof fetch
  /** The server breaks its protocol, but can be used; a sentence for the log. */
  readonly onNote: (note: string) => void
  /** A log line of the server belongs to no single call, and is dropped. */
  readonly onUnclaimedLine?: () => void
}

/** Makes a function that opens connections to one server. The client library is loaded at the first use. */
export function connectionsTo(deps: ConnectionDeps): OpenConnection {
  /** Protocol of the last connection: an older server is not probed twice, since some end on the probe. */
  const memory: { isLegacy: boolean } = { isLegacy: false }
  return async (events, signal) => {
    const library = await import('@modelcontextprotocol/client')
    const opening = new ConnectionOpening(deps, events, library)
    const client = new library.Client(
      { name: 'a2a-node', version: deps.version },
      {
        capabilities: CALLER_CAPABILITIES,
        inputRequired: { autoFulfill: false },
        versionNegotiation: memory.isLegacy
          ? { mode: 'legacy' }
          : { mode: 'auto', probe: { timeoutMs: PROBE_TIMEOUT_MS } },
        listChanged: {
          tools: { ...AT_ONCE, onChanged: () => events.onChanged() },
          resources: { ...AT_ONCE, onChanged: () => opening.context.changed() },
          prompts: { ...AT_ONCE, onChanged: () => opening.context.changed() }
        }
      }
    )
    opening.requests.serve(client)
    const abort = (): void => void opening.transport.close().catch(() => {})
    signal.addEventListener('abort', abort)
    try {
      if (signal.aborted) throw new ImportedFault('unsent', 'given up')
      const connection = await opening.connect(client)
      memory.isLegacy = client.getProtocolEra() === 'legacy'
      return connection
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === 'ERA_NEGOTIATION_FAILED') memory.isLegacy = !memory.isLegacy
      const reason = opening.reason
      await opening.transport.close().catch(() => {})
      throw reason === null ? faultOf(error, opening.scene()) : new ImportedFault('unsent', reason)
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }
}

type McpLibrary = typeof import('@modelcontextprotocol/client')

/** One connection from its beginning. */
class ConnectionOpening implements Connection {
  readonly transport: Transport
  readonly requests: CallerRequests
  readonly #deps: ConnectionDeps
  #context: ContextConnection | null = null
  readonly #events: ImportEvents
  readonly #stdio: StdioTransport | null = null
  readonly #goodbye: () => Promise<void> = () => Promise.resolve()
  #client: Client | null = null
  #isClosed = false
  #cutReason: string | null = null
  /** The last note on the tool list: each is logged once. */
  #note: string | null = null

  constructor(deps: ConnectionDeps, events: ImportEvents, library: McpLibrary) {
    this.#deps = deps
    this.requests = new CallerRequests(deps.onUnclaimedLine)
    this.#events = events
    const address = deps.address()
    if (address.kind === 'stdio') {
      this.#stdio = new StdioTransport({ ...deps, program: address.program })
      this.transport = this.#stdio
      boundAnswers(this.transport, (reason) => this.#stdio?.cut(reason))
      this.requests.watch(this.transport)
      return
    }
    const http = new library.StreamableHTTPClientTransport(new URL(address.url), {
      fetch: this.#fetch(),
      requestInit: { headers: { ...address.headers } },
      reconnectionOptions: {
        initialReconnectionDelay: MIN_STREAM_RETRY_MS,
        maxReconnectionDelay: MAX_STREAM_RETRY_MS,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 5
      },
      // The server may name a delay of its own (`retry:`), none at all too.
      reconnectionScheduler: (reconnect, delayMs) => {
        const timer = deps.clock.after(Math.min(MAX_STREAM_RETRY_MS, Math.max(MIN_STREAM_RETRY_MS, delayMs)), reconnect)
        return () => deps.clock.clear(timer)
      }
    })
    this.transport = http
    boundAnswers(http, (reason) => this.#cut(reason))
    this.requests.watch(http)
    this.#goodbye = () => http.terminateSession()
  }

  /** Why it ended by itself; null while it has not. */
  get reason(): string | null {
    return this.#cutReason ?? this.#stdio?.reason ?? null
  }

  scene(): FaultScene {
    return { hasSession: this.transport.sessionId !== undefined }
  }

  /** There is none before {@link connect}. @throws ImportedFault */
  get context(): ContextConnection {
    if (this.#context === null) throw new ImportedFault('unsent', 'the connection is not open')
    return this.#context
  }

  async connect(client: Client): Promise<Connection> {
    this.#client = client
    const { clock, onNote } = this.#deps
    const ask = <T>(answer: Promise<T>): Promise<T> => this.#ask(answer)
    const read = <T>(run: () => Promise<T>): Promise<T> => this.requests.beside(() => this.#ask(run()))
    this.#context = new ContextConnection({
      client,
      clock,
      ask,
      read,
      onNote,
      onChanged: () => this.#events.onChanged()
    })
    // Lines that are no messages and broken streams are reported here; the relevant ones end the connection or a call.
    Object.assign(client, { onerror: () => {} })
    await client.connect(this.transport, { timeout: CONNECT_TIMEOUT_MS })
    if (this.reason !== null) throw new ImportedFault('unsent', this.reason)
    Object.assign(client, { onclose: () => this.#closed() })
    return this
  }

  async list(signal: AbortSignal): Promise<readonly unknown[]> {
    const client = this.#open()
    if (client.getServerCapabilities()?.tools === undefined) return []
    const { items, note } = await readPages(async (cursor) => {
      const params = cursor === null ? {} : { cursor }
      const page = await this.#ask(
        client.request({ method: 'tools/list', params }, toolPage, { signal, timeout: NEVER_MS })
      )
      return { items: page.tools, nextCursor: page.nextCursor }
    })
    if (note !== null) this.#noted(note)
    return items
  }

  async call(tool: ImportedTool, input: Readonly<Record<string, unknown>>, run: ToolRun): Promise<unknown> {
    const client = this.#open()
    const isModern = client.getProtocolEra() === 'modern'
    if (!isModern) await this.requests.wantLog(client, run.caller?.logLevel ?? null)
    return await inRounds(run, async (answers) => {
      const args = { ...input }
      const params = { ...answers, arguments: args, ...(isModern ? { _meta: callerMeta(run.caller) } : {}) }
      return await this.requests.during(args, run, () => this.#callTool(tool, params, run))
    })
  }

  async #callTool(
    { name, inputSchema }: ImportedTool,
    params: Readonly<Record<string, unknown>>,
    { signal, progress }: ToolRun
  ): Promise<unknown> {
    return await this.#ask(
      this.#open().callTool(
        { name, ...params },
        {
          signal,
          timeout: NEVER_MS,
          allowInputRequired: true,
          // Without the output schema: the node checks results, by a check that no server can make hang.
          toolDefinition: { name, inputSchema: { ...inputSchema, type: 'object' } },
          onprogress: ({ progress: done, total, message }) =>
            progress({
              progress: done,
              ...(total === undefined ? {} : { total }),
              ...(message === undefined ? {} : { message: shown(message) })
            })
        }
      )
    )
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const { clock } = this.#deps
    if (this.transport.sessionId !== undefined) {
      const late = new Promise<void>((resolve) => void clock.after(GOODBYE_MS, resolve))
      await Promise.race([this.#goodbye().catch(() => {}), late])
    }
    await this.#client?.close().catch(() => {})
    await this.transport.close().catch(() => {})
  }

  #noted(note: string): void {
    if (note !== this.#note) this.#deps.onNote(`${note}; the list was ended there`)
    this.#note = note
  }

  #open(): Client {
    if (this.#client === null || this.#isClosed)
      throw new ImportedFault('unsent', this.reason ?? 'the connection is closed')
    return this.#client
  }

  async #ask<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      const fault = faultOf(error, this.scene())
      if (fault.kind === 'session') this.#events.onLost(fault.message)
      if (fault.kind === 'unsent') this.#events.onClosed(fault.message)
      if (fault.kind !== 'unknown' || this.reason === null) throw fault
      throw new ImportedFault('unknown', this.reason)
    }
  }

  #fetch(): ReturnType<typeof importedFetch> {
    const { fetch: send, clock, maxOutputBytes, tags } = this.#deps
    const events = new TokenBucket(UNASKED_RATE, clock)
    return importedFetch({
      fetch: send,
      maxOutputBytes,
      now: () => clock.now(),
      tags,
      takeEvent: () => events.take(),
      cut: (reason) => this.#cut(reason)
    })
  }

  #cut(reason: string): void {
    this.#cutReason ??= reason
    // Not from within the stream that caused it.
    this.#deps.clock.after(0, () => void this.transport.close().catch((error: unknown) => messageOf(error)))
  }

  #closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events.onClosed(this.reason ?? 'the connection ended')
  }
}
