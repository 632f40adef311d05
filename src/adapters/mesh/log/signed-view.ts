import b4a from 'b4a'
import type Autobase from 'autobase'
import type Corestore from 'corestore'
import type Hyperbee from 'hyperbee'
import { keyFromText } from '../../../kit/ids.js'
import { memberKey } from '../../../domain/membership/keys.js'

/** Lengths of a log. */
interface LogLengths {
  /** Entries in the view here. */
  readonly own: number
  /** Entries that the owner has signed, as far as known here. */
  readonly signed: number
}

/** The view as the owner signed it, compared with the view made here. */
export class SignedView {
  readonly #store: Corestore
  readonly #base: Autobase<Hyperbee>
  /** Signed length at which both were the same. */
  #sameAt = 0

  constructor(store: Corestore, base: Autobase<Hyperbee>) {
    this.#store = store
    this.#base = base
  }

  /** Lengths of the log here, and as its owner signed it. */
  lengths(): LogLengths {
    const { core } = this.#base
    return { own: core.length, signed: core.core.state.length }
  }

  /** Does the owner's signature cover the view's value of a key? */
  async isSigned(key: string): Promise<boolean> {
    const snapshot = this.#base.view.snapshot()
    try {
      const entry = await snapshot.get(key)
      return entry !== null && entry.seq < this.#base.view.core.core.state.length && !(await this.isAstray())
    } finally {
      await snapshot.close()
    }
  }

  /**
   * The number of blocks of a revoked member's core that are in the order of the log. null: the owner has not signed
   * the revocation yet, so another entry may still come before it.
   */
  async orderedBlocks(member: string, core: string): Promise<number | null> {
    if (!(await this.isSigned(memberKey(member)))) return null
    return (await this.#base.system?.get(keyFromText(core)))?.length ?? 0
  }

  /** Does the view here differ from the signed one, as far as that goes? False when that is unknown. */
  async isAstray(): Promise<boolean> {
    const { core } = this.#base.view
    if (core.core.state.length === this.#sameAt) return false
    const signed = this.#store.get({ key: core.key, active: false })
    try {
      await signed.ready()
      const { length } = signed
      if (length === 0 || length > core.length) return false
      const isSame = b4a.equals(await core.treeHash(length), await signed.treeHash(length))
      if (isSame) this.#sameAt = length
      return !isSame
    } catch {
      // Skipped blocks are not here, or the base moves to another view at this moment.
      return false
    } finally {
      await signed.close()
    }
  }
}
