import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { formatDuration } from '../../../kit/units.js'
import { isApplied } from '../../../domain/membership/fold/applied.js'
import type { FoldResult } from '../../../domain/membership/fold/effects.js'
import { encodeEntry } from '../../../domain/membership/codec.js'
import type { Entry, MembershipView } from '../../../domain/membership/types.js'
import type { EntryRelayOptions } from './entry-relay.js'

/** Milliseconds after which a waiting entry is offered again. */
const OFFER_AGAIN_MS = 1000

/**
 * A taken entry that the view does not show after this time is offered again, in milliseconds: its taker may have lied
 * or died.
 */
const SHOWN_MS = 3000

/** Dependencies of {@link Submission}. */
export interface SubmissionDeps {
  readonly entry: Entry
  readonly clock: Clock
  readonly timeoutMs: number
  view(): MembershipView
  isClosed(): boolean
  /** Why this node, a writer, appends nothing now, such as a full disk; null: it does, or is no writer. */
  fault(): NodeError | null
  onChange(listener: () => void): () => void
  /** The effect that the entry would have on the log as it is here. @throws Error when that cannot be read */
  tryOut(entry: Entry): Promise<Pick<FoldResult, 'skipped' | 'isFull'>>
  /**
   * Appends the entry or hands it to a writer. `isAgain`: it was taken before, and the view does not show it. True: it
   * is in the log, or a writer says so. Never rejects.
   */
  offer(entry: Uint8Array, isAgain: boolean): Promise<boolean>
  /** Reads the view again. */
  refresh(): Promise<void>
}

/** One entry on its way into the log: offered until a writer took it, done when the own view shows it. */
export class Submission {
  /**
   * Resolves when applied.
   * @throws NodeError OVERLOADED when a limit of the log is reached, TIMEOUT, INTERNAL; as `fault` says
   */
  readonly done: Promise<void>
  readonly #deps: SubmissionDeps
  readonly #bytes: Uint8Array
  #settle: (error: NodeError | null) => void = () => {}
  #isOffering = false
  #isLooking = false
  #isTaken = false
  #wasTaken = false
  /** Monotonic milliseconds. */
  #takenAt = 0
  /** Why the log as it is here does not accept the entry; null: it does, as far as known. */
  #refusal: string | null = null

  constructor(deps: SubmissionDeps) {
    this.#deps = deps
    this.#bytes = encodeEntry(deps.entry)
    this.done = this.#start()
  }

