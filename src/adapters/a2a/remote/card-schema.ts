import { z } from 'zod'
import { MAX_INTERFACES } from './remote-interfaces.js'

/** Most entries of one list of a card, and members of one mapping. */
const CARD_MAX_ITEMS = 256
/** Most skills of one remote agent. */
export const MAX_REMOTE_SKILLS = 512
/** UTF-16 units of a name. */
const MAX_NAME = 2048
/** UTF-16 units of a description or example. */
const MAX_TEXT = 65_536

/** Form of URLs on cards. */
export const WEB_URL = 'must be an absolute http or https URL, without user and password'

const name = z.string().trim().min(1, 'must not be empty').max(MAX_NAME)
const text = z.string().max(MAX_TEXT)
const url = name.refine(isWebUrl, WEB_URL)
const names = z.array(name).max(CARD_MAX_ITEMS)
const versionNumber = name.refine((value) => /^\d+(?:\.\d+){0,2}$/.test(value), 'must be a version such as 1.0')

/** A record with a bounded number of members. */
function named<T extends z.ZodType>(value: T): z.ZodRecord<z.ZodString, T> {
  return z
    .record(z.string().max(MAX_NAME, `must have names of at most ${MAX_NAME} characters`), value)
    .refine((members) => Object.keys(members).length <= CARD_MAX_ITEMS, `must have at most ${CARD_MAX_ITEMS} members`)
}

const scopes = named(text)
const extension = z.looseObject({
  uri: name,
  description: text.optional(),
  required: z.boolean().optional(),
  params: z.looseObject({}).optional()
})
const base64 = z.string().regex(/^[A-Za-z0-9_-]{1,8192}$/, 'must be base64url')
const signature = z.looseObject({ protected: base64, signature: base64, header: z.looseObject({}).optional() })

const flows = {
  authorizationCode: z.looseObject({ authorizationUrl: url, tokenUrl: url, refreshUrl: url.optional(), scopes }),
  clientCredentials: z.looseObject({ tokenUrl: url, refreshUrl: url.optional(), scopes }),
  implicit: z.looseObject({ authorizationUrl: url, refreshUrl: url.optional(), scopes }),
  password: z.looseObject({ tokenUrl: url, refreshUrl: url.optional(), scopes })
}
const deviceCode = z.looseObject({ deviceAuthorizationUrl: url, tokenUrl: url, refreshUrl: url.optional(), scopes })

/** Members of every version. */
const common = {
  name,
  description: text,
  version: name,
  documentationUrl: url.optional(),
  iconUrl: name.optional(),
  provider: z.looseObject({ organization: name, url }).optional(),
  defaultInputModes: names,
  defaultOutputModes: names,
  signatures: z.array(signature).max(CARD_MAX_ITEMS).optional()
}
const skill = {
  id: z.string().trim().min(1, 'must not be empty').max(256),
  name,
  description: text,
  tags: names,
  examples: z.array(text).max(CARD_MAX_ITEMS).optional(),
  inputModes: names.optional(),
  outputModes: names.optional()
}
const capabilities = {
  streaming: z.boolean().optional(),
  pushNotifications: z.boolean().optional(),
  extensions: z.array(extension).max(CARD_MAX_ITEMS).optional()
}

function skills(more: z.ZodRawShape): z.ZodType {
  return z
    .array(z.looseObject({ ...skill, ...more }))
    .min(1, 'must list at least one skill')
    .max(MAX_REMOTE_SKILLS)
}

const requirementV1 = z.looseObject({ schemes: named(z.looseObject({ list: names.optional() })) })
const requirementsV1 = z.array(requirementV1).max(CARD_MAX_ITEMS).optional()
const schemeV1 = z
  .looseObject({
    apiKeySecurityScheme: z.looseObject({ location: z.enum(['query', 'header', 'cookie']), name }),
    httpAuthSecurityScheme: z.looseObject({ scheme: name }),
    oauth2SecurityScheme: z.looseObject({
      flows: z.looseObject({ ...flows, deviceCode }).partial(),
      oauth2MetadataUrl: name.optional()
    }),
    openIdConnectSecurityScheme: z.looseObject({ openIdConnectUrl: url }),
    mtlsSecurityScheme: z.looseObject({})
  })
  .partial()
const interfaceV1 = z.looseObject({
  url: name,
  protocolBinding: name,
  protocolVersion: versionNumber,
  tenant: z.string().max(256).optional()
})

