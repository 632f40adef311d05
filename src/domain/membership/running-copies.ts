import type { NodeId } from '../../kit/ids.js'

/** How long a copy that was found counts as running, in milliseconds. */
const RECENT_MS = 600_000
/** Earlier processes of a member that are remembered. */
const MAX_EARLIER = 8
/** Members that are remembered; the oldest is forgotten first. */
const MAX_MEMBERS = 1024

/** The process of a peer, sent as it opens the gate. */
export interface ProcessInfo {
  /** Id of its process, random at each start (16 hex digits); null from an older build. */
  readonly process: string | null
  /** It found another running process with the key of the receiver. */
  readonly isDoubled: boolean
}

/** A stream that passed the gate. `openedAt` and `now`: monotonic milliseconds. */
export interface PassedStream extends ProcessInfo {
  readonly peer: NodeId
  readonly openedAt: number
  readonly now: number
}

/** Members whose key two running processes use. */
export interface FoundCopies {
  /** The member that reported a second process with the key of this node; null for none. */
  readonly reporter: NodeId | null
  readonly peers: readonly NodeId[]
}

interface SeenMember {
  readonly process: string
  /** When the stream of that process passed. */
  readonly since: number
  readonly earlier: readonly string[]
  readonly doubledAt: number | null
}

/**
 * Finds members whose key two running processes use, as of a cloned disk. A restart changes the process id for good: a
 * process that links again after another one of the same key shows that both run. A member that finds this reports it
 * to both.
 */
export class RunningCopies {
  readonly #seen = new Map<NodeId, SeenMember>()
  #reported: { readonly peer: NodeId; readonly at: number } | null = null

  /** Takes a stream that passed the gate. */
  passed({ peer, process, isDoubled, openedAt, now }: PassedStream): void {
    if (isDoubled) this.#reported = { peer, at: now }
    if (process === null) return
    const known = this.#seen.get(peer)
    if (known?.process === process) return
    // A stream that was opened before the other process linked may be one of a process that has ended.
    const isBack = known !== undefined && known.earlier.includes(process) && openedAt > known.since
    const earlier =
      known === undefined
        ? []
        : [known.process, ...known.earlier.filter((one) => one !== known.process)].slice(0, MAX_EARLIER)
    this.#seen.delete(peer)
    this.#seen.set(peer, { process, since: now, earlier, doubledAt: isBack ? now : (known?.doubledAt ?? null) })
    const [oldest] = this.#seen.keys()
    if (oldest !== undefined && this.#seen.size > MAX_MEMBERS) this.#seen.delete(oldest)
  }

  /** Do two running processes use the key of a member, as seen in the last 10 minutes? */
  isDoubled(peer: NodeId, now: number): boolean {
    const at = this.#seen.get(peer)?.doubledAt ?? null
    return at !== null && now - at < RECENT_MS
  }

  /** Every copy found in the last 10 minutes. */
  found(now: number): FoundCopies {
    const reported = this.#reported
    return {
      reporter: reported !== null && now - reported.at < RECENT_MS ? reported.peer : null,
      peers: [...this.#seen.keys()].filter((peer) => this.isDoubled(peer, now))
    }
  }
}
