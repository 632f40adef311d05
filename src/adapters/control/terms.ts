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

/** The longest life of a token that ends: 366 days in milliseconds. */
export const TOKEN_TTL_MAX_MS = 31_622_400_000
/** Form of the name of a program that asks for rights of its own. */
export const CALLER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Form of a glob of ids of agents that such a program may use. */
export const CALLER_GLOB = /^[A-Za-z0-9._*-]{1,128}$/
/** Form of a glob of tools that the lists of such a program have. */
export const TOOL_GLOB = /^[A-Za-z0-9._@/*-]{1,256}$/
/** The most globs of one program. */
export const CALLER_GLOBS_MAX = 64