  /** Checks whether it is done, and offers it if no writer has taken it yet. */
  attempt(): void {
    const { entry, clock, view, isClosed } = this.#deps
    if (isApplied(view(), entry)) return this.#settle(null)
    if (isClosed()) return this.#settle(new NodeError('INTERNAL', 'the mesh log is closed'))
    if (this.#isTaken && clock.monotonic() - this.#takenAt >= SHOWN_MS) this.#isTaken = false
    if (this.#isOffering) return
    if (this.#isTaken) return this.#lookForLimit()
    const fault = this.#deps.fault()
    // An entry that was taken before may still be applied.
    if (fault !== null && !this.#wasTaken) return this.#settle(fault)
    this.#isOffering = true
    void this.#offer().then((isTaken) => {
      this.#isOffering = false
      this.#isTaken = isTaken
      if (!isTaken) return
      this.#wasTaken = true
      this.#takenAt = clock.monotonic()
      void this.#deps.refresh().then(() => this.attempt(), ignore)
    })
  }

  /** True: a writer took it. Never rejects. */
  async #offer(): Promise<boolean> {
    const { entry, offer, tryOut } = this.#deps
    // A view that cannot be read refuses nothing.
    const tried = await tryOut(entry).catch(ignore)
    this.#refusal = tried?.skipped ?? null
    if (tried?.isFull !== true) return await offer(this.#bytes, this.#wasTaken)
    this.#settle(overLimit(tried.skipped))
    return false
  }

  /** A taken entry behind others that reached a limit of the log is refused there, so nothing is waited for. */
  #lookForLimit(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    const { entry, tryOut, refresh, view } = this.#deps
    const look = async (): Promise<void> => {
      const { isFull, skipped } = await tryOut(entry)
      if (!isFull) return
      // The entry itself may be the one that reached the limit.
      await refresh()
      if (!isApplied(view(), entry)) this.#settle(overLimit(skipped))
    }
    void look()
      .catch(ignore)
      .finally(() => (this.#isLooking = false))
  }

  async #start(): Promise<void> {
    const { clock, timeoutMs, onChange } = this.#deps
    const deadline = clock.after(timeoutMs, () => this.#settle(this.#timedOut()))
    const again = clock.every(OFFER_AGAIN_MS, () => this.attempt())
    const stop = onChange(() => this.attempt())
    try {
      await new Promise<void>((resolve, reject) => {
        this.#settle = (error) => (error === null ? resolve() : reject(error))
        this.attempt()
      })
    } finally {
      clock.clear(deadline)
      clock.clear(again)
      stop()
    }
  }

  /** Its offer is over. An entry that left this node may still be applied; one that the log refuses is not. */
  #timedOut(): NodeError {
    const { timeoutMs } = this.#deps
    const within = `within ${formatDuration(timeoutMs)}`
    const after = this.#refusal === null ? '; the change may still be made' : ''
    const data = this.#refusal === null ? { timeoutMs, outcome: 'unknown' } : { timeoutMs }
    return new NodeError('TIMEOUT', `${this.#timeoutMessage()} (${within})${after}`, { data, next: ['a2a-node peers'] })
  }

  #timeoutMessage(): string {
    if (this.#refusal !== null)
      return `the mesh log, as far as this node has it, does not accept the change: ${this.#refusal}`
    return this.#wasTaken
      ? 'a writer took the entry, but the log does not show it: this node may not make that change, or the writer did not do as it said'
      : 'no node that may write the log took the entry: none could be reached, or this node may not make that change'
  }
}

/** Dependencies of {@link Submissions}. */
export interface SubmissionsDeps
  extends Pick<SubmissionDeps, 'clock' | 'view' | 'isClosed' | 'fault' | 'onChange' | 'refresh' | 'tryOut'> {
  /**
   * Appends to the own core; rejects when that failed. null: this node appends no entries now, since it is no writer or
   * its core is full.
   */
  append(entry: Uint8Array): Promise<boolean> | null
  /** Is this node a writer that may append nothing now? */
  isHalted(): boolean
  /** Hands an entry to other nodes. */
  relay(entry: Uint8Array, options: EntryRelayOptions): Promise<boolean>
  /**
   * Appends the claim of the own core to that core, before the log reads it. False when this node may not, or when that
   * failed.
   */
  claim(entry: Uint8Array): Promise<boolean>
}

/** The entries of this node on their way into the log: appended here, or handed to a writer. */
export class Submissions {
  readonly #deps: SubmissionsDeps
  readonly #open = new Set<Submission>()

  constructor(deps: SubmissionsDeps) {
    this.#deps = deps
  }

  /** Resolves when the view shows the entry. @throws NodeError as {@link Submission.done} */
  async submit(entry: Entry, timeoutMs: number): Promise<void> {
    const { claim, isClosed } = this.#deps
    let isClaimed = entry.body.kind !== 'core'
    const offer = async (bytes: Uint8Array, isAgain: boolean): Promise<boolean> => {
      if (await this.#offer(bytes, isAgain)) return true
      if (isClaimed || isClosed()) return false
      isClaimed = await claim(bytes)
      return isClaimed
    }
    const submission = new Submission({ ...this.#deps, entry, timeoutMs, offer })
    this.#open.add(submission)
    await submission.done.finally(() => this.#open.delete(submission))
  }

  /** Something changed: checks each entry, and offers it again when no writer has taken it. */
  retry(): void {
    for (const submission of [...this.#open]) submission.attempt()
  }

  async #offer(entry: Uint8Array, isAgain: boolean): Promise<boolean> {
    const { append, isClosed, isHalted, relay } = this.#deps
    if (isClosed() || isHalted()) return false
    return (append(entry) ?? relay(entry, { isAgain })).catch(() => false)
  }
}

function overLimit(reason: string | null): NodeError {
  const message = `the mesh log takes no more: ${reason}`
  return new NodeError('OVERLOADED', message, { retryable: false, next: ['a2a-node status'] })
}

/** A view that cannot be read now is read at its next change. */
function ignore(): void {}
