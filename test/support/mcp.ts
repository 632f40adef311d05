import fc from 'fast-check'
import { jsonFault } from '../../src/kit/json.js'
import { once } from 'node:events'
import { duplexPair, type Duplex } from 'node:stream'
import {
  Client,
  ReadBuffer,
  serializeMessage,
  type ClientCapabilities,
  type JSONRPCMessage,
  type Transport
} from '@modelcontextprotocol/client'
import type { Assert } from 'brittle'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import { RequestStates } from '../../src/adapters/mcp/http/request-states.js'
import { ResourceManager } from '../../src/adapters/mcp/resources/resource-limits.js'
import { serveMcp, type ServedConnection, type ServeDeps } from '../../src/adapters/mcp/server/serve.js'
import type { ToolHandler, ToolSource } from '../../src/adapters/mcp/server/tool.js'
import { ToolCatalog } from '../../src/adapters/mcp/server/tool-catalog.js'
import type { InvocationRecord } from '../../src/ports/tool-calls.js'
import type { OnCompleted } from '../../src/adapters/mcp/server/tool-record.js'
import { ToolRegistry } from '../../src/adapters/mcp/server/tool-registry.js'
import { ManualClock } from './manual-clock.js'

/** A line that a server wrote. */
export type Answer = Record<string, unknown> & {
  readonly id?: unknown
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> }
}

/** JSON within the limits of every message: no key is one that objects inherit. */
export function arbJson(constraints: fc.JsonSharedConstraints = {}): fc.Arbitrary<unknown> {
  return fc.jsonValue(constraints).filter((value) => jsonFault(value) === null)
}

/** A schema for tools that take anything. */
export const ANYTHING = { type: 'object' } as const

/** Compiling is slow, and a compiler keeps nothing but what it compiled. */
const compile = createSchemaCompiler()

/** Options of {@link McpScene}. */
type SceneOptions = Partial<ServeDeps> & {
  readonly sources?: readonly ToolSource[]
  readonly maxConcurrentExecutions?: number
  readonly maxWaitingExecutions?: number
}

/** One process with an MCP server: a clock that stands still, ids that count, and all that it reported. */
export class McpScene {
  readonly clock = new ManualClock()
  readonly registry = new ToolRegistry(compile)
  readonly records: InvocationRecord[] = []
  /** Called with each record as well. */
  onRecord: OnCompleted = () => {}
  readonly logs: {
    readonly level: string
    readonly message: string
    readonly fields: Readonly<Record<string, unknown>>
  }[] = []
  readonly meter = {
    memory: 1,
    delay: 0,
    memoryBytes: (): number => this.meter.memory,
    loopDelayMs: (): number => this.meter.delay
  }
  readonly limits: ResourceManager
  readonly parts: ServeDeps
  #counts = new Map<string, number>()
  #heard: (() => void)[] = []

  constructor({ sources = [], maxConcurrentExecutions = 10, maxWaitingExecutions = 256, ...given }: SceneOptions = {}) {
    const maxPayloadBytes = given.maxPayloadBytes ?? 1_048_576
    this.limits = new ResourceManager({ maxConcurrentExecutions, maxWaitingExecutions, maxPayloadBytes }, this.meter)
    this.parts = {
      name: 'scene',
      version: '1.2.3',
      clock: this.clock,
      ids: {
        runId: () => this.#next('run'),
        correlationId: () => this.#next('correlation'),
        connectionCorrelationId: () => this.#next('connection')
      },
      log: (level, message, fields = {}) => void this.logs.push({ level, message, fields }),
      tools: new ToolCatalog([this.registry, ...sources]),
      limits: this.limits,
      states: new RequestStates({ key: new Uint8Array(32), clock: this.clock, caller: 'test' }),
      defaultTimeoutMs: 30_000,
      eras: 'both',
      maxPayloadBytes,
      onCompleted: (record, resultChars) => {
        this.records.push(record)
        this.onRecord(record, resultChars)
        for (const heard of this.#heard.splice(0)) heard()
      },
      ...given
    }
  }

  /** Registers a tool that takes anything. */
  tool(name: string, handler: ToolHandler): void {
    this.registry.register({ name, description: name, inputSchema: ANYTHING }, handler)
  }

  /** Resolves once so many calls are on record. */
  async recorded(count: number): Promise<readonly InvocationRecord[]> {
    while (this.records.length < count) await new Promise<void>((resolve) => this.#heard.push(resolve))
    return this.records
  }

  /** A connection whose other side writes lines by hand. */
  connect(t: Assert): RawClient {
    const [ours, theirs] = duplexPair()
    const served = serveMcp({ input: theirs, output: theirs }, this.parts)
    const client = new RawClient(ours, served)
    t.teardown(() => client.close())
    return client
  }

  /**
   * A connection whose other side is the official client. `mode`: the eras it tries. `capabilities`: what it takes of
   * the server.
   */
  async client(t: Assert, mode: 'auto' | 'legacy' = 'legacy', capabilities: ClientCapabilities = {}): Promise<Client> {
    const [ours, theirs] = duplexPair()
    serveMcp({ input: theirs, output: theirs }, this.parts)
    const client = new Client({ name: 'official', version: '0' }, { versionNegotiation: { mode }, capabilities })
    await client.connect(new StreamTransport(ours))
    t.teardown(() => client.close())
    return client
  }

  #next(kind: string): string {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    return `${kind}-${count}`
  }
}

/** Writes lines by hand and reads those that come back. */
export class RawClient {
  readonly stream: Duplex
  readonly served: ServedConnection
  readonly answers: Answer[] = []
  /** Notifications and questions that came. */
  readonly told: Answer[] = []
  #text = ''
  #heard: (() => void)[] = []

