/** Gives a slot back; a second call does nothing. */
export type ReleaseSlot = () => void

/** A call that waits for a slot. */
export interface SlotRequest {
  /** Identity of the client; clients take turns. Default: one for all calls without. */
  readonly client?: object
  /** Ends the wait. */
  readonly signal?: AbortSignal
}

interface WaitingCall {
  resolve(release: ReleaseSlot | null): void
}

/** Client of requests that name none. */
const NOBODY = {}

/**
 * Calls that wait for a slot. Clients take turns; each client's own calls keep their order. When the queue is full, a
 * client gets a place at the cost of the newest call of the client with the most, if that has at least two more.
 */
export class SlotQueue {
  readonly #max: number
  /** In the order of their turns. */
  readonly #clients = new Map<object, WaitingCall[]>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Calls that wait. */
  get size(): number {
    return this.#size
  }

  /** Resolves with a slot from {@link grant}; null when the queue is full or the signal aborts. */
  join({ client = NOBODY, signal }: SlotRequest): Promise<ReleaseSlot | null> {
    if (signal?.aborted === true || (this.#size >= this.#max && !this.#makeSpace(client))) return Promise.resolve(null)
    return new Promise((resolve) => {
      const cancel = (): void => this.#leave(client, call)
      const call: WaitingCall = {
        resolve: (release) => {
          signal?.removeEventListener('abort', cancel)
          resolve(release)
        }
      }
      signal?.addEventListener('abort', cancel, { once: true })
      const calls = this.#clients.get(client)
      if (calls === undefined) this.#clients.set(client, [call])
      else calls.push(call)
      this.#size++
    })
  }

  /** Gives a slot to the call whose turn it is; false when none waits. */
  grant(slot: () => ReleaseSlot): boolean {
    for (const [client, calls] of this.#clients) {
      const call = calls.shift()
      // The next turn is another client's.
      this.#clients.delete(client)
      if (calls.length > 0) this.#clients.set(client, calls)
      if (call === undefined) continue
      this.#size--
      call.resolve(slot())
      return true
    }
    return false
  }

  #makeSpace(client: object): boolean {
    let most: WaitingCall[] = []
    for (const calls of this.#clients.values()) if (calls.length > most.length) most = calls
    const own = this.#clients.get(client)?.length ?? 0
    if (most.length < own + 2) return false
    this.#size--
    most.pop()?.resolve(null)
    return true
  }

  #leave(client: object, call: WaitingCall): void {
    const calls = this.#clients.get(client) ?? []
    const at = calls.indexOf(call)
    if (at === -1) return
    calls.splice(at, 1)
    if (calls.length === 0) this.#clients.delete(client)
    this.#size--
    call.resolve(null)
  }
}
