import type { Clock } from '../../../kit/clock.js'
import { distrustedJoin, unansweredJoin } from '../pairing/join.js'

/** How long a newcomer waits at least for its certificate after an admin confirmed, in milliseconds. */
export const GRANT_TIMEOUT_MS = 15_000

/** A newcomer's wait for its first certificate. */
export class CertificateWait {
  readonly #waiters: (() => void)[] = []
  /** Why the last given certificate does not count; null: none was given. */
  #fault: string | null = null

  /**
   * Resolves at {@link CertificateWait.end}.
   * @throws NodeError after 15 s, or a longer `joinMs`: NO_ADMIN_ONLINE; INVITE_INVALID when only refused ones came.
   */
  start(clock: Clock, joinMs: number): Promise<void> {
    const timeoutMs = Math.max(GRANT_TIMEOUT_MS, joinMs)
    return new Promise((resolve, reject) => {
      const timer = clock.after(timeoutMs, () => {
        reject(this.#fault === null ? unansweredJoin(timeoutMs) : distrustedJoin(this.#fault))
      })
      this.#waiters.push(() => {
        clock.clear(timer)
        resolve()
      })
    })
  }

  /**
   * A given certificate does not count. The wait goes on: any member may send a wrong one, and another peer may bring
   * one that holds.
   */
  refused(reason: string): void {
    this.#fault = `the certificate that it gave does not count: ${reason}`
  }

  /** The certificate is there. */
  end(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
