import { wait, type Clock } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import type { Arrival, ArrivedEnvelope, Verification } from './verify.js'

/**
 * Delays before a message is verified again that claims more rights than this node knows, in milliseconds: the log
 * entry or card that grants them may be on its way.
 */
const DELAYS_MS = [100, 200, 400, 800, 1500]
/** The longest wait of such a message, in milliseconds. */
export const CLAIM_WAIT_MS = DELAYS_MS.reduce((sum, delayMs) => sum + delayMs, 0)
/** Such messages of one peer that wait at once; others are refused without a wait. */
export const MAX_EARLY_CLAIMS = 8
/** Bytes of all such messages that wait at once. */
export const MAX_EARLY_BYTES = 16 * 1024 * 1024

/** Dependencies of {@link EarlyClaims}. */
interface EarlyClaimsDeps {
  readonly clock: Clock
  readonly verification: Pick<Verification, 'read'>
}

/** Reads messages, and lets those wait a moment whose claims are ahead of the log or the cards of this node. */
export class EarlyClaims {
  readonly #deps: EarlyClaimsDeps
  readonly #waiting = new Map<NodeId, number>()
  #bytes = 0

  constructor(deps: EarlyClaimsDeps) {
    this.#deps = deps
  }

  /** The verified message, a promise of it if it has to wait, or null for a refused one, which is on record. */
  read(peer: NodeId, arrived: ArrivedEnvelope): Arrival | null | Promise<Arrival | null> {
    const { verification } = this.#deps
    const count = this.#waiting.get(peer) ?? 0
    const mayWait = count < MAX_EARLY_CLAIMS && this.#bytes + arrived.bytes.byteLength <= MAX_EARLY_BYTES
    const read = verification.read(peer, arrived, mayWait ? 'first' : 'only')
    return read === 'early' ? this.#later(peer, arrived) : read
  }

  async #later(peer: NodeId, arrived: ArrivedEnvelope): Promise<Arrival | null> {
    const { clock, verification } = this.#deps
    const bytes = arrived.bytes.byteLength
    this.#waiting.set(peer, (this.#waiting.get(peer) ?? 0) + 1)
    this.#bytes += bytes
    try {
      for (const [index, delayMs] of DELAYS_MS.entries()) {
        await wait(clock, delayMs)
        const read = verification.read(peer, arrived, index === DELAYS_MS.length - 1 ? 'last' : 'again')
        if (read !== 'early') return read
      }
      return null
    } finally {
      this.#bytes -= bytes
      const left = (this.#waiting.get(peer) ?? 1) - 1
      if (left === 0) this.#waiting.delete(peer)
      else this.#waiting.set(peer, left)
    }
  }
}
