import type { IncomingMessage } from 'node:http'
import { CONTROL_HOST } from './wire.js'

/** Why a request was not even looked at. Goes to the audit log. */
export interface ControlRefusal {
  /** HTTP status it was answered with. */
  readonly status: 400 | 403 | 405 | 415
  readonly rule: 'host' | 'origin' | 'sec-fetch' | 'method' | 'content-type' | 'malformed'
  /** In the node's own words; never text of the caller. */
  readonly reason: string
}

/**
 * Keeps web pages out. A page that reaches the socket by rebinding, a proxy or an upgrade cannot send our Host. It
 * always sends Origin or Sec-Fetch headers. Returns null for an allowed request.
 */
export function refusalOf(request: Pick<IncomingMessage, 'method' | 'rawHeaders'>): ControlRefusal | null {
  const names = request.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
  const values = (wanted: string): string[] =>
    request.rawHeaders.filter((_, i) => i % 2 === 1 && names[(i - 1) / 2] === wanted)
  const [host, ...moreHosts] = values('host')
  if (host !== CONTROL_HOST || moreHosts.length > 0)
    return { status: 403, rule: 'host', reason: `the Host header is not ${CONTROL_HOST}` }
  if (names.includes('origin'))
    return { status: 403, rule: 'origin', reason: 'it comes from a web page (Origin header)' }
  if (names.some((name) => name.startsWith('sec-fetch-'))) {
    return { status: 403, rule: 'sec-fetch', reason: 'it comes from a browser (Sec-Fetch header)' }
  }
  if (request.method !== 'POST') return { status: 405, rule: 'method', reason: 'only POST is served' }
  const [type, ...moreTypes] = values('content-type')
  if (moreTypes.length > 0 || !/^application\/json(?:; ?charset=utf-8)?$/i.test(type ?? '')) {
    return { status: 415, rule: 'content-type', reason: 'the content type is not application/json' }
  }
  return null
}
