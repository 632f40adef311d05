import { cardBytes, checkSignedCard } from '../../card/schema.js'
import { type FoldResult, full, put, type Scene, skip } from './effects.js'
import { cardIndexKey, cardKey } from '../keys.js'
import { type CardIndexRecord, type CardTombstone, isTombstone } from '../records.js'
import type { EntryBody, SignedCard } from '../types.js'

/** Cards of one node. */
export const MAX_CARDS = 1024
/** Bytes of them together, each as `cardBytes` counts it. */
export const MAX_CARDS_BYTES = 4 * 1024 * 1024
/** Agent ids that one node may have removed, so that tombstones stay bounded. */
export const MAX_TOMBSTONES = 4096

type CardEntryBody<K extends EntryBody['kind']> = Extract<EntryBody, { readonly kind: K }>

/** Puts a member's card: signed by it, within its certificate, newer than the known one, and within the limits. */
export function foldCard(scene: Scene, body: CardEntryBody<'card'>): FoldResult {
  const { by, records } = scene
  const { id, revision } = body.card.body
  const stored = records.card(by, id)
  if (revision <= revisionOf(stored)) return skip('a newer card is known')
  const index = records.cardIndex(by)
  const isNew = !index.live.includes(id)
  if (isNew && index.live.length >= MAX_CARDS) return full(`the node has ${MAX_CARDS} cards`)
  const checked = checkSignedCard(body.card, { certificate: scene.author.certificate.body, verify: scene.verify })
  if (!checked.ok) return skip(checked.reason)
  const bytes = index.bytes - bytesOf(stored) + bytesOf(body.card)
  if (bytes > MAX_CARDS_BYTES) return full(`the cards of the node would have more than ${MAX_CARDS_BYTES} bytes`)
  const next: CardIndexRecord = {
    live: isNew ? [...index.live, id] : index.live,
    tombstones: index.tombstones - (isTombstone(stored) ? 1 : 0),
    bytes
  }
  return put(
    new Map<string, unknown>([
      [cardKey(by, id), body.card],
      [cardIndexKey(by), next]
    ])
  )
}

/**
 * Removes a member's own card. The tombstone keeps the revision, so that an older card cannot come back. It also
 * applies when the removal comes before the card, since unsigned entries may be reordered.
 */
export function foldCardRemoved(scene: Scene, body: CardEntryBody<'card-removed'>): FoldResult {
  const { by, records } = scene
  const { agentId, revision } = body
  const stored = records.card(by, agentId)
  if (isTombstone(stored) ? revision <= stored.removed : revision < revisionOf(stored))
    return skip('a newer card is known')
  const index = records.cardIndex(by)
  if (!isTombstone(stored) && index.tombstones >= MAX_TOMBSTONES)
    return full(`the node has removed ${MAX_TOMBSTONES} cards`)
  const next: CardIndexRecord = {
    live: index.live.filter((id) => id !== agentId),
    tombstones: index.tombstones + (isTombstone(stored) ? 0 : 1),
    bytes: index.bytes - bytesOf(stored)
  }
  return put(
    new Map<string, unknown>([
      [cardKey(by, agentId), { removed: revision } satisfies CardTombstone],
      [cardIndexKey(by), next]
    ])
  )
}

/** Of a card that was checked; a tombstone has none. */
function bytesOf(stored: SignedCard | CardTombstone | null): number {
  return stored === null || isTombstone(stored) ? 0 : (cardBytes(stored.body) ?? 0)
}

/** The revision that a new card must exceed; -1 where nothing is known. */
function revisionOf(stored: SignedCard | CardTombstone | null): number {
  if (stored === null) return -1
  return isTombstone(stored) ? stored.removed : stored.body.revision
}
