import type { CardOAuth } from './card-subject.js'

/** Name of the scheme of a token of this node. */
const SCHEME = 'bearer'

type Schemes = Readonly<Record<string, object>>
type Flows = Readonly<Record<string, object>>

/** Authentication in the form of 1.0: one of the schemes is enough. No scopes are an empty StringList. */
export interface SecurityV1 {
  readonly securitySchemes: Schemes
  readonly securityRequirements: readonly { readonly schemes: Schemes }[]
}

/** The same in the form of 0.3. */
export interface SecurityV03 {
  readonly securitySchemes: Schemes
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
}

/** Authentication in the form of 1.0. A scheme of 1.0 has one flow, so each flow has a scheme. */
export function securityV1({ oauth }: { readonly oauth?: CardOAuth | undefined }): SecurityV1 {
  const securitySchemes = {
    [SCHEME]: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
    ...each(oauth, (flows, oauth2MetadataUrl) => ({ oauth2SecurityScheme: { flows, oauth2MetadataUrl } }), true)
  }
  return {
    securitySchemes,
    securityRequirements: Object.keys(securitySchemes).map((name) => ({ schemes: { [name]: {} } }))
  }
}

/** Authentication in the form of 0.3, which has no device flow. */
export function securityV03({ oauth }: { readonly oauth?: CardOAuth | undefined }): SecurityV03 {
  const securitySchemes = {
    [SCHEME]: { type: 'http', scheme: 'bearer' },
    ...each(oauth, (flows, oauth2MetadataUrl) => ({ type: 'oauth2', flows, oauth2MetadataUrl }), false)
  }
  return { securitySchemes, security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })) }
}

/**
 * For clients of either version: each scheme has the members of both. The device flow is left out, since 0.3 has none.
 */
export function hybridSecurity(subject: { readonly oauth?: CardOAuth | undefined }): SecurityV1 & SecurityV03 {
  const [old, one] = [securityV03(subject), securityV1(subject)]
  const names = Object.keys(old.securitySchemes)
  return {
    securitySchemes: Object.fromEntries(
      names.map((name) => [name, { ...old.securitySchemes[name], ...one.securitySchemes[name] }])
    ),
    security: old.security,
    securityRequirements: names.map((name) => ({ schemes: { [name]: {} } }))
  }
}

function each(
  oauth: CardOAuth | undefined,
  scheme: (flows: Flows, metadataUrl: string) => object,
  withDevices: boolean
): Schemes {
  if (oauth === undefined) return {}
  const { issuer, scopes } = oauth
  const tokenUrl = `${issuer}/oauth/token`
  const flows: Flows = {
    authorizationCode: { authorizationUrl: `${issuer}/oauth/authorize`, tokenUrl, refreshUrl: tokenUrl, scopes },
    clientCredentials: { tokenUrl, scopes },
    ...(withDevices
      ? { deviceCode: { deviceAuthorizationUrl: `${issuer}/oauth/device_authorization`, tokenUrl, scopes } }
      : {})
  }
  const metadataUrl = `${issuer}/.well-known/oauth-authorization-server`
  return Object.fromEntries(
    Object.entries(flows).map(([name, flow]) => [`oauth2-${name}`, scheme({ [name]: flow }, metadataUrl)])
  )
}
