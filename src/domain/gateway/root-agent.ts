/** The tag of a capability by which an agent takes messages that name no skill. */
const GENERAL = 'general'

/** The parts of an agent's definition that decide it. */
interface RootCandidate {
  readonly id: string
  readonly runtime: string
  readonly isReserved?: true
  readonly capabilities: readonly { readonly tags?: readonly string[] }[]
}

/**
 * The name of the agent that takes messages at the URL of the node which name neither agent nor skill: the configured
 * one (`a2a.default`), else the only agent besides the starters, else the only one with the tag `general`. null: none.
 */
export function rootAgent(configured: string | null, definitions: readonly RootCandidate[]): string | null {
  if (configured !== null) return configured
  const own = definitions.filter(({ runtime, isReserved }) => runtime !== 'starter' && isReserved !== true)
  const general = own.filter(({ capabilities }) => capabilities.some(({ tags = [] }) => tags.includes(GENERAL)))
  const [only, ...others] = own.length === 1 ? own : general
  return only === undefined || others.length > 0 ? null : only.id
}
