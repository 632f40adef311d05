import { asNodeError } from '../../kit/errors.js'
import { KEYS, rangeOf, readMessageKey } from '../../domain/reliable/keys.js'
import type { Lane } from '../../domain/reliable/keys.js'
import type { Unacked } from '../../domain/reliable/lane-sender.js'
import { messageRecord, senderRecord } from '../../domain/reliable/records.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { parseAddress } from '../../domain/card/card.js'
import { ledgerEntries } from '../ledger/scan.js'

/** A message that is not acknowledged, as the ledger has it. */
type Stored = Unacked & { readonly requestId: string | null }

/** The sending ends of lanes that a ledger holds. `first`: number of the next message of one whose record is damaged. */
export async function storedLanes(
  ledger: Ledger,
  { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }
): Promise<{ readonly lane: Lane; readonly next: number; readonly live: readonly Stored[] }[]> {
  const live = new Map<string, Stored[]>()
  for await (const { key, value } of ledgerEntries(ledger, rangeOf('out'))) {
    const { lane, seq } = readMessageKey(key)
    const messages = live.get(lane) ?? []
    messages.push(readMessage(seq, value, telemetry))
    live.set(lane, messages)
  }
  const lanes = []
  for await (const { key, value } of ledgerEntries(ledger, rangeOf('lane-out'))) {
    const text = key.slice(KEYS.sender('').length)
    const lane = readLane(text)
    const messages = live.get(text) ?? []
    if (lane !== null)
      lanes.push({ lane, next: Math.max(readNext(value, { telemetry, first }), (messages.at(-1)?.seq ?? 0) + 1), live: messages })
  }
  return lanes
}

/** Number of the next message of a lane. */
function readNext(value: Uint8Array, { telemetry, first }: { readonly telemetry: Telemetry; readonly first: number }): number {
  const what = 'the record of a lane is damaged: it begins anew'
  return unlessDamaged(() => senderRecord.decode(value).next, { instead: first, what, telemetry })
}

/** Nothing is sent in the place of a damaged one. */
function readMessage(seq: number, value: Uint8Array, telemetry: Telemetry): Stored {
  const instead = { messageId: `damaged ${seq}`, requestId: null, bytes: 0, expiresAt: 0, isVoid: true }
  const what = `the record of message ${seq} of a lane is damaged: it is not sent`
  return { seq, ...unlessDamaged(() => messageRecord.decode(value), { instead, what, telemetry }) }
}

/** One damaged record must hold up neither its lane nor the start of the node. */
function unlessDamaged<T>(
  read: () => T,
  { instead, what, telemetry }: { readonly instead: T; readonly what: string; readonly telemetry: Telemetry }
): T {
  try {
    return read()
  } catch (error) {
    if (asNodeError(error).code !== 'STORE_DAMAGED') throw error
    telemetry.count('errors', 'ledger')
    telemetry.log('error', what)
    return instead
  }
}

/** The lane of such a text; null when it is none. */
function readLane(text: string): Lane | null {
  const [source, target] = text.split('>').map(parseAddress)
  return source === undefined || source === null || target === undefined || target === null ? null : { source, target }
}
