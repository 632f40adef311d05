import { z } from 'zod'
import { agentIdSchema, lineSchema, sandboxIdSchema } from '../card/schema.js'
import { MESSAGE_TYPES, OPENING_TYPES } from '../envelope/envelope.js'
import { tierFromText, type Tier } from '../routing/tier.js'
import { ANYBODY, type PartyCriteria, type PolicyRule } from './rule.js'

/** Rules of one policy. */
export const MAX_RULES = 1000
/** Values of one criterion. */
const MAX_VALUES = 256

const tier = z
  .string()
  .refine((text) => tierFromText(text) !== null, 'takes L0, L1, L2 or L3')
  .transform((text): Tier => tierFromText(text) ?? 3)
const capability = z
  .string()
  .regex(/^[!-)+-?A-~]{0,128}\*?$/, 'takes the id of a capability, or its beginning with a * at the end')
  .min(1)
const openingTypes = MESSAGE_TYPES.filter((type) => OPENING_TYPES.has(type))
const oneType = z.enum(openingTypes, { error: `takes ${openingTypes.join(', ')}: replies pass along their exchange` })
const oneSideEffect = z.enum(['none', 'read', 'write', 'exec'], { error: 'takes none, read, write or exec' })

const party = z
  .strictObject({
    node: some(lineSchema(64)),
    agent: some(agentIdSchema),
    tier: some(tier),
    sandbox: some(sandboxIdSchema.nullable())
  })
  .default(ANYBODY)

/** One rule as it stands in a policy file: criteria take one value or a list; one that is left out fits anything. */
export const policyRuleSchema: z.ZodType<Omit<PolicyRule, 'line'>> = z.strictObject({
  from: party,
  to: party,
  capability: some(capability),
  type: some(oneType),
  sideEffect: some(oneSideEffect),
  decision: z.enum(['allow', 'ask', 'deny'], { error: 'takes allow, ask or deny' })
})

/** The keys of a rule, and of its `from` and `to`. */
export const RULE_KEYS: readonly string[] = ['from', 'to', 'capability', 'type', 'sideEffect', 'decision']
/** See {@link RULE_KEYS}. */
export const PARTY_KEYS: readonly (keyof PartyCriteria)[] = ['node', 'agent', 'tier', 'sandbox']

function some<T>(one: z.ZodType<T>): z.ZodType<readonly T[] | null> {
  return z
    .preprocess((value) => (value === undefined || Array.isArray(value) ? value : [value]), z.array(one).min(1).max(MAX_VALUES).optional())
    .transform((values) => values ?? null)
}
