import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { isRecord, parseJson } from '../../../kit/json.js'

/** Most signatures of one card that are checked. */
const MAX_SIGNATURES = 8

/**
 * Verdict on the signatures of a card. `verified`: made by the key of the config. `sound`: made by a key on the card
 * itself, which proves integrity but no origin. `none`: no signature with a known key. `wrong`: the card differs from
 * the signed text, or the key of the config did not sign it.
 */
export type SignatureVerdict = 'verified' | 'sound' | 'none' | 'wrong'

/**
 * Judges the signatures of a card (A2A 1.0, 8.4: JWS over RFC 8785). A `jku` is never fetched: a forged card could
 * point it anywhere. `text`: the canonical form of the card without signatures. `key`: of the config; null: none. Never
 * throws.
 */
export function judgeSignatures(
  card: Readonly<Record<string, unknown>>,
  { text, key }: { readonly text: () => string; readonly key: JsonWebKey | null }
): SignatureVerdict {
  const signatures = Array.isArray(card['signatures']) ? card['signatures'].slice(0, MAX_SIGNATURES) : []
  const verdicts = signatures.map((one: unknown) => judgeOne(one, text, key))
  if (key !== null) return verdicts.includes('verified') ? 'verified' : 'wrong'
  if (verdicts.includes('wrong')) return 'wrong'
  return verdicts.includes('sound') ? 'sound' : 'none'
}

function judgeOne(value: unknown, text: () => string, key: JsonWebKey | null): SignatureVerdict {
  if (!isRecord(value) || typeof value['protected'] !== 'string' || typeof value['signature'] !== 'string')
    return 'wrong'
  const header = headerOf(value['protected'])
  if (header === null) return 'wrong'
  const named = isRecord(header['jwk']) ? (header['jwk'] as JsonWebKey) : null
  const used = key ?? named
  if (used === null) return 'none'
  try {
    const signed = Buffer.from(`${value['protected']}.${Buffer.from(text()).toString('base64url')}`)
    const isGood = isSigned(signed, Buffer.from(value['signature'], 'base64url'), {
      alg: header['alg'],
      key: createPublicKey({ key: used, format: 'jwk' })
    })
    return isGood ? (key === null ? 'sound' : 'verified') : 'wrong'
  } catch {
    // An unusable key or signature proves nothing.
    return 'wrong'
  }
}

function headerOf(text: string): Record<string, unknown> | null {
  const parsed = text.length > 16_384 ? null : parseJson(Buffer.from(text, 'base64url').toString('utf8'))
  return parsed?.ok === true && isRecord(parsed.value) ? parsed.value : null
}

function isSigned(
  data: Buffer,
  signature: Buffer,
  { alg, key }: { readonly alg: unknown; readonly key: KeyObject }
): boolean {
  const kind = key.asymmetricKeyType
  if (alg === 'EdDSA' || alg === 'Ed25519') return kind === 'ed25519' && verify(null, data, key, signature)
  if (alg === 'ES256')
    return (
      kind === 'ec' &&
      key.asymmetricKeyDetails?.namedCurve === 'prime256v1' &&
      verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature)
    )
  return alg === 'RS256' && kind === 'rsa' && verify('sha256', data, key, signature)
}
