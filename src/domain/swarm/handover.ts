import { z } from 'zod'
import { ERROR_CODES, isErrorCode } from '../../kit/errors.js'
import type { ErrorBody, ErrorCode } from '../../kit/errors.js'
import { isKeyText, type NodeId } from '../../kit/ids.js'
import { decodeStored } from '../envelope/codec.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'
import type { Tier } from '../routing/tier.js'
import { MAX_VOTERS } from './coordination.js'
import type { Stage } from './expand.js'

/** Items of one swarm, at most. */
const MAX_ITEMS = 10_000
/** Sub-tasks of one swarm, at most: of a plan each may have another that judges. */
const MAX_STAGES = 600
/** Agents that one swarm names. */
const MAX_AGENTS = 10_000
/** A swarm may last so long, in milliseconds: 60 days. */
const MAX_LIFE_MS = 60 * 86_400_000

const Text = z.string().max(65_536)
const Name = z.string().min(1).max(128)
const Shown = z.string().max(512)
const Count = z.int().min(0).max(MAX_ITEMS)
/** Largest time of a Date. */
const MAX_DATE = 8.64e15
const Time = z.number().min(0).max(Number.MAX_SAFE_INTEGER)
const Code = z.string().transform((code): ErrorCode => (isErrorCode(code) ? code : 'INTERNAL'))

const ErrorRow: z.ZodType<ErrorBody> = z
  .object({
    code: Code,
    message: z.string().max(8192),
    retryable: z.boolean().default(false),
    isFinal: z.literal(true).optional(),
    data: z.unknown().optional()
  })
  .transform(({ code, message, retryable, isFinal, data }) => {
    const body = {
      code,
      message,
      retryable,
      ...(isFinal === undefined ? {} : { isFinal }),
      next: ERROR_CODES[code].next
    }
    return data === undefined ? body : { ...body, data }
  })

const LeftOutRow = z.object({
  agent: Shown,
  rule: Text,
  code: z.string().refine(isErrorCode).exactOptional(),
  capability: Name.exactOptional()
})

const StageRow = z.object({
  id: Name,
  capability: Name,
  further: z.array(Name).max(64).exactOptional(),
  labels: z.array(z.string().max(64)).max(32).exactOptional(),
  rule: z.enum(['all', 'any', 'first', 'majority']),
  from: Count,
  count: z.int().min(1).max(MAX_ITEMS),
  isList: z.boolean(),
  needs: z.array(Name).max(MAX_STAGES),
  isGathering: z.boolean().exactOptional(),
  isDistinct: z.boolean().exactOptional(),
  when: z.string().max(4096).exactOptional(),
  template: z.unknown().exactOptional()
})

const Power = z.object({
  maxTier: z.custom<Tier>((tier) => tier === 0 || tier === 1 || tier === 2 || tier === 3),
  sandboxId: z.string().max(128).nullable().exactOptional()
})

const RequestRow = z.object({
  goal: Text,
  capability: Name,
  strategy: z.enum(['each', 'map', 'race', 'vote', 'pipeline', 'plan']),
  reduce: Name.exactOptional(),
  labels: z.array(z.string().max(64)).max(32).exactOptional(),
  maxParallel: z.int().min(1).max(MAX_ITEMS).exactOptional(),
  retries: z.int().min(0).max(100).exactOptional(),
  justification: z.string().max(1024).exactOptional(),
  allowRepeat: z.boolean().exactOptional(),
  round: z
    .object({ number: z.int().min(1).max(MAX_ITEMS), check: Text, first: z.string().max(64).exactOptional() })
    .exactOptional()
})

const HeadRow = z.object({
  id: z.string().min(1).max(64),
  request: RequestRow,
  capabilities: z.array(Name).min(1).max(64),
  stages: z.array(StageRow).min(1).max(MAX_STAGES),
  output: z.unknown().exactOptional(),
  onBehalfOf: Power.exactOptional(),
  agents: z.array(Shown).max(MAX_AGENTS),
  leftOut: z.array(LeftOutRow).max(MAX_AGENTS),
  itemCount: z.int().min(1).max(MAX_ITEMS),
  createdAt: Time,
  deadline: Time,
  expiresAt: Time,
  voters: z.array(z.custom<NodeId>(isKeyText)).min(1).max(MAX_VOTERS)
})

const ItemRow = z.object({
  name: z.string().max(65_536),
  pinnedTo: z.string().max(128).exactOptional(),
  input: z.unknown().exactOptional(),
  given: z.unknown().exactOptional()
})

