import type { CallToolResult, Server, Transport } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { shown } from '../../../kit/text.js'
import { BegunTransport } from './begun-transport.js'
import { GatedTransport, type Eras, type RefusedRequest } from './gated-transport.js'
import { versionClaim } from './json-rpc.js'
import { LineTransport, type LineStreams } from './line-transport.js'
import { maxMessageBytes } from './message-bytes.js'
import { oversizedResult, refuseOversized } from './oversized-call.js'
import { tellRecord } from './tool-record.js'
import { createMcpServer, type McpDeps } from './server.js'

/** Dependencies of a connection, beside the dependencies of its server. */
export interface ServeDeps extends Omit<McpDeps, 'instructions'> {
  /** Made when a client begins. */
  readonly instructions?: () => Promise<string>
  /** `mcp.eras`. */
  readonly eras: Eras
  /** `tools.maxPayloadBytes`. */
  readonly maxPayloadBytes: number
}

/** A connection that is served. */
export interface ServedConnection {
  /** Ends it: signals handlers to stop, and writes nothing more. */
  close(): Promise<void>
  /** Resolves when it has ended, for any reason. */
  readonly closed: Promise<void>
}

/** Serves MCP over a pair of byte streams (lines of JSON) or a transport of the SDK, in both eras of the protocol. */
export function serveMcp(over: LineStreams | Transport, deps: ServeDeps): ServedConnection {
  const { ids, log, eras, maxPayloadBytes } = deps
  const correlationId = ids.connectionCorrelationId()
  const maxLineBytes = maxMessageBytes(maxPayloadBytes)
  const refuseCall = async (tool: string): Promise<CallToolResult> =>
    oversizedResult(await refuseOversized(deps, tool, maxLineBytes))
  const inner = 'input' in over ? new LineTransport(over, { maxLineBytes, correlationId, refuseCall }) : over
  const onRefused = (refused: RefusedRequest): void => reportRefused(refused, deps)
  const gate = new GatedTransport(inner, { correlationId, eras, log, onRefused })
  const onerror = ({ message }: Error): void => log('debug', 'mcp connection', { correlationId, reason: message })
  return begin(gate, { deps, onerror })
}

interface FirstMessage {
  readonly deps: ServeDeps
  readonly onerror: (error: Error) => void
}

/**
 * Connects a server once the first message shows the client's era. A client that claims its version goes to the SDK's
 * own entry. Only that entry can serve it, and continues with a handshake when the client falls back to it. A handshake
 * goes to a server without that entry's layer, which would check every message once more.
 */
function begin(gate: GatedTransport, { deps, onerror }: FirstMessage): ServedConnection {
  const begun = new BegunTransport(gate)
  let isClosed = false
  let isFirst = true
  const serve = async (isHandshake: boolean): Promise<void> => {
    const { eras, instructions: made, ...rest } = deps
    const instructions = await made?.()
    // The client may be gone meanwhile.
    if (isClosed) return
    const whole: McpDeps = { ...rest, ...(instructions === undefined ? {} : { instructions }) }
    const factory = ({ era }: { readonly era: 'legacy' | 'modern' }): Server =>
      createMcpServer(whole, era, () => gate.waiting('subscriptions/listen'))
    if (isHandshake) await createMcpServer(whole, 'legacy').connect(begun)
    else serveStdio(factory, { transport: begun, legacy: eras === 'modern' ? 'reject' : 'serve', onerror })
  }
  gate.onmessage = (message, extra) => {
    begun.take(message, extra)
    if (!isFirst) return
    isFirst = false
    const isHandshake =
      deps.eras !== 'modern' && 'method' in message && versionClaim(message.params ?? {}) === undefined
    serve(isHandshake).catch(onerror)
  }
  gate.onerror = (error) => (begun.onerror ?? onerror)(error)
  const closed = new Promise<void>((resolve) => {
    gate.onclose = () => {
      isClosed = true
      begun.onclose?.()
      resolve()
    }
  })
  gate.start().catch(onerror)
  return { close: () => gate.close(), closed }
}

/** Records a refused `tools/call`, too. */
function reportRefused({ method, params, code, message, correlationId }: RefusedRequest, deps: ServeDeps): void {
  if (method !== 'tools/call') return
  const { name, arguments: args } = params
  tellRecord(deps, {
    tool: typeof name === 'string' ? shown(name) : '',
    arguments: args ?? {},
    error: { code: String(code), message },
    durationMs: 0,
    outcome: 'protocol_error',
    correlationId,
    at: deps.clock.now()
  })
}