/** A card of A2A 1.0. Unknown members are let through. */
export const cardV1Schema = z.looseObject({
  ...common,
  supportedInterfaces: z.array(interfaceV1).min(1, 'must list at least one interface').max(MAX_INTERFACES),
  capabilities: z.looseObject({ ...capabilities, extendedAgentCard: z.boolean().optional() }),
  securitySchemes: named(schemeV1).optional(),
  securityRequirements: requirementsV1,
  skills: skills({ securityRequirements: requirementsV1 })
})

const requirementsV03 = z.array(named(names)).max(CARD_MAX_ITEMS).optional()
const schemeV03 = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.literal('apiKey'), in: z.enum(['query', 'header', 'cookie']), name }),
    z.looseObject({ type: z.literal('http'), scheme: name }),
    z.looseObject({
      type: z.literal('oauth2'),
      flows: z.looseObject(flows).partial(),
      oauth2MetadataUrl: name.optional()
    }),
    z.looseObject({ type: z.literal('openIdConnect'), openIdConnectUrl: url }),
    z.looseObject({ type: z.literal('mutualTLS') })
  ],
  {
    error: ({ code }) =>
      code === 'invalid_union' ? 'must be one of apiKey, http, oauth2, openIdConnect, mutualTLS' : 'must be an object'
  }
)
const interfaceV03 = z.looseObject({ url: name, transport: name })

/** A card of A2A 0.3. Unknown members are let through. */
export const cardV03Schema = z.looseObject({
  ...common,
  protocolVersion: versionNumber,
  url: name,
  preferredTransport: name.optional(),
  additionalInterfaces: z.array(interfaceV03).max(MAX_INTERFACES).optional(),
  capabilities: z.looseObject({ ...capabilities, stateTransitionHistory: z.boolean().optional() }),
  securitySchemes: named(schemeV03).optional(),
  security: requirementsV03,
  supportsAuthenticatedExtendedCard: z.boolean().optional(),
  skills: skills({ security: requirementsV03 })
})

/** Is it an absolute URL of http or https without user and password? */
export function isWebUrl(given: string): boolean {
  const parsed = URL.canParse(given) ? new URL(given) : null
  return (
    parsed !== null && ['http:', 'https:'].includes(parsed.protocol) && parsed.username === '' && parsed.password === ''
  )
}

/** The members without which a card cannot be used. `*`: any place in a list. */
const NEEDED: ReadonlySet<string> = new Set([
  'name',
  'skills/*/id',
  'supportedInterfaces',
  'supportedInterfaces/*/url',
  'supportedInterfaces/*/protocolBinding',
  'url',
  'additionalInterfaces/*/url',
  'additionalInterfaces/*/transport'
])
const LISTS = ['tags', 'examples', 'inputModes', 'outputModes']
/** The members that an import reads. */
const READ: ReadonlySet<string> = new Set([
  ...NEEDED,
  'description',
  'version',
  'capabilities',
  'capabilities/streaming',
  'skills',
  'skills/*',
  'skills/*/name',
  'skills/*/description',
  ...LISTS.flatMap((key) => [`skills/*/${key}`, `skills/*/${key}/*`]),
  'supportedInterfaces/*',
  'supportedInterfaces/*/protocolVersion',
  'supportedInterfaces/*/tenant',
  'preferredTransport',
  'protocolVersion',
  'additionalInterfaces',
  'additionalInterfaces/*'
])
/** Members that an import does not cut when they are too long. */
const UNCUT: ReadonlySet<string> = new Set([
  'skills',
  'skills/*/id',
  'supportedInterfaces',
  'supportedInterfaces/*/tenant',
  'additionalInterfaces'
])
/** Members that an import needs with content. */
const FILLED: ReadonlySet<string> = new Set(['skills/*/id', 'supportedInterfaces'])

/** Does an import refuse a card for this fault of shape? Else the member is left out, cut or not read. */
export function stopsImport({ code, path }: Pick<z.core.$ZodIssue, 'code' | 'path'>, isMissing: boolean): boolean {
  const place = path.map((step) => (typeof step === 'number' ? '*' : String(step))).join('/')
  if (isMissing) return NEEDED.has(place)
  if (code === 'invalid_type') return READ.has(place)
  if (code === 'too_big') return UNCUT.has(place)
  return code === 'too_small' && FILLED.has(place)
}
