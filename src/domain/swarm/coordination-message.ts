import { z } from 'zod'
import { isKeyText, type NodeId } from '../../kit/ids.js'

/** Records in one message. */
export const MAX_RECORDS = 500
/**
 * The highest index of a record: of each item its outcome and its mark, and the end of the swarm (see record-index.ts).
 */
export const MAX_RECORD_INDEX = 20_000

const Index = z.int().min(0).max(MAX_RECORD_INDEX)
const Epoch = z.int().min(0)
const Digest = z.string().min(1).max(64)
/** Every message names its swarm; an answer repeats `run` and `round`. */
const about = { swarm: z.string().min(1).max(64), run: z.string().min(1).max(64), round: z.int().min(0) }

/** Coordination messages between participants of a swarm. */
export const COORDINATION_SCHEMA = z.discriminatedUnion('kind', [
  /** The sender wants to coordinate, or to continue, in this epoch. */
  z.strictObject({ ...about, kind: z.literal('ask'), epoch: Epoch }),
  /** Granted: the lease counts from the request. */
  z.strictObject({ ...about, kind: z.literal('granted'), epoch: Epoch }),
  /** It may not. `epoch`: the highest that the sender has granted. */
  z.strictObject({ ...about, kind: z.literal('refused'), epoch: Epoch }),
  /** The coordinator of this epoch has outcomes recorded. */
  z.strictObject({
    ...about,
    kind: z.literal('record'),
    epoch: Epoch,
    items: z
      .array(z.strictObject({ index: Index, digest: Digest }))
      .min(1)
      .max(MAX_RECORDS)
  }),
  /** They are durable here. */
  z.strictObject({ ...about, kind: z.literal('recorded'), epoch: Epoch }),
  /** Asks for the records from an index on. */
  z.strictObject({ ...about, kind: z.literal('read'), from: Index }),
  /**
   * Existing records in rising order; `next`: start of the next page, null for none. `epoch`, `candidate`: the last
   * grant.
   */
  z.strictObject({
    ...about,
    kind: z.literal('held'),
    epoch: Epoch,
    candidate: z.custom<NodeId>(isKeyText).nullable(),
    from: Index,
    items: z.array(z.strictObject({ index: Index, epoch: Epoch, digest: Digest })).max(MAX_RECORDS),
    next: Index.nullable()
  })
])

/** A message between participants of a swarm about its coordination. */
export type CoordinationMessage = z.infer<typeof COORDINATION_SCHEMA>

/** The message of one kind. */
export type MessageOf<K extends CoordinationMessage['kind']> = Extract<CoordinationMessage, { readonly kind: K }>

/** To whom a message goes. One to the node itself is handed to its own machines. */
export interface Tell {
  readonly type: 'tell'
  readonly to: NodeId
  readonly message: CoordinationMessage
}

/** Checks a message as a control frame carried it. Never throws. */
export function decodeCoordination(
  body: unknown
): { readonly ok: true; readonly message: CoordinationMessage } | { readonly ok: false; readonly reason: string } {
  const checked = COORDINATION_SCHEMA.safeParse(body)
  if (checked.success) return { ok: true, message: checked.data }
  return { ok: false, reason: `coordination: ${checked.error.issues[0]?.path.join('.') || 'body'} does not fit` }
}
