import { tierFromText, tierText } from '../../adapters/control/terms.js'
import { NodeError } from '../../kit/errors.js'
import type { DocumentRuleInfo, DocumentRuleRequest } from '../../ports/document-api.js'
import { sandboxArgument } from '../options.js'

const SANDBOX = 'sandbox:'

/** Every member in no sandbox: how a document begins. */
export const EVERYBODY: DocumentRuleRequest = { members: [], tier: 'L3', sandboxes: [], unsandboxed: true }

/**
 * The rule of an access option. `everybody` means all in no sandbox, a tier includes stronger ones in no sandbox,
 * `mine` the machines of this node's person as they are now, `nobody` excludes other words. `sandbox:<id>` admits that
 * tier, else any. Commas separate several words. Any other word is a member by name or id. Null without the option.
 * @throws NodeError USAGE for contradictory words
 */
export function accessRule(given: readonly string[], label: string): DocumentRuleRequest | null {
  if (given.length === 0) return null
  const words = given.flatMap((text) => text.split(',')).map((word) => word.trim())
  if (words.includes(''))
    throw new NodeError(
      'USAGE',
      `${label} takes everybody, nobody, mine, a tier, sandbox:<id> or a member, not nothing`
    )
  if (words.includes('nobody') && words.length > 1) throw new NodeError('USAGE', `${label} nobody excludes other words`)
  const tiers = [...new Set(words.map(tierFromText).filter((tier) => tier !== null))]
  const isOpen = words.includes('everybody')
  if (tiers.length + Number(isOpen) > 1)
    throw new NodeError('USAGE', `${label} takes one tier (the weakest one with access), or everybody`)
  const sandboxes = words
    .filter(isSandbox)
    .map((word) => sandboxArgument(word.slice(SANDBOX.length), `${label} ${SANDBOX}`))
  const [tier] = tiers
  const least = tier === undefined ? (isOpen || sandboxes.length > 0 ? 'L3' : null) : tierText(tier)
  const members = words.filter(
    (word) => !isSandbox(word) && tierFromText(word) === null && !['everybody', 'nobody', 'mine'].includes(word)
  )
  return {
    members,
    ...(words.includes('mine') ? { mine: true } : {}),
    tier: least,
    sandboxes,
    unsandboxed: isOpen || tier !== undefined
  }
}

/** The current rule as a request. Undefined: the document is unrestricted. */
export function ruleRequest(rule: DocumentRuleInfo | undefined): DocumentRuleRequest {
  return rule === undefined ? EVERYBODY : { ...rule, members: rule.members.map(({ id }) => id) }
}

function isSandbox(word: string): boolean {
  return word.startsWith(SANDBOX)
}
