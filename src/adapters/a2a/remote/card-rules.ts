import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { isWebUrl, WEB_URL } from './card-schema.js'
import {
  callableInterfaces,
  entries,
  reachableUrl,
  versionRead,
  type WrittenCard,
  type WrittenInterface,
  writtenInterfaces
} from './remote-interfaces.js'

/** Most characters of the texts of a remote agent that are kept; the rest is cut off. */
export const KEPT_TEXT = { name: 128, description: 4096, version: 64 } as const
/** The same for each entry of the lists of a skill. */
export const KEPT_ENTRIES = { tags: 64, examples: 1024, inputModes: 128, outputModes: 128 } as const

/** A rule that a card breaks, and where. */
export interface BrokenRule {
  readonly path: readonly (string | number)[]
  readonly wrong: string
  readonly right: string
  /** The card can be used as if it were right. */
  readonly isOddity?: true
  readonly stopsImport?: true
}

type Path = BrokenRule['path']

/** Members of a security scheme of 1.0, of which it has one; likewise of its flows. */
const SCHEMES = [
  'apiKeySecurityScheme',
  'httpAuthSecurityScheme',
  'oauth2SecurityScheme',
  'openIdConnectSecurityScheme',
  'mtlsSecurityScheme'
]
const FLOWS = ['authorizationCode', 'clientCredentials', 'implicit', 'password', 'deviceCode']
/** The core bindings. Others are named by a URI. */
const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC']
/** Bindings whose interface is a URL of the web. */
const WEB_BINDINGS = ['JSONRPC', 'HTTP+JSON']

/**
 * The rules that a card breaks beyond the shape of its members: rules about several of them. They read the card as it
 * came, so that a fault of shape hides none of these. `from`: URL of the card; null for a file.
 */
export function brokenRules(card: WrittenCard, version: '1.0' | '0.3', from: string | null): readonly BrokenRule[] {
  return [
    ...repeatedSkills(card),
    ...cutTexts(card),
    ...writtenInterfaces(card, version).flatMap((one) => [...wrongBinding(one), ...wrongUrl(one, from)]),
    ...(version === '1.0' ? securityOfV1(card) : securityOfV03(card)),
    ...(version === versionRead(card) ? uncallable(card, version) : [])
  ]
}

function securityOfV1({ securitySchemes, securityRequirements, skills }: WrittenCard): BrokenRule[] {
  const declared = namesIn(securitySchemes)
  const ofSkills = entries(skills).flatMap(([at, one]) =>
    requirements(one['securityRequirements'], ['skills', at, 'securityRequirements'])
  )
  return [
    ...members(securitySchemes).flatMap(([key, scheme]) => {
      const path = ['securitySchemes', key]
      const oauth = isRecord(scheme) ? scheme['oauth2SecurityScheme'] : null
      const flows = isRecord(oauth) ? notOne(oauth['flows'], FLOWS, [...path, 'oauth2SecurityScheme', 'flows']) : []
      return [...notOne(scheme, SCHEMES, path), ...flows]
    }),
    ...[...requirements(securityRequirements, ['securityRequirements']), ...ofSkills].flatMap(({ path, value }) =>
      undeclared(value['schemes'], declared, [...path, 'schemes'])
    )
  ]
}

function securityOfV03({ securitySchemes, security, skills }: WrittenCard): BrokenRule[] {
  const declared = namesIn(securitySchemes)
  const ofSkills = entries(skills).flatMap(([at, one]) => requirements(one['security'], ['skills', at, 'security']))
  return [...requirements(security, ['security']), ...ofSkills].flatMap(({ path, value }) =>
    undeclared(value, declared, path)
  )
}

function requirements(list: unknown, path: Path): readonly { readonly path: Path; readonly value: WrittenCard }[] {
  return entries(list).map(([at, value]) => ({ path: [...path, at], value }))
}

function repeatedSkills({ skills }: WrittenCard): BrokenRule[] {
  const first = new Map<string, number>()
  return entries(skills).flatMap(([at, { id }]) => {
    if (typeof id !== 'string') return []
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, at)
    if (earlier === undefined || id === '') return []
    const wrong = `is ${quoted(id)}, the id of /skills/${earlier} too`
    return [{ path: ['skills', at, 'id'], wrong, right: 'must be an id that no other skill has', stopsImport: true }]
  })
}

