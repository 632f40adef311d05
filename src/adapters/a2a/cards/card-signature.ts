import { keyFromText, type NodeId } from '../../../kit/ids.js'
import { canonicalJson, isRecord } from '../../../kit/json.js'
import type { Sign } from '../../../kit/sign.js'
import { type HybridCard, toHybridCard } from './card-v03.js'
import { type CardV1, toCardV1 } from './card-v1.js'
import type { CardSubject } from './card-subject.js'

/** One signature of a card: a flattened JSON Web Signature without its payload (RFC 7515; A2A 1.0, section 8.4.2). */
export interface CardSignature {
  /** Base64url of the protected header: alg, kid, typ and jku. */
  readonly protected: string
  readonly signature: string
}

/** Dependencies of {@link CardSigner}. */
export interface CardSignerDeps {
  /** By the node's key. */
  readonly sign: Sign
  readonly nodeId: NodeId
  /** Where the key is published; null: nowhere. */
  readonly keysUrl: string | null
}

/** A signed card in both served forms. */
export interface SignedCards {
  readonly one: CardV1
  readonly hybrid: HybridCard
}

/** The public key as a JSON Web Key Set (RFC 7517, RFC 8037). */
export interface KeySet {
  readonly keys: readonly Readonly<Record<'kty' | 'crv' | 'x' | 'kid' | 'use' | 'alg', string>>[]
}

/**
 * Signs cards with EdDSA. Readers verify different texts. The specification keeps empty required members; the SDKs drop
 * all empty members. The JavaScript SDK (1.3.0) also loses the security schemes of a parsed card. A reader without a
 * version takes the object as it is. So a card has a signature for each of these texts, and one match is enough. A
 * payload here never has the form of a mesh signature of the node, which begins with the name of its kind.
 */
export class CardSigner {
  readonly #sign: Sign
  readonly #nodeId: NodeId
  readonly #header: string

  constructor({ sign, nodeId, keysUrl }: CardSignerDeps) {
    this.#sign = sign
    this.#nodeId = nodeId
    this.#header = base64url(
      canonicalJson({ alg: 'EdDSA', kid: nodeId, typ: 'JOSE', ...(keysUrl === null ? {} : { jku: keysUrl }) })
    )
  }

  /** The cards of a subject. @throws TypeError when a value has no JSON form */
  cards(subject: CardSubject): SignedCards {
    const [one, hybrid] = [toCardV1(subject), toHybridCard(subject)]
    const { securitySchemes: _, ...parsed } = one
    const forms = [withoutEmpty(one), withoutEmpty(parsed), one]
    const signatures = this.#signaturesOf(new Set(forms.map(canonicalJson)))
    const whole = this.#signaturesOf(new Set([canonicalJson(hybrid)]))
    return { one: { ...one, signatures }, hybrid: { ...hybrid, signatures: [...signatures, ...whole] } }
  }

  /** The key that verifies all signatures. */
  keySet(): KeySet {
    const x = base64url(keyFromText(this.#nodeId))
    return { keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid: this.#nodeId, use: 'sig', alg: 'EdDSA' }] }
  }

  #signaturesOf(payloads: ReadonlySet<string>): readonly CardSignature[] {
    return [...payloads].map((payload) => ({
      protected: this.#header,
      signature: base64url(this.#sign(Buffer.from(`${this.#header}.${base64url(payload)}`)))
    }))
  }
}

/** The value without empty texts, lists and objects at any depth; null when nothing is left. */
export function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === undefined) return null
  if (Array.isArray(value)) {
    const items = value.map(withoutEmpty).filter((item) => item !== null)
    return items.length === 0 ? null : items
  }
  if (!isRecord(value)) return value
  const members = Object.entries(value).flatMap(([key, member]) => {
    const left = withoutEmpty(member)
    return left === null ? [] : [[key, left] as const]
  })
  return members.length === 0 ? null : Object.fromEntries(members)
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64url')
}
