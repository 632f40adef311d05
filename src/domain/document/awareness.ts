import { utf8 } from '../../kit/ids.js'
import { parseJson } from '../../kit/json.js'
import { UpdateCursor, UpdateFault } from './update/bytes.js'

/** Bounds of an update of presence. */
export const AWARENESS_LIMITS = { maxBytes: 16_384, maxClients: 64 } as const

/** State of one clientID: any JSON; null: it is gone. */
export interface Presence {
  readonly client: number
  /** Rises with each. */
  readonly clock: number
  readonly state: unknown
}

/**
 * Reads an update as y-protocols' awareness writes it; null when it is none, or beyond {@link AWARENESS_LIMITS}. Never
 * throws.
 */
export function readAwareness(bytes: Uint8Array): readonly Presence[] | null {
  if (bytes.byteLength > AWARENESS_LIMITS.maxBytes) return null
  try {
    return presences(new UpdateCursor(bytes))
  } catch (error) {
    if (error instanceof UpdateFault) return null
    throw error
  }
}

function presences(cursor: UpdateCursor): readonly Presence[] | null {
  const count = cursor.count(3)
  if (count > AWARENESS_LIMITS.maxClients) return null
  const found: Presence[] = []
  for (let i = 0; i < count; i++) {
    const [client, clock] = [cursor.uint(), cursor.uint()]
    const state = parseJson(cursor.text())
    if (!state.ok) return null
    found.push({ client, clock, state: state.value })
  }
  return cursor.left === 0 ? found : null
}

/** The update by which clientIDs are gone. */
export function goneAwareness(gone: readonly Presence[]): Uint8Array {
  return writeAwareness(gone.map(({ client, clock }) => ({ client, clock: clock + 1, state: null })))
}

/** An update of presence, as {@link readAwareness} reads it. */
export function writeAwareness(presence: readonly Presence[]): Uint8Array {
  const numbers = presence.flatMap(({ client, clock, state }) => {
    const text = utf8(JSON.stringify(state))
    return [...sevens(client), ...sevens(clock), ...sevens(text.byteLength), ...text]
  })
  return Uint8Array.from([...sevens(presence.length), ...numbers])
}

function sevens(number: number): number[] {
  const bytes: number[] = []
  let rest = number
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push(128 + (rest % 128))
  return [...bytes, rest]
}