  constructor(stream: Duplex, served: ServedConnection) {
    this.stream = stream
    this.served = served
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      const lines = `${this.#text}${text}`.split('\n')
      this.#text = lines.pop() as string
      for (const line of lines) {
        const message = JSON.parse(line) as Answer
        const isAnswer = !('method' in message)
        ;(isAnswer ? this.answers : this.told).push(message)
      }
      for (const heard of this.#heard.splice(0)) heard()
    })
  }

  /** Writes each message as a line; texts and bytes as they are, texts with a newline. */
  write(...messages: readonly unknown[]): void {
    for (const one of messages) {
      this.stream.write(one instanceof Uint8Array ? one : `${typeof one === 'string' ? one : JSON.stringify(one)}\n`)
    }
  }

  /** Resolves with the first answers that came back, once there are so many. */
  async heard(count: number): Promise<readonly Answer[]> {
    while (this.answers.length < count) await new Promise<void>((resolve) => this.#heard.push(resolve))
    return this.answers
  }

  /** Resolves with the notifications and questions that came, once there are so many. */
  async notified(count: number): Promise<readonly Answer[]> {
    while (this.told.length < count) await new Promise<void>((resolve) => this.#heard.push(resolve))
    return this.told
  }

  /** Writes a message and resolves with the next answer that comes back. */
  async ask(message: unknown): Promise<Answer> {
    const next = this.answers.length + 1
    this.write(message)
    return (await this.heard(next))[next - 1]
  }

  /** The handshake of the old era; its answer is not counted. */
  async open(capabilities: ClientCapabilities = {}): Promise<Answer> {
    const answer = await this.ask(initialize('init', capabilities))
    this.answers.pop()
    this.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return answer
  }

  async close(): Promise<void> {
    await this.served.close()
    this.stream.destroy()
    if (!this.stream.closed) await once(this.stream, 'close')
  }
}

/** A request. */
export function request(id: unknown, method: string, params?: unknown): Record<string, unknown> {
  return { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }
}

/** A `tools/call`. */
export function call(id: unknown, name: unknown, args?: unknown, meta?: unknown): Record<string, unknown> {
  return request(id, 'tools/call', {
    name,
    ...(args === undefined ? {} : { arguments: args }),
    ...(meta === undefined ? {} : { _meta: meta })
  })
}

/** The first request of the old era. */
export function initialize(id: unknown = 'init', capabilities: ClientCapabilities = {}): Record<string, unknown> {
  return request(id, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities,
    clientInfo: { name: 'raw', version: '0' }
  })
}

/** What a request of the new era carries in `_meta`. */
export const CLAIM = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '0' },
  'io.modelcontextprotocol/clientCapabilities': {}
}

/** The structured error that a failed call carries; what it gave when it did not fail. */
export function payloadOf({ result }: { readonly result?: unknown }): Record<string, unknown> {
  const { content } = result as { readonly content: readonly { readonly text: string }[] }
  return valueOf(content[0].text) as Record<string, unknown>
}

/** The JSON of a text; the text where it is none. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The framing of the official clients over any stream. */
export class StreamTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #stream: Duplex
  readonly #buffer = new ReadBuffer({ maxBufferSize: 64 * 1024 * 1024 })

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  start(): Promise<void> {
    this.#stream.on('data', (chunk: Buffer) => {
      this.#buffer.append(chunk)
      for (let message = this.#buffer.readMessage(); message !== null; message = this.#buffer.readMessage())
        this.onmessage?.(message)
    })
    this.#stream.on('close', () => this.onclose?.())
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    this.#stream.write(serializeMessage(message))
    return Promise.resolve()
  }

  async close(): Promise<void> {
    if (this.#stream.closed) return
    this.#stream.end()
    await once(this.#stream, 'close')
  }
}
