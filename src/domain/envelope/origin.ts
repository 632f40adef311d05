import c from 'compact-encoding'
import { NodeError } from '../../kit/errors.js'
import { bytesFromText, bytesToText, keyFromText, type MeshId, type NodeId, utf8 } from '../../kit/ids.js'
import type { Hash, Sign, Verify } from '../../kit/sign.js'
import { decodeEnvelope, WIRE_VERSION, type DecodedEnvelope } from './codec.js'
import type { EnvelopeMetadata } from './envelope.js'
import { measureHeader, writeHeader, type EnvelopeHeader, type WireState } from './header.js'
import { ENVELOPE_LIMITS } from './limits.js'

/** Parts this signature from every other that a node makes, and from those of another layout. */
const LABEL = utf8('a2a-node/envelope/1')

/** An envelope that could be read. */
export type ReadEnvelope = Extract<DecodedEnvelope, { ok: true }>

/** What binds a signature beside the message itself. */
export interface OriginBinding {
  readonly mesh: MeshId
  /** The node that the origin hands it to: a copy that goes another way does not verify. */
  readonly firstHop: NodeId
  readonly hash: Hash
}

/** Was a message carried by others, or is it to be? */
export function isCarried({ metadata }: EnvelopeHeader): boolean {
  return metadata !== undefined && (metadata.signature !== undefined || (metadata.hops !== undefined && metadata.hops.length > 0))
}

/** A message as its node would hand it to `firstHop`, who is to carry it on. @throws NodeError PAYLOAD_TOO_LARGE when its header leaves no room for the way. */
export function signOrigin(bytes: Uint8Array, binding: OriginBinding & { readonly sign: Sign }): Uint8Array {
  const read = decodeEnvelope(bytes)
  if (!read.ok) throw new NodeError('INVALID_ENVELOPE', read.reason)
  const signature = bytesToText(binding.sign(originBytes(read, bytes, binding)))
  return withWay(read, bytes, { hops: [], signature })
}

/** Did the node of this key sign the message, its body included, for this mesh and first hop? Never throws. */
export function isOfOrigin(
  read: ReadEnvelope,
  bytes: Uint8Array,
  { origin, verify, ...binding }: OriginBinding & { readonly origin: NodeId; readonly verify: Verify }
): boolean {
  const signature = bytesFromText(read.header.metadata?.signature ?? '')
  if (signature === null) return false
  try {
    return verify(originBytes(read, bytes, binding), signature, keyFromText(origin))
  } catch {
    return false
  }
}

/** The message as the next node gets it: its body as it came, the way in its header one key longer. @throws NodeError PAYLOAD_TOO_LARGE when that leaves no room. */
export function passedOn(read: ReadEnvelope, bytes: Uint8Array, by: NodeId): Uint8Array {
  const { hops = [], signature } = read.header.metadata ?? {}
  return withWay(read, bytes, { hops: [...hops, by], ...(signature === undefined ? {} : { signature }) })
}

/** The label and a hash of mesh, first hop, body and the header without its way. */
function originBytes({ header, codecAt }: ReadEnvelope, bytes: Uint8Array, { mesh, firstHop, hash }: OriginBinding): Uint8Array {
  const { hops: _hops, signature: _signature, ...metadata } = header.metadata ?? { tier: 3 }
  const stripped = c.encode(HEADER, { ...header, metadata })
  const digest = hash(keyFromText(mesh), keyFromText(firstHop), hash(bytes.subarray(codecAt)), stripped)
  const message = new Uint8Array(LABEL.byteLength + digest.byteLength)
  message.set(LABEL)
  message.set(digest, LABEL.byteLength)
  return message
}

function withWay(
  { header, codecAt, bodyAt }: ReadEnvelope,
  bytes: Uint8Array,
  way: Pick<EnvelopeMetadata, 'hops' | 'signature'>
): Uint8Array {
  const { maxBytes, maxHeaderBytes } = ENVELOPE_LIMITS
  const head = c.encode(HEADER, { ...header, metadata: { ...(header.metadata ?? { tier: 3 }), ...way } })
  const whole = new Uint8Array(1 + head.byteLength + bytes.byteLength - codecAt)
  if (1 + head.byteLength + bodyAt - codecAt > maxHeaderBytes || whole.byteLength > maxBytes)
    throw new NodeError(
      'PAYLOAD_TOO_LARGE',
      'the message is too large to be carried by another node: its header leaves no room for the way'
    )
  whole[0] = WIRE_VERSION
  whole.set(head, 1)
  whole.set(bytes.subarray(codecAt), 1 + head.byteLength)
  return whole
}

const HEADER = {
  preencode: measureHeader,
  encode: writeHeader,
  decode(_state: WireState): EnvelopeHeader {
    throw new Error('read by decodeEnvelope')
  }
}
