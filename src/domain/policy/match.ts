import { isKeyText, type NodeId } from '../../kit/ids.js'
import { SIDE_EFFECTS, type SideEffect } from '../card/card.js'
import { MESSAGE_TYPES, type MessageType } from '../envelope/envelope.js'
import type { Tier } from '../routing/tier.js'
import type { PartyCriteria, PolicyRule } from './rule.js'

/** One end of a message as rules see it: verified, never what it claims. */
export interface PolicyParty {
  /** `agentId@nodeId`. */
  readonly address: string
  readonly tier: Tier
  readonly sandboxId: string | null
}

/** What rules are matched against. */
export interface PolicyQuestion {
  readonly sender: PolicyParty
  readonly target: PolicyParty
  readonly type: MessageType
  readonly capability: string | null
  readonly sideEffect: SideEffect | null
}

/** Finds the node that a name stands for; null for nobody. Names are given by peers: see that each stands for one node only. */
export type NodeOfName = (name: string) => NodeId | null

/** The rules of a policy, ready to be asked many times a second. Finding allocates nothing. */
export interface CompiledPolicy {
  /** The place of the first rule that matches; -1 when none does. */
  find(question: PolicyQuestion): number
}

interface Pattern {
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
  readonly sandboxes: readonly (string | null)[] | null
}

interface CompiledRule {
  readonly types: number
  readonly sideEffects: number
  readonly capabilities: readonly Pattern[] | null
  readonly from: CompiledParty
  readonly to: CompiledParty
}

const ALL = 0xffff
const TYPE_BITS = bitsOf(MESSAGE_TYPES)
const SIDE_EFFECT_BITS = bitsOf(SIDE_EFFECTS)
/** Of a message that would have nothing done: no list of side effects has it. */
const NOTHING_DONE = 1 << SIDE_EFFECTS.length

/** Makes rules fast to ask. A node named by its key is only that key, also when another node has that text as its name. */
export function compilePolicy(rules: readonly PolicyRule[], nodeOfName: NodeOfName): CompiledPolicy {
  const compiled = rules.map(compileRule)
  return {
    find(question) {
      const typeBit = TYPE_BITS.get(question.type) ?? 0
      const sideEffectBit = question.sideEffect === null ? NOTHING_DONE : (SIDE_EFFECT_BITS.get(question.sideEffect) ?? 0)
      for (let i = 0; i < compiled.length; i++) {
        const rule = compiled[i]
        if (rule === undefined || (rule.types & typeBit) === 0 || (rule.sideEffects & sideEffectBit) === 0) continue
        if (!isCapable(rule.capabilities, question.capability)) continue
        if (fits(rule.from, question.sender, nodeOfName) && fits(rule.to, question.target, nodeOfName)) return i
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
    from: compileParty(rule.from),
    to: compileParty(rule.to)
  }
}

function compileParty({ node, agent, tier, sandbox }: PartyCriteria): CompiledParty {
  const keys = node?.filter((one) => isKeyText(one)) ?? []
  return {
    tiers: tier === null ? ALL : tier.reduce<number>((mask, one) => mask | (1 << one), 0),
    agents: agent,
    suffixes: keys.map((key) => `@${key}`),
    names: node?.filter((one) => !isKeyText(one)) ?? [],
    isOfAnyNode: node === null,
    sandboxes: sandbox
  }
}

function patternOf(text: string): Pattern {
  return text.endsWith('*') ? { text: text.slice(0, -1), isPrefix: true } : { text, isPrefix: false }
}

function fits(criteria: CompiledParty, { address, tier, sandboxId }: PolicyParty, nodeOfName: NodeOfName): boolean {
  if ((criteria.tiers & (1 << tier)) === 0) return false
  if (criteria.sandboxes !== null && !criteria.sandboxes.includes(sandboxId)) return false
  // The last `@` parts agent and node, whatever else the text of a peer holds.
  const at = address.lastIndexOf('@')
  if (criteria.agents !== null && !isAgent(criteria.agents, address, at)) return false
  return criteria.isOfAnyNode || isOfNode(criteria, address, nodeOfName)
}

function isAgent(agents: readonly string[], address: string, at: number): boolean {
  for (const id of agents) if (id.length === at && address.startsWith(id)) return true
  return false
}

function isOfNode({ suffixes, names }: CompiledParty, address: string, nodeOfName: NodeOfName): boolean {
  for (const suffix of suffixes) if (address.endsWith(suffix)) return true
  for (const name of names) {
    const id = nodeOfName(name)
    if (id !== null && address.length > id.length && address.endsWith(id) && address[address.length - id.length - 1] === '@') return true
  }
  return false
}

function isCapable(patterns: readonly Pattern[] | null, capability: string | null): boolean {
  if (patterns === null) return true
  if (capability === null) return false
  for (const { text, isPrefix } of patterns) if (isPrefix ? capability.startsWith(text) : capability === text) return true
  return false
}

function maskOf<T extends string>(values: readonly T[] | null, bits: ReadonlyMap<T, number>): number {
  return values === null ? ALL : values.reduce((mask, one) => mask | (bits.get(one) ?? 0), 0)
}

function bitsOf<T extends string>(values: readonly T[]): ReadonlyMap<T, number> {
  return new Map(values.map((one, index) => [one, 1 << index]))
}
