import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { isApplied } from '../../../domain/membership/fold/applied.js'
import { encodeEntry } from '../../../domain/membership/codec.js'
import type { Entry, MembershipView } from '../../../domain/membership/types.js'

/** How often a waiting entry is offered again, in milliseconds. */
const OFFER_AGAIN_MS = 1000

/** A taken entry that the view does not show after this time is offered anew, in milliseconds: its taker may have lied or died. */
const SHOWN_MS = 3000

/** What a submission asks of the log. */
export interface SubmissionDeps {
  readonly entry: Entry
  readonly clock: Clock
  readonly timeoutMs: number
  view(): MembershipView
  isClosed(): boolean
  onChange(listener: () => void): () => void
  /**
   * Appends the entry or hands it to a writer. `isAgain`: it was taken before, and the view does not show it. True: it is in
   * the log, or so a writer says. Never rejects.
   */
  offer(entry: Uint8Array, isAgain: boolean): Promise<boolean>
  /** Reads the view anew. */
  refresh(): Promise<void>
}

/** One entry on its way into the log: offered until a writer took it, done when the own view shows it. */
export class Submission {
  /** Resolves when applied. @throws NodeError TIMEOUT, INTERNAL */
  readonly done: Promise<void>
  readonly #deps: SubmissionDeps
  readonly #bytes: Uint8Array
  #settle: (error: NodeError | null) => void = () => {}
  #isOffering = false
  #isTaken = false
  #wasTaken = false
  /** Monotonic milliseconds. */
  #takenAt = 0

  constructor(deps: SubmissionDeps) {
    this.#deps = deps
    this.#bytes = encodeEntry(deps.entry)
    this.done = this.#start()
  }

  /** Looks whether it is done, and offers it if nobody took it yet. */
  attempt(): void {
    const { entry, clock, view, isClosed, offer } = this.#deps
    if (isApplied(view(), entry)) return this.#settle(null)
    if (isClosed()) return this.#settle(new NodeError('INTERNAL', 'the mesh log is closed'))
    if (this.#isTaken && clock.monotonic() - this.#takenAt >= SHOWN_MS) this.#isTaken = false
    if (this.#isOffering || this.#isTaken) return
    this.#isOffering = true
    void offer(this.#bytes, this.#wasTaken).then((isTaken) => {
      this.#isOffering = false
      this.#isTaken = isTaken
      if (!isTaken) return
      this.#wasTaken = true
      this.#takenAt = clock.monotonic()
      void this.#deps.refresh().then(() => this.attempt(), ignore)
    })
  }

  async #start(): Promise<void> {
    const { clock, timeoutMs, onChange } = this.#deps
    const deadline = clock.after(timeoutMs, () => this.#settle(new NodeError('TIMEOUT', this.#timeoutMessage())))
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

  #timeoutMessage(): string {
    return this.#wasTaken
      ? 'a writer took the entry, but the log does not show it: this node may not make that change, or the writer did not do as it said'
      : 'no node that may write the log took the entry: none could be reached, or this node may not make that change'
  }
}

/** A view that cannot be read now is read at its next change. */
function ignore(): void {}
