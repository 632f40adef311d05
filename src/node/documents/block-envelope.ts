import type { IdSource, NodeId } from '../../kit/ids.js'
import { addressText, OPERATOR } from '../../domain/card/card.js'
import { decodeEnvelope, encodeEnvelope } from '../../domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../domain/envelope/envelope.js'
import type { Tier } from '../../domain/routing/tier.js'

/** What an envelope of a block says beside the block. */
export interface BlockEnvelope {
  /** The document's id. */
  readonly document: string
  readonly self: NodeId
  readonly tier: Tier
  readonly ids: IdSource
  /** Unix milliseconds. */
  readonly at: number
}

/** A block of this node's stream as the `stream-data` envelope that its core holds. */
export function sealBlock(block: Uint8Array, { document, self, tier, ids, at }: BlockEnvelope): Uint8Array {
  return encodeEnvelope({
    id: ids.next('msg'),
    schemaVersion: SCHEMA_VERSION,
    sender: addressText({ agentId: OPERATOR, nodeId: self }),
    recipient: '*',
    correlationId: document,
    type: 'stream-data',
    timestamp: at,
    payload: block,
    metadata: { tier }
  })
}

/**
 * The block of an envelope of a document's stream; null when it is none. Whose stream it is says the core that holds it, not
 * the envelope, and what may be read depends on its bytes alone, so that it is the same everywhere. Never throws.
 */
export function openBlock(bytes: Uint8Array, document: string): Uint8Array | null {
  const decoded = decodeEnvelope(bytes)
  if (!decoded.ok || decoded.header.type !== 'stream-data' || decoded.header.correlationId !== document) return null
  const payload = decoded.payload()
  return payload.ok && payload.value instanceof Uint8Array ? payload.value : null
}
