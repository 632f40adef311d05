import b4a from 'b4a'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import { z } from 'zod'
import { isErrorCode } from '../../../kit/errors.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { fromUtf8, utf8 } from '../../../kit/ids.js'
import { parseJson } from '../../../kit/json.js'
import type { Hash } from '../../../kit/sign.js'
import { shown } from '../../../kit/text.js'
import { keySchema, signedCertificateSchema } from '../../../domain/membership/schema.js'
import type { ProcessInfo } from '../../../domain/membership/running-copies.js'
import type { CertificateChain } from '../../../domain/membership/types.js'

/** Version of the gate's protocol; a peer of another version is refused with a clear reason. */
export const GATE_VERSION = 1

/** Latest time that a clock may say, in unix milliseconds: that of a `Date`. */
const LATEST_MS = 8.64e15

/** Bytes of the id of a process. */
const PROCESS_BYTES = 8

/** Sent by a node as it opens the gate. */
export interface GateOpening extends ProcessInfo {
  /** Unix milliseconds by its clock; null from an older node, and for bytes that are no time. */
  readonly time: number | null
}

/**
 * {@link GateOpening} as bytes: time (u64), id of the process (8 bytes), flags (bit 0: doubled). Older nodes send less.
 */
export const GATE_OPENING: Codec<GateOpening> = {
  preencode: (state, { time, process }) => {
    c.uint64.preencode(state, time ?? 0)
    if (process !== null) state.end += PROCESS_BYTES + 1
  },
  encode: (state, { time, process, isDoubled }) => {
    c.uint64.encode(state, time ?? 0)
    if (process === null) return
    for (const byte of b4a.from(process, 'hex')) c.uint8.encode(state, byte)
    c.uint8.encode(state, isDoubled ? 1 : 0)
  },
  decode: (state) => {
    const time = decodeTime(state)
    if (time === undefined || state.end - state.start <= PROCESS_BYTES)
      return { time: time ?? null, process: null, isDoubled: false }
    const process = b4a.toString(b4a.from(Array.from({ length: PROCESS_BYTES }, () => c.uint8.decode(state))), 'hex')
    return { time, process, isDoubled: (c.uint8.decode(state) & 1) === 1 }
  }
}

/** undefined: there are too few bytes. */
function decodeTime(state: Parameters<Codec<GateOpening>['decode']>[0]): number | null | undefined {
  if (state.end - state.start < 8) return undefined
  // Not as a whole: its decoder throws at numbers that are not safe.
  const [low, high] = [c.uint32.decode(state), c.uint32.decode(state)]
  const time = high * 2 ** 32 + low
  return time > 0 && time <= LATEST_MS ? time : null
}

/** Largest message of the gate, in bytes. */
const MAX_BYTES = 64 * 1024

/**
 * The messages that two nodes exchange before all others, in this order:
 * `hello` proves knowledge of the mesh without revealing it; `credentials` carries the sender's certificate chain and,
 * for a newcomer, its own; `passed` says that the sender is satisfied; `refused` gives the reason before the stream is
 * cut.
 */
export type GateMessage =
  | {
      readonly type: 'hello'
      readonly version: number
      /** Largest frame that the sender takes, in bytes; at least the largest frame of a channel. */
      readonly maxFrameBytes: number
      readonly software: string
      readonly proof: string
    }
  | { readonly type: 'credentials'; readonly chain: CertificateChain | null; readonly grant: CertificateChain | null }
  | { readonly type: 'passed' }
  | ({ readonly type: 'refused' } & GateRefusal)

/** The reason of a refused stream, for its other end. */
export interface GateRefusal {
  readonly code: ErrorCode
  readonly reason: string
  /** The invite that the refusal is about, when it is about one; a node that came by another need not mind it. */
  readonly inviteId?: string
}

const chainSchema = z.array(signedCertificateSchema).max(8)
const messageSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('hello'),
    version: z.number().int().min(1).max(1000),
    maxFrameBytes: z.number().int().positive(),
    software: z
      .string()
      .max(64)
      .transform((text) => shown(text, 64)),
    proof: z.string().max(64)
  }),
  z.strictObject({ type: z.literal('credentials'), chain: chainSchema.nullable(), grant: chainSchema.nullable() }),
  z.strictObject({ type: z.literal('passed') }),
  z.strictObject({
    type: z.literal('refused'),
    code: z.custom<ErrorCode>(isErrorCode),
    reason: z
      .string()
      .max(512)
      .transform((text) => shown(text)),
    inviteId: keySchema.exactOptional()
  })
])

/** The message as bytes (UTF-8 JSON). */
export function encodeGateMessage(message: GateMessage): Uint8Array {
  return utf8(JSON.stringify(message))
}

/** Reads a peer's bytes; null when they are no message of the gate. Never throws. */
export function decodeGateMessage(bytes: Uint8Array): GateMessage | null {
  if (bytes.byteLength > MAX_BYTES) return null
  const parsed = parseJson(fromUtf8(bytes))
  if (!parsed.ok) return null
  const checked = messageSchema.safeParse(parsed.value)
  return checked.success ? checked.data : null
}

/** The inputs of the proof. */
export interface ProofParts {
  readonly meshKey: Uint8Array
  readonly encryptionKey: Uint8Array
  /** Hash of this one Noise session, so a proof is worth nothing on another stream. */
  readonly handshakeHash: Uint8Array
  /** The end that proves: the two ends must not be able to echo each other. */
  readonly isInitiator: boolean
}

/** Proof (hex) that its maker knows the mesh's secret, bound to one stream and one end of it. */
export function meshProof(parts: ProofParts, hash: Hash): string {
  const role = utf8(parts.isInitiator ? 'a2a-node/gate/initiator' : 'a2a-node/gate/responder')
  return b4a.toString(hash(role, parts.meshKey, parts.encryptionKey, parts.handshakeHash), 'hex')
}
