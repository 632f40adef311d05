import { exportJWK, generateKeyPair, type JSONWebKeySet, type JWK } from 'jose'
import type { Clock } from '../../../kit/clock.js'
import { hashText, type OAuthStore, type StoredKey } from './oauth-store.js'

/** How long a key that no longer signs is shown, in milliseconds: longer than any token that it signed is good. */
export const RETIRED_MS = 7_200_000

/** The keys that sign access tokens: one signs, those before it are good until their tokens have expired. */
export class OAuthKeys {
  readonly #store: OAuthStore
  readonly #clock: Pick<Clock, 'now'>
  readonly #keyMs: number

  constructor(store: OAuthStore, { clock, keyDays }: { readonly clock: Pick<Clock, 'now'>; readonly keyDays: number }) {
    this.#store = store
    this.#clock = clock
    this.#keyMs = keyDays * 86_400_000
  }

  /** Is there no key, or one that signed for long enough? */
  get isDue(): boolean {
    const [current] = this.#store.keys
    return current === undefined || this.#clock.now() - current.createdAt >= this.#keyMs
  }

  /** Private ones, the one that signs first. */
  get privateKeys(): readonly JWK[] {
    return this.#good().map(({ jwk }) => jwk)
  }

  /** What others need to check signatures. */
  get publicKeys(): JSONWebKeySet {
    return { keys: this.#good().map(({ jwk: { d: _secret, ...shown } }) => shown) }
  }

  /** @throws NodeError DISK_FULL, NO_PERMISSION; then the key of before signs on */
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

  /** Who has one of before, by theft too, signs nothing with it once its last token is over, however long until the next rotation. */
  #good(): readonly StoredKey[] {
    return this.#store.keys.filter(({ retiredAt }) => retiredAt === null || this.#clock.now() - retiredAt < RETIRED_MS)
  }
}
