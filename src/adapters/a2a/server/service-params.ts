import type { IncomingHttpHeaders } from 'node:http'
import { A2AFault } from './fault.js'

/** The supported versions of the protocol. */
export type ProtocolVersion = '1.0' | '0.3'

const VERSIONS: readonly ProtocolVersion[] = ['1.0', '0.3']
/** Headers that activate extensions: of 1.0, and of 0.3. */
const EXTENSION_HEADERS = ['a2a-extensions', 'x-a2a-extensions'] as const

/** The parts of a request with service parameters. */
export interface ServiceSource {
  readonly headers: IncomingHttpHeaders
  /** Without the `?`. */
  readonly query: string
}

/** An extension on a card. */
export interface OfferedExtension {
  readonly uri: string
  readonly required?: boolean
}

/**
 * The version that a request names by header, else by query (A2A 1.0, section 3.6). Null: none, which means 0.3 unless
 * the method or path determines it.
 * @throws A2AFault VERSION_NOT_SUPPORTED
 */
export function requestedVersion(source: ServiceSource): ProtocolVersion | null {
  const text = versionText(source)
  if (text === '') return null
  if (text === '1.0' || text === '0.3') return text
  const [, major = '', minor = ''] = /^(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?$/.exec(text) ?? []
  const version = VERSIONS.find((one) => one === `${major}.${minor}`)
  if (version !== undefined) return version
  throw new A2AFault('VERSION_NOT_SUPPORTED', `this node speaks A2A ${VERSIONS.join(' and ')}`, {
    metadata: { supportedVersions: VERSIONS.join(',') }
  })
}

/** Is a parameter of a query about the request as a whole, and none of its operation? */
export function isServiceParam(name: string): boolean {
  return name.toLowerCase() === 'a2a-version'
}

/** The text of the version that a request names; '' for none. */
export function versionText({ headers, query }: ServiceSource): string {
  const header = headers['a2a-version']
  if (typeof header === 'string' && header.trim() !== '') return header.trim()
  if (!/a2a-version/i.test(query)) return ''
  const [, value = ''] = [...new URLSearchParams(query)].find(([name]) => isServiceParam(name)) ?? []
  return value.trim()
}

/**
 * The offered extensions that a request activates, and the header for the response. Unknown ones are ignored (A2A 1.0,
 * section 4.6.3); the size of headers bounds them.
 */
export function activatedExtensions(
  { headers }: Pick<ServiceSource, 'headers'>,
  offered: readonly OfferedExtension[]
): { readonly header: string; readonly uris: readonly string[] } | null {
  const header = EXTENSION_HEADERS.find((name) => headers[name] !== undefined)
  if (header === undefined) return null
  const named = new Set(
    EXTENSION_HEADERS.flatMap((name) => String(headers[name] ?? '').split(',')).map((uri) => uri.trim())
  )
  return { header, uris: offered.map(({ uri }) => uri).filter((uri) => named.has(uri)) }
}

/** @throws A2AFault EXTENSION_SUPPORT_REQUIRED when a required extension is not activated */
export function checkRequired(offered: readonly OfferedExtension[], activated: readonly string[]): void {
  const missing = offered
    .filter(({ uri, required }) => required === true && !activated.includes(uri))
    .map(({ uri }) => uri)
  if (missing.length === 0) return
  throw new A2AFault(
    'EXTENSION_SUPPORT_REQUIRED',
    `the agent requires ${missing.join(', ')}: name it in the header A2A-Extensions`,
    {
      metadata: { extensions: missing.join(',') }
    }
  )
}
