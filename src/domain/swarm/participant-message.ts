import { z } from 'zod'
import { MAX_RECORD_INDEX, MAX_RECORDS } from './coordination-message.js'

/** Bytes of the data with which a participant continues a swarm: its spec, and its items with their inputs. */
export const MAX_PLAN_BYTES = 16 * 1024 * 1024
/** Bytes of one content: the outcome of an item, or the plan of a swarm, as it is kept. */
export const MAX_CONTENT_BYTES = 17 * 1024 * 1024
/** Bytes of a content in one message. */
export const PIECE_BYTES = 32 * 1024
/** Pieces in one message, and pieces asked for at once. */
export const MAX_PIECES = 128
/** In the place of a record's index: the plan. */
export const PLAN_INDEX = -1
/** Ids of swarms, as they stand in messages and keys. */
const SWARM_ID = /^swarm_[A-Za-z0-9_-]{1,40}$/

const Swarm = z.string().regex(SWARM_ID)
const Digest = z.string().min(1).max(64)
const Index = z.int().min(PLAN_INDEX).max(MAX_RECORD_INDEX)
const Place = z.int().min(0).max(MAX_CONTENT_BYTES)
const Ledger = z.string().min(1).max(64)

/**
 * Messages between participants of a swarm beside coordination: invitations, accepted outcomes, and contents by their
 * digests.
 */
export const PARTICIPANT_SCHEMA = z.discriminatedUnion('kind', [
  /**
   * The launcher invites the receiver. `digest`, `bytes`: of the plan. `ledger`: what the ledger of the receiver was
   * called when it joined; null: it has not said so yet.
   */
  z.strictObject({
    kind: z.literal('seat'),
    swarm: Swarm,
    digest: Digest,
    bytes: z.int().min(1).max(MAX_PLAN_BYTES),
    ledger: Ledger.nullable()
  }),
  /** The plan is durable here. `isOpen`: and it votes. */
  z.strictObject({ kind: z.literal('seated'), swarm: Swarm, ledger: Ledger, isOpen: z.boolean() }),
  /** Asks for contents, each from a byte on. */
  z.strictObject({
    kind: z.literal('want'),
    swarm: Swarm,
    wants: z
      .array(z.strictObject({ index: Index, digest: Digest, at: Place }))
      .min(1)
      .max(MAX_PIECES)
  }),
  /** Pieces of contents, in base64; `bytes`: of the whole. */
  z.strictObject({
    kind: z.literal('pieces'),
    swarm: Swarm,
    pieces: z
      .array(
        z.strictObject({ index: Index, digest: Digest, at: Place, bytes: Place, data: z.string().max(PIECE_BYTES * 2) })
      )
      .min(1)
      .max(MAX_PIECES)
  }),
  /** Requests accepted records from an index on; the sender has `have` of them. */
  z.strictObject({
    kind: z.literal('follow'),
    swarm: Swarm,
    have: z.int().min(0),
    from: z.int().min(0).max(MAX_RECORD_INDEX)
  }),
  /** The sender requests its cancellation: sent to the coordinator each second. */
  z.strictObject({ kind: z.literal('cancel'), swarm: Swarm }),
  /**
   * Records that are accepted. `total`: of all; `next`: from where on there are more, null for none or when they are
   * news.
   */
  z.strictObject({
    kind: z.literal('accepted'),
    swarm: Swarm,
    epoch: z.int().min(0),
    total: z.int().min(0),
    items: z.array(z.strictObject({ index: z.int().min(0).max(MAX_RECORD_INDEX), digest: Digest })).max(MAX_RECORDS),
    next: z.int().min(0).max(MAX_RECORD_INDEX).nullable()
  })
])

/** A message between participants of a swarm that is none of coordination. */
export type ParticipantMessage = z.infer<typeof PARTICIPANT_SCHEMA>

/** The message of one kind. */
export type ParticipantMessageOf<K extends ParticipantMessage['kind']> = Extract<
  ParticipantMessage,
  { readonly kind: K }
>
