import type { Transport } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { GatedTransport, type Eras, type RefusedRequest } from './gated-transport.js'
import { LineTransport, type LineStreams } from './line-transport.js'
import { tellRecord } from './tool-record.js'
import { createMcpServer, type McpParts } from './server.js'

/** Beyond the arguments of a call, a line may have so many bytes: method, ids, and what escapes add. */
const LINE_HEADROOM_BYTES = 65_536

/** What serving a connection takes beside the parts of its server. */
export interface ServeParts extends McpParts {
  /** `mcp.eras`. */
  readonly eras: Eras
  /** `tools.maxPayloadBytes`. */
  readonly maxPayloadBytes: number
}

/** A connection that is served. */
export interface ServedConnection {
  /** Ends it: handlers are told to stop, nothing more is written. */
  close(): Promise<void>
  /** Resolves when it has ended, whoever ended it. */
  readonly closed: Promise<void>
}

/** Serves MCP over a pair of byte streams (lines of JSON) or a transport of the SDK, in both eras of the protocol. */
export function serveMcp(over: LineStreams | Transport, parts: ServeParts): ServedConnection {
  const { ids, log, eras, maxPayloadBytes } = parts
  const correlationId = ids.connectionCorrelationId()
  const maxLineBytes = maxPayloadBytes + LINE_HEADROOM_BYTES
  const inner = 'input' in over ? new LineTransport(over, { maxLineBytes, correlationId }) : over
  const onRefused = (refused: RefusedRequest): void => reportRefused(refused, parts)
  const gate = new GatedTransport(inner, { correlationId, eras, log, onRefused })
  let ended: () => void
  const closed = new Promise<void>((resolve) => {
    ended = resolve
  })
  const handle = serveStdio(({ era }) => createMcpServer(parts, era), {
    transport: gate,
    legacy: eras === 'modern' ? 'reject' : 'serve',
    onerror: ({ message }) => log('debug', 'mcp connection', { correlationId, reason: message })
  })
  const { onclose } = gate
  gate.onclose = () => {
    onclose?.()
    ended()
  }
  return { close: () => handle.close(), closed }
}

/** A call that never became one is recorded too. */
function reportRefused({ method, params, code, message, correlationId }: RefusedRequest, parts: ServeParts): void {
  if (method !== 'tools/call') return
  const { name, arguments: args } = params
  tellRecord(parts, {
    tool: typeof name === 'string' ? name : '',
    arguments: args ?? {},
    error: { code: String(code), message },
    durationMs: 0,
    outcome: 'protocol_error',
    correlationId,
    at: parts.clock.now()
  })
}
