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

/** What signing cards needs. */
export interface CardSignerDeps {
  /** By the node's key. */
  readonly sign: Sign
  readonly nodeId: NodeId
  /** Where the key is published; null: nowhere. */
  readonly keysUrl: string | null
}

/** A card in both forms that are served, signed. */
export interface SignedCards {
  readonly one: CardV1
  readonly hybrid: HybridCard
}

/** The public key as a JSON Web Key Set (RFC 7517, RFC 8037). */
export interface KeySet {
  readonly keys: readonly Readonly<Record<'kty' | 'crv' | 'x' | 'kid' | 'use' | 'alg', string>>[]
}

/**
 * Signs cards with EdDSA. Readers differ in what they compare: the specification keeps required members that are empty; the SDKs
 * drop whatever is empty; the SDK for JavaScript also loses the security schemes of a card that it has parsed (1.3.0); and a
 * reader that knows no version takes the object as it is. So there is a signature for each text that comes of that; one that
 * fits is enough. What is signed never has the form of what the node signs for its mesh, which begins with the name of its kind.
 */
export class CardSigner {
  readonly #sign: Sign
  readonly #nodeId: NodeId
  readonly #header: string

  constructor({ sign, nodeId, keysUrl }: CardSignerDeps) {
    this.#sign = sign
    this.#nodeId = nodeId
    this.#header = base64url(canonicalJson({ alg: 'EdDSA', kid: nodeId, typ: 'JOSE', ...(keysUrl === null ? {} : { jku: keysUrl }) }))
  }

  /** The cards of a subject. @throws TypeError for what has no JSON form */
  cards(subject: CardSubject): SignedCards {
    const [one, hybrid] = [toCardV1(subject), toHybridCard(subject)]
    const { securitySchemes: _, ...parsed } = one
    const forms = [withoutEmpty(one), withoutEmpty(parsed), one]
    const signatures = this.#signaturesOf(new Set(forms.map(canonicalJson)))
    const whole = this.#signaturesOf(new Set([canonicalJson(hybrid)]))
    return { one: { ...one, signatures }, hybrid: { ...hybrid, signatures: [...signatures, ...whole] } }
  }

  /** The key by which all of them are checked. */
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

/** The value without what is empty at any depth: no text, no items, no members; null where nothing is left. */
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
