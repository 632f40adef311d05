import { exportJWK, generateKeyPair, type JSONWebKeySet, type JWK } from 'jose'
import type { Clock } from '../../../kit/clock.js'
import { hashText, type OAuthStore, type StoredKey } from './oauth-store.js'

/** How long a retired key is published, in milliseconds: longer than the life of any token it signed. */
export const RETIRED_MS = 7_200_000

/** The keys of access tokens: the current one signs; retired ones verify until their tokens have expired. */
export class OAuthKeys {
  readonly #store: OAuthStore
  readonly #clock: Pick<Clock, 'now'>
  readonly #keyMs: number

  constructor(store: OAuthStore, { clock, keyDays }: { readonly clock: Pick<Clock, 'now'>; readonly keyDays: number }) {
    this.#store = store
    this.#clock = clock
    this.#keyMs = keyDays * 86_400_000
  }

  /** Is there no key, or is the current one as old as the config allows? */
  get isDue(): boolean {
    const [current] = this.#store.keys
    return current === undefined || this.#clock.now() - current.createdAt >= this.#keyMs
  }

  /** Private keys, the signing one first. */
  get privateKeys(): readonly JWK[] {
    return this.#good().map(({ jwk }) => jwk)
  }

  /** The published key set for verifiers. */
  get publicKeys(): JSONWebKeySet {
    return { keys: this.#good().map(({ jwk: { d: _secret, ...shown } }) => shown) }
  }

  /**
   * Makes a new signing key; resolves with its id.
   * @throws NodeError DISK_FULL, NO_PERMISSION; the current key stays
   */
  async rotate(): Promise<string> {
    const now = this.#clock.now()
    const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
    const { kty = '', crv = '', x = '', d = '' } = await exportJWK(privateKey)
    const kid = hashText(x).slice(0, 16)
    const fresh: StoredKey = { jwk: { kty, crv, x, d, kid, use: 'sig', alg: 'EdDSA' }, createdAt: now, retiredAt: null }
    const before = this.#store.keys
    const retired = this.#good().map((one) => ({ ...one, retiredAt: one.retiredAt ?? now }))
    this.#store.keys = [fresh, ...retired]
    try {
      await this.#store.saveClients()
    } catch (error) {
      this.#store.keys = before
      throw error
    }
    return kid
  }

  /**
   * Leaves out keys retired for {@link RETIRED_MS}: a stolen retired key is useless after that, without another
   * rotation.
   */
  #good(): readonly StoredKey[] {
    return this.#store.keys.filter(({ retiredAt }) => retiredAt === null || this.#clock.now() - retiredAt < RETIRED_MS)
  }
}
