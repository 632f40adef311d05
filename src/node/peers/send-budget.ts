/** The most waiting bytes for all peers together. */
const MAX_BYTES = 64 * 1024 * 1024
/** The most waiting bytes for one peer; one more message of any size may still exceed it. */
const MAX_PEER_BYTES = 8 * 1024 * 1024
/** Waiting bytes reserved for each peer. */
const OWN_BYTES = 512 * 1024
/** The bytes that peers share beyond that: with those of 64 peers they fill the common bound. */
const SHARED_BYTES = 32 * 1024 * 1024

/** The waiting bytes of one peer. */
export interface PeerBudget {
  /** Adds bytes; false when there is no room for them. */
  take(bytes: number): boolean
  /** Removes bytes that wait no longer. */
  leave(bytes: number): void
}

/**
 * The bytes for messages that wait for their peers. Each peer has a small reserve. Of the shared bytes a peer never
 * holds more than it leaves free, so that slow readers never take all of them.
 */
export class SendBudget {
  #bytes = 0
  #shared = 0

  /** An empty budget for a peer. */
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
