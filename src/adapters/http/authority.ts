import type { IncomingMessage } from 'node:http'

/** Why a request was refused before anything looked at it. Goes to the audit log. */
export interface HttpRefusal {
  /** HTTP status it was answered with. */
  readonly status: 400 | 401 | 403 | 408 | 413 | 417 | 431
  readonly rule: 'http-host' | 'http-origin' | 'http-token' | 'http-malformed' | 'http-slow' | 'http-size'
  /** In the node's own words; never text of the caller. */
  readonly reason: string
}

/** Host names and origins that a listener accepts. */
export interface AuthorityRules {
  readonly port: number
  /** The configured host and the bound address. */
  readonly bound: readonly string[]
  /**
   * Further names, `name` (with the port of the listener) or `name:port`; 80 and 443 are also taken without the port.
   */
  readonly hosts: readonly string[]
  /** Origins of web pages that may call, besides its own. */
  readonly origins: readonly string[]
  /** Its URL from outside: its host and origin are accepted. A proxy passes on the Host of its caller. */
  readonly publicUrl?: string | null
}

/** The headers of a request that decide about access. */
export interface CallerHeaders {
  readonly hosts: readonly string[]
  readonly origins: readonly string[]
  readonly authorizations: readonly string[]
}

/** An Origin that passed: null when there is none; `isForeign`: it is of the list, not the listener's own. */
export type HttpAdmission =
  | { readonly refusal: HttpRefusal }
  | { readonly refusal: null; readonly origin: string | null; readonly isForeign: boolean }

const NO_ORIGIN: HttpAdmission = { refusal: null, origin: null, isForeign: false }
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']
/** Browsers and proxies leave these out. */
const DEFAULT_PORTS = ['80', '443']
const ABSOLUTE = /^http:\/\/([^/?#]*)/i

/** Reads the raw headers once: what Node joins or drops when there are several is seen as it came. */
export function callerHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): CallerHeaders {
  const hosts: string[] = []
  const origins: string[] = []
  const authorizations: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    // Most names have another length: nothing of them is copied.
    if (name === undefined || (name.length !== 4 && name.length !== 6 && name.length !== 13)) continue
    const key = name.toLowerCase()
    const value = rawHeaders[i + 1] ?? ''
    if (key === 'host') hosts.push(value)
    else if (key === 'authorization') authorizations.push(value)
    else if (key === 'origin') origins.push(value)
  }
  return { hosts, origins, authorizations }
}

/**
 * Decides by Host and Origin alone. A web page that reaches the listener by rebinding sends its own name as Host and
 * its own Origin; both are refused. Names are compared whole, ignoring case, without a parser that could differ from
 * others.
 */
export class Authority {
  readonly #port: number
  readonly #hosts: ReadonlySet<string>
  readonly #own: ReadonlySet<string>
  readonly #foreign: ReadonlySet<string>

  constructor({ port, bound, hosts, origins, publicUrl = null }: AuthorityRules) {
    this.#port = port
    const own = [...LOOPBACK, ...bound.map(bracketed)].map((name) => `${name}:${port}`)
    const named = [...own, ...hosts.map((name) => (/:\d+$/.test(name) ? name : `${name}:${port}`))].flatMap(withDefault)
    const outside = publicUrl === null ? null : new URL(publicUrl)
    this.#hosts = new Set([...named, ...(outside === null ? [] : withDefault(hostOf(outside)))])
    this.#own = new Set([...named.map((host) => `http://${host}`), ...(outside === null ? [] : [outside.origin])])
    this.#foreign = new Set(origins)
  }

  /**
   * `localAddress`: where the connection came in; as a Host it is as good as the bound one, which may be a wildcard.
   */
  admit(
    { hosts, origins }: CallerHeaders,
    { url, localAddress }: { readonly url: string; readonly localAddress: string }
  ): HttpAdmission {
    const [host] = hosts
    if (host === undefined || hosts.length > 1) return refused('http-host', 'there is not exactly one Host header')
    if (!this.#isHost(host, localAddress))
      return refused('http-host', 'the Host header is none of the names of this listener')
    const named = url.startsWith('/') ? undefined : ABSOLUTE.exec(url)?.[1]
    if (named !== undefined && !this.#isHost(named, localAddress))
      return refused('http-host', 'the URL is of another host')
    const [origin] = origins
    if (origin === undefined) return NO_ORIGIN
    if (origins.length > 1) return refused('http-origin', 'there are several Origin headers')
    if (this.#foreign.has(origin)) return { refusal: null, origin, isForeign: true }
    if (
      this.#own.has(origin) ||
      (origin.startsWith('http://') && this.#isAt(origin.slice('http://'.length), localAddress))
    )
      return { refusal: null, origin, isForeign: false }
    return refused('http-origin', 'it comes from a web page that is not allowed (Origin header)')
  }

  #isHost(text: string, localAddress: string): boolean {
    const host = text.toLowerCase()
    return this.#hosts.has(host) || this.#isAt(host, localAddress)
  }

  /** A connection that is gone has no address any more. */
  #isAt(host: string, localAddress: string): boolean {
    return localAddress !== '' && host === `${bracketed(localAddress)}:${this.#port}`
  }
}

/** An address as it stands in a URL: IPv6 in brackets, IPv4 in IPv6 as IPv4, all in lower case. */
export function bracketed(address: string): string {
  const plain = address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '')
  return plain.includes(':') && !plain.startsWith('[') ? `[${plain}]` : plain
}

/**
 * The path and the query (without `?`) of a request's target. Anything but an absolute path or URL has the path ''.
 * Slashes at the end, and several in a row, mean the same as one: clients join URLs in all these ways.
 */
export function targetOf(url: string): { readonly path: string; readonly query: string } {
  const rest = url.startsWith('/') ? url : url.replace(ABSOLUTE, '')
  const target = rest.length < url.length && !rest.startsWith('/') ? `/${rest}` : rest
  const mark = target.indexOf('?')
  if (!target.startsWith('/')) return { path: '', query: '' }
  if (mark === -1) return { path: plainPath(target), query: '' }
  return { path: plainPath(target.slice(0, mark)), query: target.slice(mark + 1) }
}

function plainPath(path: string): string {
  const single = path.includes('//') ? path.replaceAll(/\/{2,}/g, '/') : path
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single
}

/** With the port, which URLs leave out when it is the default one. */
function hostOf({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`
}

function withDefault(host: string): string[] {
  const name = host.toLowerCase()
  const port = DEFAULT_PORTS.find((one) => name.endsWith(`:${one}`))
  return port === undefined ? [name] : [name, name.slice(0, -port.length - 1)]
}

function refused(rule: HttpRefusal['rule'], reason: string): HttpAdmission {
  return { refusal: { status: 403, rule, reason } }
}
