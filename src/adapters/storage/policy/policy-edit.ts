import { stringify } from 'yaml'
import type { PartyCriteria, PolicyRule } from '../../../domain/policy/rule.js'
import { tierText } from '../../../domain/routing/tier.js'
import { NodeError } from '../../../kit/errors.js'
import { canonicalJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { WrittenRule } from '../../../ports/policy.js'
import { readPolicy, type RulePlace } from './policy-text.js'

/** A rule to write, and where. */
export interface RuleInsertion {
  readonly rule: Omit<PolicyRule, 'line'>
  /** Line of the rule that it is to stand in front of. */
  readonly beforeLine: number
  /** A comment behind it. */
  readonly note: string
}

/** The text of a policy file with one rule more, and where that stands. */
export interface EditedPolicy extends WrittenRule {
  readonly whole: string
}

/**
 * The text of a policy file with one rule added; the rest is unchanged. The result is read again and compared.
 * @throws NodeError CONFIG_INVALID when the text is broken, has no rule at that line, or cannot take one there
 */
export function insertRule(text: string, { rule, beforeLine, note }: RuleInsertion): EditedPolicy {
  const before = readPolicy(text)
  if (!before.ok) throw invalid(before.faults.list[0]?.reason ?? 'it is broken')
  const index = before.places.findIndex((one) => one.line === beforeLine)
  const place = before.places[index]
  if (place === undefined) throw invalid(`there is no rule at line ${beforeLine}`)
  const edited = place.isFlow ? intoFlow(text, place, rule) : intoBlock(text, place, { rule, note })
  const after = edited === null ? null : readPolicy(edited)
  const wanted = before.rules.toSpliced(index, 0, { ...rule, line: 0 }).map(withoutLine)
  if (edited === null || after?.ok !== true || canonicalJson(after.rules.map(withoutLine)) !== canonicalJson(wanted)) {
    throw invalid(`the rule cannot be written before line ${beforeLine}; write it yourself: - ${ruleText(rule)}`)
  }
  return { whole: edited, line: after.places[index]?.line ?? beforeLine, text: ruleText(rule) }
}

/** A rule on one line, as YAML. */
export function ruleText(rule: Omit<PolicyRule, 'line'>): string {
  const { name, from, to, capability, type, sideEffect, decision } = rule
  const data = {
    name,
    from: partyData(from),
    to: partyData(to),
    capability: short(capability),
    type: short(type),
    sideEffect: short(sideEffect)
  }
  return stringify({ ...data, decision }, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true }).trim()
}

function partyData({ node, agent, tier, sandbox, trust }: PartyCriteria): object | undefined {
  const data = {
    node: short(node),
    agent: short(agent),
    tier: short(tier?.map(tierText) ?? null),
    sandbox: short(sandbox),
    trust: short(trust ?? null)
  }
  return Object.values(data).every((one) => one === undefined) ? undefined : data
}

/** One value without its list; undefined when anything fits. */
function short(values: readonly unknown[] | null): unknown {
  return values === null ? undefined : values.length === 1 ? values[0] : values
}

function intoFlow(text: string, { offset }: RulePlace, rule: Omit<PolicyRule, 'line'>): string {
  return `${text.slice(0, offset)}${ruleText(rule)}, ${text.slice(offset)}`
}

/** In front of the dash, on a line of its own with the same indentation. null when the dash stands elsewhere. */
function intoBlock(
  text: string,
  { offset }: RulePlace,
  { rule, note }: Pick<RuleInsertion, 'rule' | 'note'>
): string | null {
  const dash = text.lastIndexOf('-', offset - 1)
  const start = text.lastIndexOf('\n', dash) + 1
  const indent = text.slice(start, dash)
  if (dash < 0 || indent.trim() !== '') return null
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  return `${text.slice(0, start)}${indent}- ${ruleText(rule)} # ${shown(note)}${end}${text.slice(start)}`
}

function withoutLine(rule: PolicyRule): unknown {
  return { ...rule, line: 0 }
}

function invalid(reason: string): NodeError {
  return new NodeError('CONFIG_INVALID', `the policy file: ${reason}`, { next: ['a2a-node policy show'] })
}
