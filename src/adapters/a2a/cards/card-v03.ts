import type { AgentProvider } from '../../../kit/names/provider.js'
import { hybridSecurity, type SecurityV03, securityV03 } from './card-security.js'
import type { CardSignature } from './card-signature.js'
import type { CardExtension, CardSkill, CardSubject } from './card-subject.js'
import { type CardV1, DEFAULT_MODES, toCardV1 } from './card-v1.js'

/** The card of A2A 0.3 of this node (specification 0.3.0, section 5.5). */
export interface CardV03 {
  readonly protocolVersion: string
  readonly name: string
  readonly description: string
  readonly url: string
  readonly preferredTransport: string
  readonly additionalInterfaces: readonly { readonly url: string; readonly transport: string }[]
  readonly provider?: AgentProvider
  readonly version: string
  readonly capabilities: {
    readonly streaming: boolean
    readonly pushNotifications: boolean
    readonly stateTransitionHistory: boolean
    readonly extensions: readonly CardExtension[]
  }
  readonly securitySchemes: SecurityV03['securitySchemes']
  readonly security: SecurityV03['security']
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
  readonly skills: readonly CardSkill[]
  readonly supportsAuthenticatedExtendedCard: boolean
  readonly signatures?: readonly CardSignature[]
}

/** One object that is a card of both versions: each reads the members it knows. */
export type HybridCard = CardV03 & CardV1

/** The card in the form of 0.3. */
export function toCardV03(subject: CardSubject): CardV03 {
  const { name, description, version, interfaces, skills, pushNotifications, extensions, provider, oauth } = subject
  const spoken = interfaces
    .filter(({ protocolVersion }) => protocolVersion === '0.3')
    .map(({ url, protocolBinding }) => ({ url, transport: protocolBinding }))
  return {
    protocolVersion: '0.3.0',
    name,
    description,
    url: spoken[0]?.url ?? '',
    preferredTransport: spoken[0]?.transport ?? '',
    additionalInterfaces: spoken,
    ...(provider === undefined ? {} : { provider }),
    version,
    capabilities: { streaming: true, pushNotifications, stateTransitionHistory: false, extensions },
    ...securityV03({ oauth }),
    defaultInputModes: DEFAULT_MODES,
    defaultOutputModes: DEFAULT_MODES,
    skills,
    supportsAuthenticatedExtendedCard: true
  }
}

/** The card for clients that name no version. */
export function toHybridCard(subject: CardSubject): HybridCard {
  const [old, one] = [toCardV03(subject), toCardV1(subject)]
  return {
    ...old,
    ...one,
    capabilities: { ...old.capabilities, ...one.capabilities },
    ...hybridSecurity(subject)
  }
}
