import c from 'compact-encoding'
import { UPDATE_LIMITS } from './update/update.js'

/** Bounds of one block of a member's stream. */
export const BLOCK_LIMITS = {
  /** Bytes of a block: one update of the largest size, and its frame. */
  maxBytes: UPDATE_LIMITS.maxBytes + 64,
  maxUpdates: 4096,
  maxNewSessions: 64
} as const

/** One block of a member's stream for a document: its changes of one turn. */
export interface DocumentBlock {
  /** Number of sessions that the member has opened by now, earlier ones included. */
  readonly sessions: number
  /** Updates of Yjs (v1), in the order they were made. */
  readonly updates: readonly Uint8Array[]
}

const VERSION = 1

/** A block as bytes: version, sessions, number of updates, then each with its length before it. */
export function encodeBlock({ sessions, updates }: DocumentBlock): Uint8Array {
  const state = c.state()
  for (const number of [VERSION, sessions, updates.length]) c.uint.preencode(state, number)
  for (const update of updates) c.buffer.preencode(state, update)
  state.buffer = new Uint8Array(state.end)
  for (const number of [VERSION, sessions, updates.length]) c.uint.encode(state, number)
  for (const update of updates) c.buffer.encode(state, update)
  return state.buffer
}

/**
 * Decodes the bytes of {@link encodeBlock}, updates unchecked. Null when malformed or beyond {@link BLOCK_LIMITS}.
 * Never throws.
 */
export function decodeBlock(bytes: Uint8Array): DocumentBlock | null {
  if (bytes.byteLength > BLOCK_LIMITS.maxBytes) return null
  try {
    const state = c.state(0, bytes.byteLength, bytes)
    if (c.uint.decode(state) !== VERSION) return null
    const sessions = c.uint.decode(state)
    const count = c.uint.decode(state)
    if (count > BLOCK_LIMITS.maxUpdates) return null
    const updates: Uint8Array[] = []
    for (let i = 0; i < count; i++) updates.push(c.buffer.decode(state) ?? new Uint8Array())
    return state.start === state.end ? { sessions, updates } : null
  } catch {
    return null
  }
}