const PlanRow = z.object({ head: HeadRow, items: z.array(ItemRow).min(1).max(MAX_ITEMS) })

const OutcomeRow = z.object({
  index: Count,
  order: z.int().min(0),
  holder: z.string().max(128),
  row: z.object({
    stage: Name.exactOptional(),
    item: z.string().max(65_536),
    agent: Shown,
    attempt: z.int().min(0),
    status: z.enum(['completed', 'failed', 'unknown', 'skipped', 'canceled']),
    result: z.unknown(),
    error: ErrorRow.nullable(),
    durationMs: z.number().nullable()
  })
})

const StageEnd = z.object({
  id: Name,
  capability: Name,
  labels: z.array(z.string().max(64)).max(32),
  items: Count,
  needs: z.array(Name).max(MAX_STAGES),
  status: z.enum(['waiting', 'open', 'completed', 'partial', 'failed', 'skipped']),
  reason: Text
})

const EndRow = z.object({
  status: z.enum(['completed', 'failed', 'partial', 'canceled']),
  counts: z.object({
    total: Count,
    completed: Count,
    failed: Count,
    skipped: Count.exactOptional(),
    unknown: Count.exactOptional()
  }),
  durationMs: z.number(),
  error: ErrorRow.nullable(),
  stages: z.array(StageEnd).max(MAX_STAGES),
  participants: z.array(Shown).max(MAX_AGENTS),
  leftOut: z.array(LeftOutRow).max(MAX_AGENTS),
  canceledBy: z
    .object({ node: z.custom<NodeId>(isKeyText), caller: Shown.nullable(), at: Time.max(MAX_DATE) })
    .exactOptional()
})

const MarkRow = z.object({
  node: z.custom<NodeId>(isKeyText),
  agent: z.string().min(1).max(128),
  attempt: z.int().min(1).max(1_000_000),
  failures: z.int().min(0).max(1000)
})

/** The data with which a participant can continue a swarm. */
export type HandedPlan = z.infer<typeof PlanRow>
/** That an item which may not be repeated was leased, by which node, to whom. */
export type LeaseMark = z.infer<typeof MarkRow>

/** Decodes the plan of a swarm from its launcher; null for an invalid one. Never throws. */
export function decodePlan(bytes: Uint8Array, now: number): HandedPlan | null {
  const plan = decoded(PlanRow, bytes)
  if (plan === null || plan.items.length !== plan.head.itemCount || !isWhole(plan.head.stages, plan.items.length))
    return null
  const { voters, expiresAt } = plan.head
  return new Set(voters).size === voters.length && expiresAt <= now + 2 * MAX_LIFE_MS ? plan : null
}

/**
 * Decodes the outcome of an item; null for an invalid one, or one of more than `takesBytes` of JSON (1 MiB at least).
 * Never throws.
 */
export function decodeOutcome(bytes: Uint8Array, takesBytes: number): z.infer<typeof OutcomeRow> | null {
  return decoded(OutcomeRow, bytes, takesBytes)
}

/** Decodes the end of a swarm; null for an invalid one. Never throws. */
export function decodeEnd(bytes: Uint8Array): z.infer<typeof EndRow> | null {
  return decoded(EndRow, bytes)
}

/** Decodes the mark of an item; null for an invalid one. Never throws. */
export function decodeMark(bytes: Uint8Array): LeaseMark | null {
  return decoded(MarkRow, bytes)
}

function decoded<T>(
  schema: z.ZodType<T>,
  bytes: Uint8Array,
  takesBytes: number = ENVELOPE_LIMITS.maxJsonBytes
): T | null {
  const read = decodeStored(bytes, takesBytes)
  return read.ok ? (schema.safeParse(read.value).data ?? null) : null
}

/** Do the sub-tasks have all items, one after the other, names of their own, and no circle among their needs? */
function isWhole(stages: readonly Stage[], items: number): boolean {
  const ids = new Set(stages.map(({ id }) => id))
  let from = 0
  for (const stage of stages) {
    if (stage.from !== from) return false
    from += stage.count
  }
  return from === items && ids.size === stages.length && isOrdered(stages)
}

function isOrdered(stages: readonly Stage[]): boolean {
  const done = new Set<string>()
  for (let before = -1; before !== done.size; ) {
    before = done.size
    for (const { id, needs } of stages) if (needs.every((one) => done.has(one))) done.add(id)
  }
  return done.size === stages.length
}