/** Texts that an import shortens. */
function cutTexts(card: WrittenCard): BrokenRule[] {
  return [
    ...cut(card, KEPT_TEXT, []),
    ...entries(card['skills']).flatMap(([at, skill]) => [
      ...cut(skill, { name: KEPT_TEXT.name, description: KEPT_TEXT.description }, ['skills', at]),
      ...Object.entries(KEPT_ENTRIES).flatMap(([key, most]) => {
        const list: unknown = skill[key]
        return Array.isArray(list)
          ? list.flatMap((one: unknown, place) => longer(one, most, ['skills', at, key, place]))
          : []
      })
    ])
  ]
}

function cut(owner: WrittenCard, most: Readonly<Record<string, number>>, path: Path): BrokenRule[] {
  return Object.entries(most).flatMap(([key, max]) => longer(owner[key], max, [...path, key]))
}

function longer(value: unknown, max: number, path: Path): BrokenRule[] {
  if (typeof value !== 'string' || value.length <= max) return []
  return [{ path, wrong: `has ${value.length} characters`, right: `this node keeps ${max} of them`, isOddity: true }]
}

function wrongBinding({ path, key, binding }: WrittenInterface): BrokenRule[] {
  if (typeof binding !== 'string' || binding.trim() === '' || BINDINGS.includes(binding)) return []
  const known = BINDINGS.find((one) => one === binding.toUpperCase())
  const at = [...path, key]
  if (known !== undefined)
    return [{ path: at, wrong: `is ${quoted(binding)}, read as ${known}`, right: `must be ${known}`, isOddity: true }]
  if (/^[a-z][a-z0-9+.-]*:\S/i.test(binding)) return []
  return [
    { path: at, wrong: `is ${quoted(binding)}`, right: `must be ${BINDINGS.join(', ')} or the URI of another binding` }
  ]
}

function wrongUrl({ path, url, binding }: WrittenInterface, from: string | null): BrokenRule[] {
  const isWeb = typeof binding === 'string' && WEB_BINDINGS.includes(binding.toUpperCase())
  // The shape already refuses an address that is empty, unless it stands for that of the card.
  if (!isWeb || typeof url !== 'string' || url.trim() === '') return []
  const reached = reachableUrl(url, from ?? 'http://card.invalid/')
  const at = [...path, 'url']
  if (reached === url) return isWebUrl(url) ? [] : [{ path: at, wrong: `is ${quoted(url)}`, right: WEB_URL }]
  const use = from === null ? 'the address of its card completes it' : `read as ${quoted(reached)}`
  return [{ path: at, wrong: `is ${quoted(url)}, which no client can reach; ${use}`, right: WEB_URL, isOddity: true }]
}

/** A card without an interface that this node can call. Silent where faults of its interfaces already explain it. */
function uncallable(card: WrittenCard, version: '1.0' | '0.3'): BrokenRule[] {
  if (callableInterfaces(card, version).length > 0) return []
  const written = writtenInterfaces(card, version)
  const isWhole = written.every(({ url, binding, version: one }) =>
    [url, binding, one].every((text) => typeof text === 'string')
  )
  if (written.length === 0 || !isWhole) return []
  const path = [version === '1.0' ? 'supportedInterfaces' : 'url']
  const right = 'must have an address for A2A 1.0 or 0.3 over JSONRPC or HTTP+JSON'
  return [{ path, wrong: 'has no address that this node can call', right, stopsImport: true }]
}

function notOne(value: unknown, keys: readonly string[], path: Path): BrokenRule[] {
  if (!isRecord(value)) return []
  const present = keys.filter((key) => value[key] !== undefined)
  if (present.length === 1) return []
  return [
    {
      path,
      wrong: present.length === 0 ? 'has none of its kinds' : `has ${present.join(' and ')}`,
      right: `must have one of ${keys.join(', ')}`
    }
  ]
}

function namesIn(schemes: unknown): ReadonlySet<string> {
  return new Set(members(schemes).map(([key]) => key))
}

function undeclared(schemes: unknown, declared: ReadonlySet<string>, path: Path): BrokenRule[] {
  return members(schemes).flatMap(([key]) =>
    declared.has(key)
      ? []
      : [{ path: [...path, key], wrong: 'is no scheme of the card', right: 'must be a name in /securitySchemes' }]
  )
}

function members(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : []
}

/** A text of a card in a message. */
export function quoted(text: string): string {
  return JSON.stringify(shown(text, 60))
}
