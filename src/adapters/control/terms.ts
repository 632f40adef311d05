/** Words of the domain that clients of the control API need as values: tiers and bounds on a command line. */
export { type Tier, tierFromText, tierText } from '../../domain/routing/tier.js'

/** The most pings of one call. */
export const MAX_PINGS = 1000
/** The most events that one call lists. */
export const MAX_LISTED_EVENTS = 2000
/** The most tasks that one call lists. */
export const MAX_LISTED_TASKS = 5000
/** The most records of tool calls that one call lists. */
export const MAX_LISTED_TOOL_CALLS = 2000
