import { isKeyText, type NodeId } from '../../kit/ids.js'
import { SIDE_EFFECTS, type SideEffect } from '../card/card.js'
import { MESSAGE_TYPES, type MessageType } from '../envelope/envelope.js'
import type { Trust } from '../membership/types.js'
import type { Tier } from '../routing/tier.js'
import type { PartyCriteria, PolicyDecision, PolicyRule } from './rule.js'

/** One end of a message as rules see it, with verified facts, never its own claims. */
export interface PolicyParty {
  /** `agentId@nodeId`. */
  readonly address: string
  readonly tier: Tier
  readonly sandboxId: string | null
}

/** The input that rules are matched against. */
export interface PolicyQuestion {
  readonly sender: PolicyParty
  readonly target: PolicyParty
  readonly type: MessageType
  readonly capability: string | null
  readonly sideEffect: SideEffect | null
}

/**
 * Finds the nodes of a name or a prefix of an id: none, one, or several. An ambiguous one is read the stricter way:
 * each candidate is denied or asked about, and none is allowed.
 */
export type NodesOfName = (name: string) => readonly NodeId[]

/** How the deciding node regards a node; itself as `mine`. */
export type TrustOf = (node: NodeId) => Trust

/** The facts about nodes that rules ask for. */
export interface PolicyNodes {
  readonly nodesOfName: NodesOfName
  readonly trustOf: TrustOf
}

/**
 * The rules of a policy, ready to be asked many times a second. Finding allocates nothing, but the node id of a party
 * for each rule with `trust`.
 */
export interface CompiledPolicy {
  /**
   * Index of the first matching rule; -1 when none does. Where no person can be asked, rules with `ask` match nothing.
   */
  find(question: PolicyQuestion, mayAsk: boolean): number
}

interface TextPattern {
  readonly text: string
  readonly isPrefix: boolean
}

interface CompiledParty {
  readonly tiers: number
  readonly agents: readonly string[] | null
  /** `@` and the node id. */
  readonly suffixes: readonly string[]
  readonly names: readonly string[]
  readonly isOfAnyNode: boolean
  /** A name that may stand for more nodes than this stands for none. */
  readonly maxMeant: number
  readonly sandboxes: readonly (string | null)[] | null
  readonly trust: Trust | null
}

interface CompiledRule {
  readonly types: number
  readonly sideEffects: number
  readonly capabilities: readonly TextPattern[] | null
  readonly from: CompiledParty
  readonly to: CompiledParty
  readonly isAsk: boolean
}

const ALL = 0xffff
const TYPE_BITS = bitsOf(MESSAGE_TYPES)
const SIDE_EFFECT_BITS = bitsOf(SIDE_EFFECTS)
/** Of a message that would have nothing done: no list of side effects has it. */
const NOTHING_DONE = 1 << SIDE_EFFECTS.length

/**
 * Makes rules fast to ask. A node named by its key is only that key, also when another node has that text as its name.
 */
export function compilePolicy(rules: readonly PolicyRule[], nodes: PolicyNodes): CompiledPolicy {
  const compiled = rules.map(compileRule)
  return {
    find(question, mayAsk) {
      const typeBit = TYPE_BITS.get(question.type) ?? 0
      const sideEffectBit =
        question.sideEffect === null ? NOTHING_DONE : (SIDE_EFFECT_BITS.get(question.sideEffect) ?? 0)
      for (let i = 0; i < compiled.length; i++) {
        const rule = compiled[i]
        if (rule === undefined || (rule.types & typeBit) === 0 || (rule.sideEffects & sideEffectBit) === 0) continue
        if (!isCapable(rule.capabilities, question.capability) || (rule.isAsk && !mayAsk)) continue
        if (fits(rule.from, question.sender, nodes) && fits(rule.to, question.target, nodes)) return i
      }
      return -1
    }
  }
}

function compileRule(rule: PolicyRule): CompiledRule {
  return {
    types: maskOf(rule.type, TYPE_BITS),
    sideEffects: maskOf(rule.sideEffect, SIDE_EFFECT_BITS),
    capabilities: rule.capability?.map(patternOf) ?? null,
    from: compileParty(rule.from, rule.decision),
    to: compileParty(rule.to, rule.decision),
    isAsk: rule.decision === 'ask'
  }
}

function compileParty({ node, agent, tier, sandbox, trust }: PartyCriteria, decision: PolicyDecision): CompiledParty {
  const keys = node?.filter((one) => isKeyText(one)) ?? []
  return {
    tiers: tier === null ? ALL : tier.reduce<number>((mask, one) => mask | (1 << one), 0),
    agents: agent,
    suffixes: keys.map((key) => `@${key}`),
    names: node?.filter((one) => !isKeyText(one)) ?? [],
    isOfAnyNode: node === null,
    maxMeant: decision === 'allow' ? 1 : Number.POSITIVE_INFINITY,
    sandboxes: sandbox,
    trust: trust === undefined || new Set(trust).size > 1 ? null : (trust[0] ?? null)
  }
}

function patternOf(text: string): TextPattern {
  return text.endsWith('*') ? { text: text.slice(0, -1), isPrefix: true } : { text, isPrefix: false }
}

function fits(criteria: CompiledParty, { address, tier, sandboxId }: PolicyParty, nodes: PolicyNodes): boolean {
  if ((criteria.tiers & (1 << tier)) === 0) return false
  if (criteria.sandboxes !== null && !criteria.sandboxes.includes(sandboxId)) return false
  // The last `@` parts agent and node, whatever else the text of a peer holds.
  const at = address.lastIndexOf('@')
  if (criteria.agents !== null && !isAgent(criteria.agents, address, at)) return false
  if (criteria.trust !== null && nodes.trustOf(address.slice(at + 1)) !== criteria.trust) return false
  return criteria.isOfAnyNode || isOfNode(criteria, address, nodes.nodesOfName)
}

function isAgent(agents: readonly string[], address: string, at: number): boolean {
  for (const id of agents) if (id.length === at && address.startsWith(id)) return true
  return false
}

function isOfNode({ suffixes, names, maxMeant }: CompiledParty, address: string, nodesOfName: NodesOfName): boolean {
  for (const suffix of suffixes) if (address.endsWith(suffix)) return true
  for (const name of names) {
    const ids = nodesOfName(name)
    if (ids.length > maxMeant) continue
    for (const id of ids)
      if (address.length > id.length && address.endsWith(id) && address[address.length - id.length - 1] === '@')
        return true
  }
  return false
}

function isCapable(patterns: readonly TextPattern[] | null, capability: string | null): boolean {
  if (patterns === null) return true
  if (capability === null) return false
  for (const { text, isPrefix } of patterns)
    if (isPrefix ? capability.startsWith(text) : capability === text) return true
  return false
}

function maskOf<T extends string>(values: readonly T[] | null, bits: ReadonlyMap<T, number>): number {
  return values === null ? ALL : values.reduce((mask, one) => mask | (bits.get(one) ?? 0), 0)
}

function bitsOf<T extends string>(values: readonly T[]): ReadonlyMap<T, number> {
  return new Map(values.map((one, index) => [one, 1 << index]))
}
