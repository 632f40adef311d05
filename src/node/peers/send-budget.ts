/** Bytes that may wait for all peers together. */
const MAX_BYTES = 64 * 1024 * 1024
/** Once so many bytes wait for a peer, it is sent nothing more; one message of any size still goes beyond. */
const MAX_PEER_BYTES = 8 * 1024 * 1024
/** Bytes that may wait for each peer whatever waits for others. */
const OWN_BYTES = 512 * 1024
/** What peers share beyond that: with 64 of them it fills the bound of all together. */
const SHARED_BYTES = 32 * 1024 * 1024

/** What waits for one peer. */
export interface PeerBudget {
  /** Takes so many bytes in; false when there is no room for them. */
  take(bytes: number): boolean
  /** They wait no longer. */
  leave(bytes: number): void
}

/**
 * The room for messages that wait for their peers, in bytes. Each peer has a little of its own. Of what is shared a peer never
 * holds more than it leaves free, so that those that read slowly never take all of it.
 */
export class SendBudget {
  #bytes = 0
  #shared = 0

  /** Room for a peer, empty at first. */
  peer(): PeerBudget {
    let waiting = 0
    const change = (bytes: number): void => {
      this.#shared += beyond(waiting + bytes) - beyond(waiting)
      this.#bytes += bytes
      waiting += bytes
    }
    return {
      take: (bytes) => {
        const free = SHARED_BYTES - this.#shared
        const fits = beyond(waiting + bytes) <= free && this.#bytes + bytes <= MAX_BYTES
        if (waiting >= MAX_PEER_BYTES || !fits) return false
        change(bytes)
        return true
      },
      leave: (bytes) => change(-bytes)
    }
  }
}

function beyond(bytes: number): number {
  return Math.max(0, bytes - OWN_BYTES)
}
