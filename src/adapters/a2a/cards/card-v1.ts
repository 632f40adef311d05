import type { AgentProvider } from '../../../kit/names/provider.js'
import { DEFAULT_INPUT_MODES } from '../../../domain/gateway/content.js'
import type { CardInterface } from './card-interfaces.js'
import { type SecurityV1, securityV1 } from './card-security.js'
import type { CardSignature } from './card-signature.js'
import type { CardExtension, CardSkill, CardSubject } from './card-subject.js'

/** Media types for skills that name none: an input is an object, and text becomes one. */
export const DEFAULT_MODES = DEFAULT_INPUT_MODES

/** The card of A2A 1.0 of this node (specification, section 4.4.1, in the JSON form of its a2a.proto). */
export interface CardV1 {
  readonly name: string
  readonly description: string
  readonly supportedInterfaces: readonly CardInterface[]
  readonly provider?: AgentProvider
  readonly version: string
  readonly capabilities: {
    readonly streaming: boolean
    readonly pushNotifications: boolean
    readonly extensions: readonly CardExtension[]
    readonly extendedAgentCard: boolean
  }
  readonly securitySchemes: SecurityV1['securitySchemes']
  readonly securityRequirements: SecurityV1['securityRequirements']
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
  readonly skills: readonly CardSkill[]
  readonly signatures?: readonly CardSignature[]
}

/**
 * The card in the form of 1.0. Optional members with default values are left out, as signatures require (section
 * 8.4.1).
 */
export function toCardV1(subject: CardSubject): CardV1 {
  const { name, description, version, interfaces, skills, pushNotifications, extensions, provider, oauth } = subject
  return {
    name,
    description,
    supportedInterfaces: interfaces,
    ...(provider === undefined ? {} : { provider }),
    version,
    capabilities: { streaming: true, pushNotifications, extensions, extendedAgentCard: true },
    ...securityV1({ oauth }),
    defaultInputModes: DEFAULT_MODES,
    defaultOutputModes: DEFAULT_MODES,
    skills
  }
}
