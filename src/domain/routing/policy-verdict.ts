import { compilePolicy, type NodesOfName, type PolicyQuestion, type TrustOf } from '../policy/match.js'
import type { PolicyRule } from '../policy/rule.js'
import type { Verdict } from './decide.js'

/** The verdict of a policy on a message: the verdict of its first matching rule. */
export interface RoutingPolicy {
  /**
   * null: no rule matches. `ask` only holds messages that the tier table allows; where no person can be asked, such a
   * rule is skipped.
   */
  find(question: PolicyQuestion, mayAsk: boolean): PolicyVerdict | null
}

/** One rule's verdict, made once. */
export type PolicyVerdict =
  | { readonly decision: 'allow' | 'deny'; readonly verdict: Verdict }
  | { readonly decision: 'ask'; readonly verdict: Extract<Verdict, { allowed: false }> }

/** Further inputs of the rules. */
export interface PolicyPlaces {
  /** Name of the file, as verdicts tell it. */
  readonly file: string
  readonly nodesOfName: NodesOfName
  readonly trustOf: TrustOf
}

/**
 * Makes rules ready to decide. Verdicts name file and line, and the rule's own name: `policy.yaml:12: deny (no-shell)`.
 */
export function routingPolicy(
  rules: readonly PolicyRule[],
  { file, nodesOfName, trustOf }: PolicyPlaces
): RoutingPolicy {
  const compiled = compilePolicy(rules, { nodesOfName, trustOf })
  const verdicts = rules.map((rule) => verdictOf(rule, file))
  return {
    find(question, mayAsk) {
      const index = compiled.find(question, mayAsk)
      return index < 0 ? null : (verdicts[index] ?? null)
    }
  }
}

function verdictOf({ line, decision, name }: PolicyRule, file: string): PolicyVerdict {
  const rule = `${file}:${line}: ${decision}${name === undefined ? '' : ` (${name})`}`
  if (decision === 'allow') return { decision, verdict: { allowed: true, rule, line } }
  const refused = { allowed: false, code: 'POLICY_DENIED', rule, line } as const
  if (decision === 'deny') return { decision, verdict: { ...refused, reason: 'the policy denies it' } }
  return { decision, verdict: { ...refused, reason: 'a person must allow it first', asks: true } }
}
