import { isRecord } from '../../../kit/json.js'

/** Most interfaces on one card. */
export const MAX_INTERFACES = 32
/** Most characters of the URL of an interface. */
const MAX_INTERFACE_URL = 2048

/** One interface of a remote agent. */
export interface RemoteInterface {
  readonly url: string
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly version: '1.0' | '0.3'
  /** The tenant of 1.0; '' when absent. */
  readonly tenant: string
}

/** An interface as a card has it. */
export interface WrittenInterface {
  /** Path of its members on the card. */
  readonly path: readonly (string | number)[]
  /** Name of the member with the binding. */
  readonly key: 'protocolBinding' | 'preferredTransport' | 'transport'
  readonly url: unknown
  readonly binding: unknown
  readonly version: unknown
  readonly tenant: unknown
}

/** A card as others wrote it. */
export type WrittenCard = Readonly<Record<string, unknown>>

/** The versions of which a card has members; without any it counts as one of 1.0. */
export function versionsOf(card: WrittenCard): readonly ('1.0' | '0.3')[] {
  const isNew = 'supportedInterfaces' in card
  const isOld = 'url' in card || (!isNew && isOldVersion(card['protocolVersion']))
  return isOld ? (isNew ? ['1.0', '0.3'] : ['0.3']) : ['1.0']
}

/** Is a version of the protocol one before 1.0? */
export function isOldVersion(version: unknown): boolean {
  return typeof version === 'string' && version.startsWith('0.')
}

/** The version by which a card is read: 1.0 for one of both versions, unless it lists no interface of 1.0. */
export function versionRead(card: WrittenCard): '1.0' | '0.3' {
  const { supportedInterfaces: listed } = card
  return (Array.isArray(listed) && listed.length > 0) || !versionsOf(card).includes('0.3') ? '1.0' : '0.3'
}

/** The interfaces of a card of a version, in its order. Entries that are no objects are left out. */
export function writtenInterfaces(card: WrittenCard, version: '1.0' | '0.3'): readonly WrittenInterface[] {
  if (version === '1.0')
    return entries(card['supportedInterfaces']).map(([at, { url, protocolBinding, protocolVersion, tenant }]) => {
      const path = ['supportedInterfaces', at]
      return { path, key: 'protocolBinding', url, binding: protocolBinding, version: protocolVersion ?? '1.0', tenant }
    })
  const { url, preferredTransport = 'JSONRPC', protocolVersion = '0.3.0', additionalInterfaces } = card
  const first: WrittenInterface = {
    path: [],
    key: 'preferredTransport',
    url,
    binding: preferredTransport,
    version: protocolVersion,
    tenant: ''
  }
  const others = entries(additionalInterfaces).map(([at, one]): WrittenInterface => {
    const path = ['additionalInterfaces', at]
    return { path, key: 'transport', url: one['url'], binding: one['transport'], version: protocolVersion, tenant: '' }
  })
  // Cards of 0.3 list their first interface among the further ones too.
  const bindings = new Map<unknown, Set<unknown>>()
  return [first, ...others].filter((one) => {
    const known = bindings.get(one.url) ?? new Set()
    bindings.set(one.url, known)
    return known.size < known.add(one.binding).size
  })
}

/** The interfaces that this node can call, with their places on the card. */
export function callableInterfaces(
  card: WrittenCard,
  version: '1.0' | '0.3'
): readonly { readonly at: WrittenInterface; readonly used: RemoteInterface }[] {
  return writtenInterfaces(card, version).flatMap((at) => {
    const used = callable(at)
    return used === null ? [] : [{ at, used }]
  })
}

/** The interface to use: the first of 1.0, else the first. */
export function preferred<T>(all: readonly T[], versionOf: (one: T) => RemoteInterface['version']): T | undefined {
  return all.find((one) => versionOf(one) === '1.0') ?? all[0]
}

function callable({ url, binding, version, tenant }: WrittenInterface): RemoteInterface | null {
  const known = typeof binding === 'string' ? binding.toUpperCase() : ''
  if ((known !== 'JSONRPC' && known !== 'HTTP+JSON') || typeof url !== 'string' || url.length > MAX_INTERFACE_URL)
    return null
  const spoken = typeof version === 'string' ? spokenVersion(version) : null
  return spoken === null
    ? null
    : { url, binding: known, version: spoken, tenant: typeof tenant === 'string' ? tenant : '' }
}

function spokenVersion(version: string): '1.0' | '0.3' | null {
  return /^1(?:\.|$)/.test(version) ? '1.0' : /^0\.3(?:\.|$)/.test(version) ? '0.3' : null
}

/** Hosts that name every address of their own machine, so none that a client could reach. */
const NOWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '[::]'])
/** Characters of URLs (RFC 3986). */
const URL_TEXT = /^[\w.~:/?#[\]@!$&'()*+,;=%-]*$/

/**
 * The address at which a client reaches an interface, for a card fetched from `from`. A server behind a container or
 * proxy often does not know its own, so the origin of `from` takes the place of a missing or unspecified host. Other
 * addresses stay as they are written.
 */
export function reachableUrl(written: string, from: string): string {
  if (!URL.canParse(from) || !URL_TEXT.test(written)) return written
  // Without a path of its own, the address is that of the agent, not of the card.
  const base = from.replace(/[?#].*$/s, '').replace(/\.well-known\/[^/]*$/, '')
  if (!URL.canParse(written)) return URL.canParse(written, base) ? new URL(written, base).href : written
  const url = new URL(written)
  if (!NOWHERE.has(url.hostname)) return written
  return new URL(base).origin + url.pathname + url.search
}

/** The objects of a list, with their places; none where it is no list. */
export function entries(list: unknown): readonly (readonly [number, WrittenCard])[] {
  return Array.isArray(list) ? list.flatMap((one: unknown, at) => (isRecord(one) ? [[at, one] as const] : [])) : []
}
