import { isRecord } from '../../../kit/json.js'

/** The code of MCP 2026-07-28 for headers that are missing, or say something else than the body. */
const HEADER_MISMATCH = -32_020

/** Which member of the parameters the `Mcp-Name` header repeats. */
const NAMED: Readonly<Record<string, string>> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** Why a request is refused for its headers. */
export interface HeaderFault {
  readonly status: number
  readonly code: number
  readonly message: string
}

/** Headers of a request, as they came. */
export interface StandardHeaders {
  readonly protocolVersionHeader?: string
  readonly mcpMethodHeader?: string
  readonly mcpNameHeader?: string
}

/**
 * Checks the headers that every request of MCP 2026-07-28 carries beside its body (Streamable HTTP, standard headers);
 * null when they match. So a proxy that reads only headers sees the request that runs. The SDK has compared version and
 * method before.
 */
export function standardHeadersFault(
  { protocolVersionHeader, mcpMethodHeader, mcpNameHeader }: StandardHeaders,
  { method, params }: Readonly<Record<string, unknown>>
): HeaderFault | null {
  if (protocolVersionHeader === undefined) return headerFault('the MCP-Protocol-Version header is missing')
  if (mcpMethodHeader === undefined) return headerFault('the Mcp-Method header is missing')
  const member = typeof method === 'string' ? NAMED[method] : undefined
  const name = member !== undefined && isRecord(params) ? params[member] : undefined
  if (typeof name !== 'string') return null
  if (mcpNameHeader === undefined) return headerFault('the Mcp-Name header is missing')
  return decodedHeader(mcpNameHeader.trim()) === name
    ? null
    : headerFault(`the Mcp-Name header is not params.${member} of the body`)
}

/** Decodes a header: text beyond ASCII comes as `=?base64?...?=`. null when that is not base64 of text. */
export function decodedHeader(value: string): string | null {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
  if (encoded === undefined) return value
  const bytes = Buffer.from(encoded, 'base64')
  // Node accepts malformed base64; a proxy in front must not read it otherwise.
  if (bytes.toString('base64') !== encoded) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The fault of a request whose headers differ from its body. */
export function headerFault(message: string): HeaderFault {
  return { status: 400, code: HEADER_MISMATCH, message: `Bad Request: ${message}` }
}
