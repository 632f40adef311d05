import type { NodeId } from '../../kit/ids.js'
import { isKeyText } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import type { AgentRegistry, RegisteredCard } from '../../domain/card/registry.js'
import type { PartyCriteria, PolicyRule } from '../../domain/policy/rule.js'
import type { UnaskedRule } from '../../ports/policy-api.js'
import type { Directory } from '../cards/directory.js'

/** Names that one warning lists. */
const LISTED = 3
const THERE = 'only the policy of that node can ask a person there'
const INSTEAD = 'the next rule that matches decides, else the tier table'

/** What telling them needs. */
export interface UnaskedDeps {
  readonly directory: Directory
  readonly registry: AgentRegistry
  readonly self: NodeId
  /** Which agents whoever wants to know finds. */
  readonly sees: (card: RegisteredCard) => boolean
}

/**
 * The rules that ask and that can ask nobody, as members and agents are now: what they match is for agents of other nodes, or
 * is a proposal. A rule of which that is not known is none of them.
 */
export function unanswerableRules(rules: readonly PolicyRule[], deps: UnaskedDeps): UnaskedRule[] {
  return rules.flatMap((rule) => {
    const reason = rule.decision === 'ask' ? reasonOf(rule, deps) : null
    return reason === null ? [] : [{ line: rule.line, message: `this rule asks nobody: ${reason}; ${INSTEAD}` }]
  })
}

function reasonOf({ type, to }: PolicyRule, deps: UnaskedDeps): string | null {
  if (type?.every((one) => one === 'task-proposal') === true) return 'a proposal runs nothing, and nothing else is meant'
  return elsewhereByNode(to, deps) ?? elsewhereByAgent(to, deps)
}

/** A name of nobody is told by itself: who will have it is not known. */
function elsewhereByNode({ node }: PartyCriteria, { directory, self }: UnaskedDeps): string | null {
  const meant = node?.map((one) => (isKeyText(one) ? [one] : directory.nodesOfName(one))) ?? []
  const isElsewhere = meant.length > 0 && meant.every((ids) => ids.length > 0 && !ids.includes(self))
  if (!isElsewhere) return null
  const names = [...new Set(meant.flat())].map((id) => directory.ref(id).name)
  return `it is for agents of ${listed(names)} alone, and ${THERE}`
}

/** Agents come and go: one that nobody has may be meant to come to this node. */
function elsewhereByAgent({ agent }: PartyCriteria, { directory, registry, self, sees }: UnaskedDeps): string | null {
  if (agent === null || registry.ofNode(self).some(({ id }) => agent.includes(id))) return null
  const others = registry.listAll().filter((card) => card.nodeId !== self && agent.includes(card.id) && sees(card))
  if (new Set(others.map(({ id }) => id)).size < agent.length) return null
  const addresses = others.map(({ address }) => directory.shownAddress(address))
  return `no agent of this node is meant, only ${listed(addresses)}, and ${THERE}`
}

function listed(names: readonly string[]): string {
  const reported = names.slice(0, LISTED).map((one) => shown(one, 64))
  return `${reported.join(', ')}${names.length > LISTED ? ` and ${names.length - LISTED} more` : ''}`
}
