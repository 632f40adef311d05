import { createHash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { answerJson } from '../server/gateway-route.js'

/** How long a cache may serve a public card, in seconds. */
export const CARD_MAX_AGE_SECONDS = 60

/** A document that is encoded when its content changes, so an answer is two writes. */
export interface PreparedDocument {
  readonly body: Buffer
  /** Strong: a hash of the body. */
  readonly etag: string
  /** Last change of the content, unix milliseconds in whole seconds, the precision of HTTP dates. */
  readonly changedAt: number
  readonly headers: OutgoingHttpHeaders
}

/** Encodes a document. Returns `former`, with its date, when the content is equal. `now`: unix milliseconds. */
export function prepare(value: unknown, now: number, former?: PreparedDocument): PreparedDocument {
  const body = Buffer.from(JSON.stringify(value))
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  if (former?.etag === etag) return former
  const changedAt = Math.floor(now / 1000) * 1000
  const headers = {
    etag,
    'last-modified': new Date(changedAt).toUTCString(),
    'cache-control': `public, max-age=${CARD_MAX_AGE_SECONDS}`,
    'content-type': 'application/json'
  }
  return { body, etag, changedAt, headers }
}

/** Answers GET or HEAD with a document, or with 304 when the client has it (RFC 9110, section 13). */
export function answerDocument(request: IncomingMessage, response: ServerResponse, document: PreparedDocument): void {
  const { body, headers } = document
  const vary = varied(response)
  if (isKnown(request, document)) return void response.writeHead(304, { ...headers, vary }).end()
  response.writeHead(200, { ...headers, vary, 'content-length': body.length })
  // Node sends no body with HEAD.
  response.end(body)
}

/** Answers with JSON that caches must not store. */
export function answerFresh(response: ServerResponse, status: number, value: unknown): void {
  if (!response.headersSent) response.setHeader('vary', varied(response))
  answerJson(response, status, value)
}

/** The Vary header: keeps the names that the listener has set (the origin) and adds the version. */
function varied(response: ServerResponse): string {
  const given = response.getHeader('vary')
  return given === undefined ? 'A2A-Version' : `${String(given)}, A2A-Version`
}

function isKnown({ headers }: IncomingMessage, { etag, changedAt }: PreparedDocument): boolean {
  const tags = headers['if-none-match']
  // RFC 9110: dates count only without a tag.
  if (tags !== undefined) return tags.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()))
  const since = headers['if-modified-since']
  return since !== undefined && Date.parse(since) >= changedAt
}
