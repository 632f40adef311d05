import { asNodeError } from '../kit/errors.js'
import { KEYS, rangeOf, readMessageKey } from '../domain/reliable/keys.js'
import type { Lane } from '../domain/reliable/keys.js'
import type { Unacked } from '../domain/reliable/lane-sender.js'
import { messageRecord, senderRecord } from '../domain/reliable/records.js'
import type { Ledger } from '../ports/ledger.js'
import type { Telemetry } from '../ports/telemetry.js'
import { parseAddress } from './directory.js'
import { ledgerEntries } from './ledger-entries.js'

/** A message that is not acknowledged, as the ledger has it. */
type Stored = Unacked & { readonly requestId: string | null }

/** The sending ends of lanes that a ledger holds. @throws NodeError STORE_DAMAGED: the number of a next message is not known */
export async function storedLanes(
  ledger: Ledger,
  telemetry: Telemetry
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
    if (lane !== null) lanes.push({ lane, ...senderRecord.decode(value), live: live.get(text) ?? [] })
  }
  return lanes
}

/** One damaged record must not hold up its lane: nothing is sent in its place. */
function readMessage(seq: number, value: Uint8Array, telemetry: Telemetry): Stored {
  try {
    return { seq, ...messageRecord.decode(value) }
  } catch (error) {
    if (asNodeError(error).code !== 'STORE_DAMAGED') throw error
    telemetry.count('errors', 'ledger')
    telemetry.log('error', 'the record of a message is damaged: it is not sent', { number: seq })
    return { seq, messageId: `damaged ${seq}`, requestId: null, bytes: 0, expiresAt: 0, isVoid: true }
  }
}

/** The lane of such a text; null when it is none. */
function readLane(text: string): Lane | null {
  const [source, target] = text.split('>').map(parseAddress)
  return source === undefined || source === null || target === undefined || target === null ? null : { source, target }
}
