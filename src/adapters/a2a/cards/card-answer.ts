import { createHash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { answerJson } from '../server/gateway-route.js'

/** For how long a public card may be taken from a cache, in seconds. */
export const CARD_MAX_AGE_SECONDS = 60

/** A document that is served as it is, made ready when its content changes: answering a request is two writes. */
export interface PreparedDocument {
  readonly body: Buffer
  /** Strong: a hash of the body. */
  readonly etag: string
  /** When the content last changed, unix milliseconds in whole seconds, as HTTP dates have them. */
  readonly changedAt: number
  readonly headers: OutgoingHttpHeaders
}

/** Makes a document ready. Where it says what the former one said, it has the former one's date. `now`: unix milliseconds. */
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

/** Answers GET or HEAD with a document, or that the client has it (RFC 9110, section 13). */
export function answerDocument(request: IncomingMessage, response: ServerResponse, document: PreparedDocument): void {
  const { body, headers } = document
  const vary = varied(response)
  if (isKnown(request, document)) return void response.writeHead(304, { ...headers, vary }).end()
  response.writeHead(200, { ...headers, vary, 'content-length': body.length })
  // Node sends no body with HEAD.
  response.end(body)
}

/** Answers with JSON that nobody may keep. */
export function answerFresh(response: ServerResponse, status: number, value: unknown): void {
  if (!response.headersSent) response.setHeader('vary', varied(response))
  answerJson(response, status, value)
}

/** By what else the answer differs: the listener may have said that it is by the origin. */
function varied(response: ServerResponse): string {
  const given = response.getHeader('vary')
  return given === undefined ? 'A2A-Version' : `${String(given)}, A2A-Version`
}

function isKnown({ headers }: IncomingMessage, { etag, changedAt }: PreparedDocument): boolean {
  const tags = headers['if-none-match']
  // Dates count only where there is no tag.
  if (tags !== undefined) return tags.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()))
  const since = headers['if-modified-since']
  return since !== undefined && Date.parse(since) >= changedAt
}
