import { isRecord } from '../../kit/json.js'

/** The code of MCP 2026-07-28 for headers that are missing, or say something else than the body. */
const HEADER_MISMATCH = -32_020

/** Which member of the parameters the `Mcp-Name` header repeats. */
const NAMED: Readonly<Record<string, string>> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** Headers of a request, as they came. */
export interface StandardHeaders {
  readonly protocolVersionHeader?: string
  readonly mcpMethodHeader?: string
  readonly mcpNameHeader?: string
}

/**
 * What is wrong with the headers that every request of MCP 2026-07-28 carries beside its body (Streamable HTTP, standard
 * headers), so that what looks at headers alone sees what runs; null when nothing is. That version and method are those of the
 * body the SDK has checked before.
 */
export function standardHeadersFault(
  { protocolVersionHeader, mcpMethodHeader, mcpNameHeader }: StandardHeaders,
  { method, params }: Readonly<Record<string, unknown>>
): { readonly status: number; readonly code: number; readonly message: string } | null {
  if (protocolVersionHeader === undefined) return fault('the MCP-Protocol-Version header is missing')
  if (mcpMethodHeader === undefined) return fault('the Mcp-Method header is missing')
  const member = typeof method === 'string' ? NAMED[method] : undefined
  const name = member !== undefined && isRecord(params) ? params[member] : undefined
  if (typeof name !== 'string') return null
  if (mcpNameHeader === undefined) return fault('the Mcp-Name header is missing')
  return decoded(mcpNameHeader.trim()) === name ? null : fault(`the Mcp-Name header is not params.${member} of the body`)
}

/** Text beyond ASCII comes as `=?base64?...?=`. */
function decoded(value: string): string | null {
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/i.exec(value)?.[1]
  if (encoded === undefined) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64'))
  } catch {
    return null
  }
}

function fault(message: string): { readonly status: number; readonly code: number; readonly message: string } {
  return { status: 400, code: HEADER_MISMATCH, message: `Bad Request: ${message}` }
}
