/** Words of the domain that clients of the control API need as values: tiers on a command line. */
export { type Tier, tierFromText, tierText } from '../../domain/routing/tier.js'
