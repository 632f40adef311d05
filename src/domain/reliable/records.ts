import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import { unwritten } from '../../kit/bytes.js'
import { NodeError } from '../../kit/errors.js'
import type { ErrorBody } from '../../kit/errors.js'
import type { CallerAuthority } from '../routing/effective.js'
import type { LaneReceiver } from './lane-receiver.js'
import type { LaneSender, Unacked } from './lane-sender.js'
import type { RequestStatus } from './request.js'

/** First byte of every record; another one is of another version of this program. */
const VERSION = 1

/** How one kind of record is written and read. */
export interface RecordCodec<T> {
  encode(value: T): Uint8Array
  /** @throws NodeError STORE_DAMAGED; SCHEMA_VERSION_MISMATCH when another version of this program wrote it */
  decode(bytes: Uint8Array): T
}

/** Ledger record of the sending end of a lane. */
export const senderRecord: RecordCodec<Pick<LaneSender, 'next'>> = record(struct({ next: c.uint }))

/** Ledger record of the receiving end of a lane. */
export const receiverRecord: RecordCodec<Pick<LaneReceiver<unknown>, 'contig' | 'lastId'>> = record(
  struct({ contig: c.uint, lastId: orNull(c.string) })
)

/** Ledger record of a message without its content and number. */
export interface MessageRecord extends Omit<Unacked, 'seq'> {
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
}

/** See {@link MessageRecord}. */
export const messageRecord: RecordCodec<MessageRecord> = record(
  struct({ messageId: c.string, requestId: orNull(c.string), bytes: c.uint, expiresAt: c.uint, isVoid: c.bool })
)

/** Ledger record of a request at either end, without its input and result. Times are unix milliseconds. */
export interface RequestRecord {
  readonly role: 'caller' | 'callee'
  readonly requestId: string
  readonly attempt: number
  /** Addresses of the agent that asks and of the one that is asked. */
  readonly source: string
  readonly target: string
  /** null: the default capability. */
  readonly capability: string | null
  readonly description: string
  /** The swarm of the item; null for none. */
  readonly swarm: string | null
  readonly correlationId: string
  readonly taskId: string | null
  readonly status: RequestStatus
  readonly isRepeatable: boolean
  /** Times that it was sent (caller) or begun (callee). */
  readonly tries: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly deadline: number
  readonly retryAt: number | null
  readonly expiresAt: number
  readonly error: ErrorBody | null
  /**
   * Retry state of its caller. Null at the callee, except for a lease that others may query, and for requests that the
   * end of their node interrupted.
   */
  readonly asking: AskingRecord | null
}

/** How a request is asked, and asked again. */
export interface AskingRecord {
  readonly justification?: string
  /** The original caller, when it may be weaker than the sender. */
  readonly onBehalfOf?: CallerAuthority
  /** It waits for an agent that is away or has no room. */
  readonly mayQueue: boolean
  /** It may be run again, though its capability says that it may not. */
  readonly allowRepeat?: boolean
  /** Is its stored input `{input, conversation}`? */
  readonly hasConversation?: true
  /** At the callee: the digest of the nodes that may query the lease beside its caller. */
  readonly voters?: string
  /** At the node that is asked: ends of the node that cut a run of it short, from 1; absent for none. */
  readonly cuts?: number
  /** The attempt that ended it, as its node says; absent for the first. */
  readonly run?: number
}

/** See {@link RequestRecord}. */
export const requestRecord: RecordCodec<RequestRecord> = record(
  struct({
    role: oneOf(['caller', 'callee']),
    requestId: c.string,
    attempt: c.uint,
    source: c.string,
    target: c.string,
    capability: orNull(c.string),
    description: c.string,
    swarm: orNull(c.string),
    correlationId: c.string,
    taskId: orNull(c.string),
    status: oneOf(['pending', 'started', 'unknown', 'completed', 'failed']),
    isRepeatable: c.bool,
    tries: c.uint,
    createdAt: c.uint,
    updatedAt: c.uint,
    deadline: c.uint,
    retryAt: orNull(c.uint),
    expiresAt: c.uint,
    error: orNull(json<ErrorBody>()),
    asking: orNull(json<AskingRecord>())
  })
)

type Fields<T> = { readonly [K in keyof T]: Codec<T[K]> }

/** Fields one after the other, in the order they are named. */
function struct<T extends object>(fields: Fields<T>): Codec<T> {
  const names = Object.keys(fields) as (keyof T)[]
  const blank = Object.fromEntries(names.map((name) => [name, undefined])) as Partial<T>
  return {
    preencode(state, value) {
      for (const name of names) fields[name].preencode(state, value[name])
    },
    encode(state, value) {
      for (const name of names) fields[name].encode(state, value[name])
    },
    decode(state) {
      // With all its members from the beginning: putting one after the other into an empty one takes three times as
      // long.
      const value: Partial<T> = { ...blank }
      for (const name of names) value[name] = fields[name].decode(state)
      // Each field of T was read just now.
      return value as T
    }
  }
}

function orNull<T>(codec: Codec<T>): Codec<T | null> {
  return {
    preencode(state, value) {
      c.bool.preencode(state, value !== null)
      if (value !== null) codec.preencode(state, value)
    },
    encode(state, value) {
      c.bool.encode(state, value !== null)
      if (value !== null) codec.encode(state, value)
    },
    decode: (state) => (c.bool.decode(state) ? codec.decode(state) : null)
  }
}

/** One of a few words, as the number of its place. */
function oneOf<T extends string>(words: readonly T[]): Codec<T> {
  return {
    preencode: (state, value) => c.uint.preencode(state, words.indexOf(value)),
    encode: (state, value) => c.uint.encode(state, words.indexOf(value)),
    decode(state) {
      const word = words[c.uint.decode(state)]
      if (word === undefined) throw new Error('no such word')
      return word
    }
  }
}

/** A value of this node as JSON; the caller names its type. */
function json<T>(): Codec<T> {
  // A value is measured just before it is written: of that one the text need not be made again.
  let measured: { readonly value: T; readonly text: string } | null = null
  return {
    preencode(state, value) {
      measured = { value, text: JSON.stringify(value) }
      c.string.preencode(state, measured.text)
    },
    encode(state, value) {
      c.string.encode(state, measured?.value === value ? measured.text : JSON.stringify(value))
      measured = null
    },
    decode: (state) => JSON.parse(c.string.decode(state)) as T
  }
}

function record<T>(codec: Codec<T>): RecordCodec<T> {
  return {
    encode(value) {
      const state = c.state(0, 1)
      codec.preencode(state, value)
      const bytes = unwritten(state.end)
      bytes[0] = VERSION
      codec.encode(c.state(1, state.end, bytes), value)
      return bytes
    },
    decode(bytes) {
      if (bytes.byteLength > 0 && bytes[0] !== VERSION) throw otherVersion()
      const state = c.state(1, bytes.byteLength, bytes)
      try {
        const value = codec.decode(state)
        if (state.start === state.end) return value
      } catch {
        // falls through to the one answer for every kind of damage
      }
      throw damaged()
    }
  }
}

function damaged(): NodeError {
  return new NodeError('STORE_DAMAGED', 'a record of the ledger is damaged')
}

function otherVersion(): NodeError {
  const next = ['a2a-node --version', 'a2a-node doctor']
  return new NodeError(
    'SCHEMA_VERSION_MISMATCH',
    'a record of the ledger was written by another version of a2a-node, or is damaged',
    {
      next
    }
  )
}
