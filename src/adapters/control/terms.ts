/** Words of the domain that clients of the control API need as values: tiers and bounds on a command line. */
export { type Tier, tierFromText, tierText } from '../../domain/routing/tier.js'

/** The most pings of one call. */
export const MAX_PINGS = 1000
/** The most events, tasks and records of tool calls that one call lists. */
export const MAX_LISTED = { events: 2000, tasks: 5000, toolCalls: 2000 } as const
