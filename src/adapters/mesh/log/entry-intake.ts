import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { isApplied } from '../../../domain/membership/fold/applied.js'
import { decodeEntry } from '../../../domain/membership/codec.js'
import type { Entry, MembershipView } from '../../../domain/membership/types.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { RateTable, TokenBucket } from '../../../kit/rate.js'
import { type WriterClaim, claimOf } from './log-writers.js'

/** Entries that one peer may hand in. */
const ENTRIES_PER_PEER = { perSecond: 10, burst: 600 }
/** Bytes of entries that one peer may hand in: log entries stay at every node. */
const BYTES_PER_PEER = { perSecond: 64 * 1024, burst: 4 * 1024 * 1024 }
/**
 * Bytes of entries of one author that a writer carries in its own core, in the long run: they use up the writer's share
 * of the log, too. An entry has about 1 KiB, so the rate allows more than 5,000 a day.
 */
const BYTES_PER_AUTHOR = { perSecond: 64, burst: 4 * 1024 * 1024 }
/** Entries that count for no share: there is at most one for each member and each invite, and they must get through. */
const ALWAYS_CARRIED: ReadonlySet<Entry['body']['kind']> = new Set(['revocation', 'invite-revoked'])
/**
 * Entries, and bytes of entries, handed on for all peers together: a writer counts them as this node's own, which needs
 * its half.
 */
const ENTRIES_HANDED_ON = { perSecond: ENTRIES_PER_PEER.perSecond / 2, burst: ENTRIES_PER_PEER.burst / 2 }
const BYTES_HANDED_ON = { perSecond: BYTES_PER_PEER.perSecond / 2, burst: BYTES_PER_PEER.burst / 2 }
/**
 * How long an entry waits for its author's admission to come into the view, in milliseconds; less than its sender
 * waits.
 */
const ADMISSION_WAIT_MS = 3000

/** The part of the log that the intake uses. */
export interface IntakeLog {
  view(): MembershipView
  onChange(listener: (view: MembershipView) => void): () => void
  writable(): boolean
  /** Is the author in quarantine? Then only its claim to go on with another core is taken. */
  isQuarantined(nodeId: NodeId): boolean
  /** Would the entry change the log as it is here? Signatures and rights included. */
  wouldChange(entry: Entry): Promise<boolean>
  /** A member claims another core. */
  claim(claim: WriterClaim, from: NodeId): Promise<void>
  /** @throws Error when the log is closing */
  append(entry: Uint8Array): Promise<void>
  /** Hands a peer's entry to writers with a link to this node. True: one reports that it appended it. */
  handOn(entry: Uint8Array, from: NodeId): Promise<boolean>
}

/**
 * Takes log entries of peers: only entries that the log accepts, within the limits of each peer. A writer appends them;
 * any other member hands them to a writer, for peers that have no link with one.
 */
export class EntryIntake {
  readonly #log: IntakeLog
  readonly #clock: Clock
  readonly #telemetry: Telemetry
  readonly #rates: RateTable
  readonly #byteRates: RateTable
  readonly #authorRates: RateTable
  readonly #handedOn: { readonly entries: TokenBucket; readonly bytes: TokenBucket }

  constructor({
    log,
    clock,
    telemetry
  }: { readonly log: IntakeLog; readonly clock: Clock; readonly telemetry: Telemetry }) {
    this.#log = log
    this.#clock = clock
    this.#telemetry = telemetry
    this.#rates = new RateTable(ENTRIES_PER_PEER, clock)
    this.#byteRates = new RateTable(BYTES_PER_PEER, clock)
    this.#authorRates = new RateTable(BYTES_PER_AUTHOR, clock)
    this.#handedOn = {
      entries: new TokenBucket(ENTRIES_HANDED_ON, clock),
      bytes: new TokenBucket(BYTES_HANDED_ON, clock)
    }
  }

  /** True: the entry is in the log, by this call or before. False: not by this node, or not now. */
  async take(bytes: Uint8Array, peer: NodeId): Promise<boolean> {
    if (!this.#rates.take(peer) || !this.#byteRates.take(peer, bytes.byteLength)) return false
    const decoded = decodeEntry(bytes)
    if (!decoded.ok) return this.#refuse(peer, decoded.reason)
    const { entry } = decoded
    if (isApplied(this.#log.view(), entry)) return true
    if (entry.body.kind !== 'core' && this.#log.isQuarantined(entry.by))
      return this.#refuse(peer, 'its author is in quarantine')
    const claim = claimOf(entry, bytes)
    if (claim !== null) await this.#log.claim(claim, peer)
    // An entry ahead of its author's admission would be skipped for good; the author itself came in through the gate.
    if (entry.by === peer) await this.#admitted(peer)
    if (!(await this.#log.wouldChange(entry))) return this.#refuse(peer, 'the log would not accept it')
    if (!this.#log.writable()) {
      const { entries, bytes: handedOn } = this.#handedOn
      return entries.take() && handedOn.take(bytes.byteLength) && (await this.#log.handOn(bytes, peer))
    }
    if (!this.#mayCarry(entry, bytes)) return this.#refuse(peer, 'its author has used up what this node carries for it')
    await this.#log.append(bytes)
    return true
  }

  #mayCarry({ by, body }: Entry, { byteLength }: Uint8Array): boolean {
    return (
      by === this.#log.view().mesh?.owner || ALWAYS_CARRIED.has(body.kind) || this.#authorRates.take(by, byteLength)
    )
  }

  #refuse(peer: NodeId, reason: string): false {
    this.#telemetry.log('debug', 'a log entry was not taken', { peer, reason })
    return false
  }

  /** Resolves when the view shows the node, or after a while. */
  #admitted(nodeId: NodeId): Promise<void> {
    if (this.#log.view().members.has(nodeId)) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        this.#clock.clear(timer)
        stop()
        resolve()
      }
      const timer = this.#clock.after(ADMISSION_WAIT_MS, done)
      const stop = this.#log.onChange((view) => {
        if (view.members.has(nodeId)) done()
      })
    })
  }
}
