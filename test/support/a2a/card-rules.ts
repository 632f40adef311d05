import { isRecord } from '../../../src/kit/json.js'
import { isWebUrl, WEB_URL } from './card-schema.js'

/** A rule that a card breaks, and where. */
export interface BrokenRule {
  readonly path: (string | number)[]
  readonly message: string
}

/** Members of a security scheme of 1.0, of which it has one; likewise of its flows. */
const SCHEMES = [
  'apiKeySecurityScheme',
  'httpAuthSecurityScheme',
  'oauth2SecurityScheme',
  'openIdConnectSecurityScheme',
  'mtlsSecurityScheme'
]
const FLOWS = ['authorizationCode', 'clientCredentials', 'implicit', 'password', 'deviceCode']
/** Bindings whose interface is a URL; that of others is what they say. */
const WEB_BINDINGS = ['JSONRPC', 'HTTP+JSON']

/**
 * What is wrong with a card beyond the shape of its members: rules about several of them. They look at the card as it came, so
 * that a fault of shape hides none of these.
 */
export function brokenRules(card: Readonly<Record<string, unknown>>, version: '1.0' | '0.3'): readonly BrokenRule[] {
  return [...skillsTwice(card), ...(version === '1.0' ? rulesOfV1(card) : rulesOfV03(card))]
}

function rulesOfV1({ supportedInterfaces, securitySchemes, securityRequirements }: Readonly<Record<string, unknown>>): BrokenRule[] {
  return [
    ...records(supportedInterfaces).flatMap(([at, one]) =>
      wrongUrl(one['url'], one['protocolBinding'], ['supportedInterfaces', at, 'url'])
    ),
    ...members(securitySchemes).flatMap(([key, scheme]) => {
      const path = ['securitySchemes', key]
      const oauth = isRecord(scheme) ? scheme['oauth2SecurityScheme'] : null
      const flows = isRecord(oauth) ? notOne(oauth['flows'], FLOWS, [...path, 'oauth2SecurityScheme', 'flows']) : []
      return [...notOne(scheme, SCHEMES, path), ...flows]
    }),
    ...records(securityRequirements).flatMap(([at, { schemes }]) =>
      undeclared(schemes, securitySchemes, ['securityRequirements', at, 'schemes'])
    )
  ]
}

function rulesOfV03(card: Readonly<Record<string, unknown>>): BrokenRule[] {
  const { url, preferredTransport = 'JSONRPC', additionalInterfaces, securitySchemes, security } = card
  return [
    ...wrongUrl(url, preferredTransport, ['url']),
    ...records(additionalInterfaces).flatMap(([at, one]) => wrongUrl(one['url'], one['transport'], ['additionalInterfaces', at, 'url'])),
    ...records(security).flatMap(([at, schemes]) => undeclared(schemes, securitySchemes, ['security', at]))
  ]
}

function skillsTwice({ skills }: Readonly<Record<string, unknown>>): BrokenRule[] {
  const seen = new Set<unknown>()
  return records(skills).flatMap(([at, { id }]) => {
    const isTwice = seen.has(id)
    seen.add(id)
    return isTwice && typeof id === 'string' ? [{ path: ['skills', at, 'id'], message: 'another skill has this id' }] : []
  })
}

function wrongUrl(url: unknown, binding: unknown, path: BrokenRule['path']): BrokenRule[] {
  const isWeb = typeof binding === 'string' && WEB_BINDINGS.includes(binding.toUpperCase())
  return isWeb && typeof url === 'string' && !isWebUrl(url) ? [{ path, message: WEB_URL }] : []
}

function notOne(value: unknown, keys: readonly string[], path: BrokenRule['path']): BrokenRule[] {
  if (!isRecord(value) || keys.filter((key) => value[key] !== undefined).length === 1) return []
  return [{ path, message: `must have exactly one of ${keys.join(', ')}` }]
}

function undeclared(schemes: unknown, declared: unknown, path: BrokenRule['path']): BrokenRule[] {
  const known = new Set(members(declared).map(([key]) => key))
  return members(schemes).flatMap(([key]) =>
    known.has(key) ? [] : [{ path: [...path, key], message: 'names a security scheme that the card does not declare' }]
  )
}

/** The objects of a list, with their places; none where it is no list. */
function records(list: unknown): (readonly [number, Readonly<Record<string, unknown>>])[] {
  return Array.isArray(list) ? list.flatMap((one: unknown, at) => (isRecord(one) ? [[at, one] as const] : [])) : []
}

function members(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : []
}
