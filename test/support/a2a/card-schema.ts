import { z } from 'zod'

/** Items of one list of a card that others wrote. */
export const CARD_MAX_ITEMS = 256
/** Skills of such a card. */
export const CARD_MAX_SKILLS = 4096
/** UTF-16 units of a name or URL. */
export const CARD_MAX_NAME = 2048
/** UTF-16 units of a description or example. */
export const CARD_MAX_TEXT = 65_536

/** What is wrong with what is none. */
export const WEB_URL = 'must be an absolute URL of http or https, without user and password'

const name = z.string().trim().min(1, 'must not be empty').max(CARD_MAX_NAME)
const text = z.string().max(CARD_MAX_TEXT)
const url = name.refine(isWebUrl, WEB_URL)
const names = z.array(name).max(CARD_MAX_ITEMS)

/** A record with a bounded number of members. */
function named<T extends z.ZodType>(value: T): z.ZodRecord<z.ZodString, T> {
  return z
    .record(z.string().max(CARD_MAX_NAME), value)
    .refine((members) => Object.keys(members).length <= CARD_MAX_ITEMS, `must have at most ${CARD_MAX_ITEMS} members`)
}

const scopes = named(text)
const extension = z.looseObject({
  uri: name,
  description: text.optional(),
  required: z.boolean().optional(),
  params: z.looseObject({}).optional()
})
const signature = z.looseObject({
  protected: z.string().regex(/^[A-Za-z0-9_-]{1,8192}$/, 'must be base64url'),
  signature: z.string().regex(/^[A-Za-z0-9_-]{1,8192}$/, 'must be base64url'),
  header: z.looseObject({}).optional()
})
const provider = z.looseObject({ organization: name, url: name })

const flows = {
  authorizationCode: z.looseObject({ authorizationUrl: url, tokenUrl: url, refreshUrl: url.optional(), scopes }),
  clientCredentials: z.looseObject({ tokenUrl: url, refreshUrl: url.optional(), scopes }),
  implicit: z.looseObject({ authorizationUrl: url, refreshUrl: url.optional(), scopes }),
  password: z.looseObject({ tokenUrl: url, refreshUrl: url.optional(), scopes })
}
const deviceCode = z.looseObject({ deviceAuthorizationUrl: url, tokenUrl: url, refreshUrl: url.optional(), scopes })

/** What every version says of itself. */
const common = {
  name,
  description: text,
  version: name,
  documentationUrl: name.optional(),
  iconUrl: name.optional(),
  provider: provider.optional(),
  defaultInputModes: names,
  defaultOutputModes: names,
  signatures: z.array(signature).max(CARD_MAX_ITEMS).optional()
}
const skill = {
  id: name,
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

const requirementV1 = z.looseObject({ schemes: named(z.looseObject({ list: names.optional() })) })
const schemeV1 = z
  .looseObject({
    apiKeySecurityScheme: z.looseObject({ location: z.enum(['query', 'header', 'cookie']), name }),
    httpAuthSecurityScheme: z.looseObject({ scheme: name }),
    oauth2SecurityScheme: z.looseObject({ flows: z.looseObject({ ...flows, deviceCode }).partial(), oauth2MetadataUrl: name.optional() }),
    openIdConnectSecurityScheme: z.looseObject({ openIdConnectUrl: url }),
    mtlsSecurityScheme: z.looseObject({})
  })
  .partial()
const interfaceV1 = z.looseObject({ url: name, protocolBinding: name, protocolVersion: name, tenant: text.optional() })

/** A card of A2A 1.0. Unknown members are let through. */
export const cardV1Schema = z.looseObject({
  ...common,
  supportedInterfaces: z.array(interfaceV1).min(1, 'must not be empty').max(CARD_MAX_ITEMS),
  capabilities: z.looseObject({ ...capabilities, extendedAgentCard: z.boolean().optional() }),
  securitySchemes: named(schemeV1).optional(),
  securityRequirements: z.array(requirementV1).max(CARD_MAX_ITEMS).optional(),
  skills: z
    .array(z.looseObject({ ...skill, securityRequirements: z.array(requirementV1).max(CARD_MAX_ITEMS).optional() }))
    .max(CARD_MAX_SKILLS)
})

const requirementV03 = named(names)
const schemeV03 = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('apiKey'), in: z.enum(['query', 'header', 'cookie']), name }),
  z.looseObject({ type: z.literal('http'), scheme: name }),
  z.looseObject({ type: z.literal('oauth2'), flows: z.looseObject(flows).partial(), oauth2MetadataUrl: name.optional() }),
  z.looseObject({ type: z.literal('openIdConnect'), openIdConnectUrl: url }),
  z.looseObject({ type: z.literal('mutualTLS') })
])
const interfaceV03 = z.looseObject({ url: name, transport: name })

/** A card of A2A 0.3. Unknown members are let through. */
export const cardV03Schema = z.looseObject({
  ...common,
  protocolVersion: name,
  url: name,
  preferredTransport: name.optional(),
  additionalInterfaces: z.array(interfaceV03).max(CARD_MAX_ITEMS).optional(),
  capabilities: z.looseObject({ ...capabilities, stateTransitionHistory: z.boolean().optional() }),
  securitySchemes: named(schemeV03).optional(),
  security: z.array(requirementV03).max(CARD_MAX_ITEMS).optional(),
  supportsAuthenticatedExtendedCard: z.boolean().optional(),
  skills: z.array(z.looseObject({ ...skill, security: z.array(requirementV03).max(CARD_MAX_ITEMS).optional() })).max(CARD_MAX_SKILLS)
})

/** Is it an absolute URL that a client may be sent to? */
export function isWebUrl(given: string): boolean {
  const parsed = URL.canParse(given) ? new URL(given) : null
  return parsed !== null && ['http:', 'https:'].includes(parsed.protocol) && parsed.username === '' && parsed.password === ''
}
