import ipaddr from 'ipaddr.js'

/** Most characters of an address from an untrusted source. */
export const MAX_ADDRESS = 2048

/** A private host that the config allows: as in addresses, in lower case, an IPv6 literal without brackets. */
export interface AllowedHost {
  readonly host: string
  /** null: every port that public hosts may have. */
  readonly port: number | null
}

/** Hosts that requests may reach beside the public ones. */
export interface AddressPolicy {
  readonly allowed: readonly AllowedHost[]
}

/** Verdict on an address. */
export type AddressVerdict =
  | {
      readonly ok: true
      readonly url: URL
      /** The config names the host, so it may be private. */
      readonly isAllowed: boolean
    }
  | { readonly ok: false; readonly reason: string }

/** Ranges of ipaddr.js with hosts of the public internet. */
const PUBLIC = new Set(['unicast'])
/** Ranges that the config may allow. */
const OWN = new Set(['unicast', 'loopback', 'private', 'carrierGradeNat', 'uniqueLocal'])

/** Metadata addresses of clouds beside the link-local ranges; an allowed host may not resolve to them either. */
const METADATA = new Set(['168.63.129.16', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254'])

/** Networks that ipaddr.js calls unicast but that are not part of the public internet. */
const SPECIAL = [
  '198.18.0.0/15',
  '192.88.99.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.175.48.0/24',
  '2001:10::/28',
  '3fff::/20',
  '2620:4f:8000::/48'
].map((text) => ipaddr.parseCIDR(text))

/** IPv6 global unicast: all other ranges are reserved or embed an IPv4 address. */
const GLOBAL_V6 = ipaddr.parseCIDR('2000::/3')
/** Unique local addresses. */
const LOCAL_V6 = ipaddr.parseCIDR('fc00::/7')

/**
 * Ports of other protocols, in which an HTTP request can smuggle commands (bad ports of the fetch standard, and
 * databases).
 */
const OTHER_PROTOCOLS = new Set([
  1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 4369, 5060, 5061, 5432,
  5672, 5984, 5985, 5986, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 8086, 9042, 9092, 9200,
  9300, 10_080, 10_250, 10_255, 11_211, 27_017
])

/** Names that are never public (RFC 6761, 6762, 8375, and internal names of clouds and containers). */
const PRIVATE_NAMES = [
  'localhost',
  'local',
  'internal',
  'intranet',
  'lan',
  'home',
  'corp',
  'private',
  'home.arpa',
  'localdomain',
  'test',
  'invalid'
]

/**
 * Reads an entry of the allow list: `host`, `host:port`, `[::1]`, `[::1]:port`; null when the text is no such entry.
 */
export function allowedHost(text: string): AllowedHost | null {
  const match = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?$/.exec(text.toLowerCase())
  if (match?.[1] === undefined) return null
  const port = match[2] === undefined ? null : Number(match[2])
  return port !== null && (port < 1 || port > 65_535) ? null : { host: bare(match[1]), port }
}

/**
 * May this node send a request to an untrusted address? Allows `http` and `https`, hosts in canonical form, and only
 * public hosts unless the config names them. A host name is checked by its text; {@link addressFault} checks its IP
 * address at connect. Never throws.
 */
export function judgeAddress(text: string, policy: AddressPolicy): AddressVerdict {
  const no = (reason: string): AddressVerdict => ({ ok: false, reason })
  if (text.length > MAX_ADDRESS) return no(`it is longer than ${MAX_ADDRESS} characters`)
  if (!/^[\x21-\x7e]+$/.test(text) || text.includes('\\')) return no('it has characters that no address has')
  const parts = /^(https?):\/\/([^/?#]*)/i.exec(text)
  if (parts?.[2] === undefined) return no('it is not an http or https address')
  const [, , authority] = parts
  if (authority.includes('@')) return no('it holds a user or password')
  const match = /^(\[[^\]]*\]|[^:[\]]+)(?::(\d+))?$/.exec(authority)
  if (match?.[1] === undefined || !URL.canParse(text)) return no('it is no valid address')
  const url = new URL(text)
  const host = bare(url.hostname)
  const isAllowed = isListed(host, portOf(url), policy)
  const reason = formFault(match[1], url.hostname) ?? portFault(url, policy) ?? hostFault(host, isAllowed)
  return reason === null ? { ok: true, url, isAllowed } : no(reason)
}

/**
 * Why a connection to this IP address is refused; null: it is allowed. `isAllowed`: the config names its host. Never
 * throws.
 */
export function addressFault(address: string, isAllowed: boolean): string | null {
  if (!ipaddr.isValid(address)) return 'it is no IP address'
  const parsed = ipaddr.parse(address)
  const plain = parsed.toString()
  if (METADATA.has(plain)) return `${plain} is where clouds keep secrets`
  const range = rangeOf(parsed)
  if ((isAllowed ? OWN : PUBLIC).has(range)) return null
  if (!isAllowed && OWN.has(range))
    return `${plain} is not public (${range}); the config can allow it: a2a.allowPrivate`
  return `${plain} is not an address of a host (${range})`
}

type Address = ReturnType<typeof ipaddr.parse>

function rangeOf(address: Address): string {
  const range: string = address.range()
  if (SPECIAL.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits)))
    return 'reserved'
  if (address.kind() === 'ipv4' || range !== 'unicast') return range
  // ISATAP embeds an IPv4 address in its last half, as do the unnamed ranges outside of 2000::/3.
  if (isIsatap(address) || !address.match(...GLOBAL_V6)) return address.match(...LOCAL_V6) ? 'uniqueLocal' : 'reserved'
  return range
}

function isIsatap(address: Address): boolean {
  const bytes = address.toByteArray()
  return bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe && ((bytes[8] ?? 0) & 0xfd) === 0
}

/**
 * The host must be in the form that the parser produces: other forms hide an address (`0x7f.1`, `2130706433`,
 * `017700000001`).
 */
function formFault(written: string, parsed: string): string | null {
  if (written.startsWith('[')) return null
  return written.toLowerCase() === parsed ? null : `its host is not in its plain form, which is ${parsed}`
}

function portFault(url: URL, policy: AddressPolicy): string | null {
  const port = portOf(url)
  if (policy.allowed.some((one) => one.port === port && one.host === bare(url.hostname))) return null
  const isWeb = port === 80 || port === 443 || (port >= 1024 && !OTHER_PROTOCOLS.has(port))
  return isWeb ? null : `port ${port} is not one of the web`
}

function hostFault(host: string, isAllowed: boolean): string | null {
  if (ipaddr.isValid(host)) return addressFault(host, isAllowed)
  if (!/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(host) || host.length > 253) return 'its host is no name'
  if (isAllowed) return null
  const isPrivate = !host.includes('.') || PRIVATE_NAMES.some((name) => host.endsWith(`.${name}`))
  return isPrivate ? `${host} is not a public name; the config can allow it: a2a.allowPrivate` : null
}

function isListed(host: string, port: number, { allowed }: AddressPolicy): boolean {
  return allowed.some((one) => one.host === host && (one.port === null || one.port === port))
}

function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}

/** Without brackets, and an address of IPv6 in its shortest form. */
function bare(host: string): string {
  const plain = host.replace(/^\[|\]$/g, '')
  return host.startsWith('[') && ipaddr.IPv6.isValid(plain) ? ipaddr.IPv6.parse(plain).toString() : plain
}
