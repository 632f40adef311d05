import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import { NodeError } from '../../kit/errors.js'
import type { LaneReceiver } from './lane-receiver.js'
import type { LaneSender, Unacked } from './lane-sender.js'

/** First byte of every record; another one is of another version of this program. */
const VERSION = 1

/** How one kind of record is written and read. */
export interface RecordCodec<T> {
  encode(value: T): Uint8Array
  /** @throws NodeError STORE_DAMAGED */
  decode(bytes: Uint8Array): T
}

/** What the ledger holds of the sending end of a lane. */
export const senderRecord: RecordCodec<Pick<LaneSender, 'next'>> = record(struct({ next: c.uint }))

/** What the ledger holds of the receiving end of a lane. */
export const receiverRecord: RecordCodec<Pick<LaneReceiver<unknown>, 'contig' | 'lastId'>> = record(
  struct({ contig: c.uint, lastId: orNull(c.string) })
)

/** What the ledger holds of a message beside its content and its number. */
export interface MessageRecord extends Omit<Unacked, 'seq'> {
  /** Of the request that it belongs to; null for none. */
  readonly requestId: string | null
}

/** See {@link MessageRecord}. */
export const messageRecord: RecordCodec<MessageRecord> = record(
  struct({ messageId: c.string, requestId: orNull(c.string), bytes: c.uint, expiresAt: c.uint, isVoid: c.bool })
)

type Fields<T> = { readonly [K in keyof T]: Codec<T[K]> }

/** Fields one after the other, in the order they are named. */
function struct<T extends object>(fields: Fields<T>): Codec<T> {
  const names = Object.keys(fields) as (keyof T)[]
  return {
    preencode(state, value) {
      for (const name of names) fields[name].preencode(state, value[name])
    },
    encode(state, value) {
      for (const name of names) fields[name].encode(state, value[name])
    },
    decode(state) {
      const value: Partial<T> = {}
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

function record<T>(codec: Codec<T>): RecordCodec<T> {
  return {
    encode(value) {
      const state = c.state(0, 1)
      codec.preencode(state, value)
      const bytes = new Uint8Array(state.end)
      bytes[0] = VERSION
      codec.encode(c.state(1, state.end, bytes), value)
      return bytes
    },
    decode(bytes) {
      if (bytes[0] !== VERSION) throw damaged()
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
  return new NodeError('STORE_DAMAGED', 'a record of the ledger is damaged or of another version')
}
