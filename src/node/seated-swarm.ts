import type { Timer } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import type { CoordinationMessage } from '../domain/swarm/coordination-message.js'
import type { VoterStart } from '../domain/swarm/coordination-vote.js'
import type { RunOutcome } from '../domain/swarm/machine.js'
import { RECORDS } from '../domain/swarm/record-index.js'
import type { SeatMessageOf } from '../domain/swarm/seat-message.js'
import type { SwarmEvent, SwarmInfo, SwarmResults, SwarmStatus } from '../ports/swarm-api.js'
import { AcceptedSwarm } from './accepted-swarm.js'
import { courseOf, infoOf } from './ended-swarm.js'
import type { SwarmView } from './ended-swarm.js'
import { followedSession, stagesOf, standingOf } from './followed-view.js'
import type { FollowedView } from './followed-view.js'
import { SeatOffers } from './seat-offers.js'
import type { SwarmEnd, SwarmHead, SwarmItem, SwarmRow } from './swarm-book.js'
import type { ContentName } from './swarm-contents.js'
import type { Following, SwarmCourse } from './swarm-course.js'
import type { ItemRun } from './swarm-leases.js'
import { leasesBefore } from './swarm-past.js'
import { SwarmFollowing } from './swarm-following.js'
import { NO_MAJORITY, SwarmNews } from './swarm-news.js'
import { SwarmRun } from './swarm-run.js'
import type { SwarmRunParts } from './swarm-run.js'
import { SwarmSeat } from './swarm-seat.js'
import type { SwarmSeatParts } from './swarm-seat.js'
import type { SwarmSession } from './swarm-session.js'
import type { Survey } from './swarm-survey.js'
import { SwarmShelf } from './swarm-shelf.js'
import { SwarmTerm } from './swarm-term.js'
import type { SeatRecord } from './swarm-votes.js'

/** A vote that could not be recorded is opened again after so many milliseconds. */
const REOPEN_MS = 1000
/** Who cannot read what was accepted leaves it to others to coordinate for so many milliseconds. */
const UNABLE_MS = 60_000

/** What a swarm with several participants needs. */
export interface SeatedSwarmParts extends Omit<SwarmRunParts, 'onStatus' | 'onEnd'>, SwarmSeatParts {
  readonly ids: IdSource
  isPutOut(node: NodeId): boolean
  onStatus(swarm: SeatedSwarm, status: 'running' | 'stalled'): void
  /** Called once, when it has ended here. */
  onEnd(swarm: SeatedSwarm): void
  /** Who may take part now, by need. */
  survey(head: SwarmHead): Survey[]
}

/** How this node takes part. */
export interface Seating {
  readonly head: SwarmHead
  /** Without their inputs. */
  readonly items: readonly SwarmItem[]
  readonly seat: SeatRecord
}

/** A swarm with several participants, as one of them sees it: it votes, follows who coordinates, and coordinates itself when it is to. */
export class SeatedSwarm implements SwarmView {
  readonly head: SwarmHead
  readonly #parts: SeatedSwarmParts
  readonly #items: readonly SwarmItem[]
  readonly #voters: readonly NodeId[]
  readonly #course: SwarmCourse
  readonly #shelf: SwarmShelf
  readonly #accepted: AcceptedSwarm
  readonly #following: SwarmFollowing
  readonly #offers: SeatOffers | null
  #record: SeatRecord
  #seat: SwarmSeat | null = null
  #run: SwarmRun | null = null
  #term: SwarmTerm | null = null
  /** Counts terms and openings: what was begun in one of them ends with it. */
  #generation = 0
  #end: SwarmEnd | null
  #isStopped = false
  #timer: Timer | null = null
  /** It does not stand before this. */
  #ableAt = Number.NEGATIVE_INFINITY
  readonly #news: SwarmNews

  constructor(parts: SeatedSwarmParts, { head, items, seat }: Seating) {
    this.head = head
    this.#voters = head.voters ?? []
    this.#parts = parts
    this.#items = items.map(({ name, pinnedTo }) => ({ name, ...(pinnedTo === undefined ? {} : { pinnedTo }) }))
    this.#record = seat
    this.#end = head.end
    this.#course = courseOf(head, parts.telemetry)
    this.#news = new SwarmNews(parts, { course: this.#course, onStatus: (status) => parts.onStatus(this, status) })
    const isLauncher = this.#voters[0] === parts.self
    const offering = { head, voters: this.#voters, seat, items: async () => (await parts.swarmBook.unfinished(head.id)).items }
    this.#shelf = new SwarmShelf(parts, head)
    this.#accepted = new AcceptedSwarm(parts, {
      head,
      course: this.#course,
      content: (name) => this.#shelf.content(name),
      obtain: (names, from) => this.#shelf.obtain(names, from),
      release: (name) => this.#shelf.contents.drop(name),
      onOver: (end) => {
        this.#ended(end)
        this.#tellEnd(end)
      }
    })
    this.#following = new SwarmFollowing(parts, { swarm: head.id, voters: this.#voters, accepted: this.#accepted })
    this.#offers = isLauncher ? new SeatOffers(parts, offering) : null
  }

  /** Begins to vote. */
  open(start: VoterStart): void {
    if (this.#isStopped || this.#end !== null) return
    const { ids } = this.#parts
    const { id, itemCount: items } = this.head
    const generation = ++this.#generation
    const coordination = { swarm: id, itemCount: RECORDS.count(items), voters: this.#voters, mayTakeOver: true }
    this.#seat = new SwarmSeat(this.#parts, {
      coordination,
      items,
      contents: this.#shelf.contents,
      obtain: (names, from) => this.#shelf.obtain(names, from),
      run: ids.next('run'),
      start,
      onBegin: (epoch, accepted) => void this.#begin(epoch, accepted),
      onAccepted: (epoch, accepted) => this.#onAccepted(epoch, accepted),
      onEnded: () => this.#leave(),
      onStored: () => void this.#recovered(),
      onFailed: () => this.#reopen(generation)
    })
    this.#seat.standing(false)
  }

  /** The launcher knows of the seat now. */
  async confirm(ledger: string): Promise<void> {
    if (this.#record.state !== 'invited' || this.#record.ledger !== ledger) return
    const record = { ...this.#record, state: 'open' } as const
    await this.#parts.commit([this.#parts.swarmVotes.seatChange(this.head.id, record)])
    if (this.#record.state !== 'invited') return
    this.#record = record
    this.open({ type: 'fresh' })
  }

  /** What was lost has been learned again, and is durable: the next start goes on from there. */
  async #recovered(): Promise<void> {
    if (this.#record.state !== 'lost') return
    const { commit, swarmVotes, telemetry } = this.#parts
    this.#record = { ...this.#record, state: 'open' }
    // A launcher's says more, which its offers know.
    if (this.#offers !== null) return await this.#offers.relearned()
    await commit([swarmVotes.seatChange(this.head.id, this.#record)]).catch((error: unknown) =>
      telemetry.log('warn', 'that a vote was learned again could not be recorded', { reason: messageOf(error) })
    )
  }

  /** It had ended before: this is what came of it. */
  recall(rows: readonly SwarmRow[]): void {
    for (const row of rows) this.#accepted.settled(row)
    if (this.#end !== null) this.#tellEnd(this.#end)
  }

  /** Does this node vote in it? */
  get isOpen(): boolean {
    return this.#seat !== null || this.#end !== null
  }

  get isRunning(): boolean {
    return this.#end === null
  }

  /** Does this node coordinate it? */
  get isHere(): boolean {
    return this.#term?.isOn === true
  }

  /** The highest epoch that this node has granted. */
  get epoch(): number {
    return this.#seat?.granted ?? 0
  }

  get status(): SwarmStatus {
    if (this.#end !== null) return this.#end.status
    if (this.#run !== null && this.isHere) return this.#run.status
    return this.#news.status
  }

  get bytes(): number {
    return this.#accepted.bytes
  }

  get isHeld(): boolean {
    return this.#run?.isHeld === true
  }

  get end(): SwarmEnd | null {
    return this.#end
  }

  session(): SwarmSession {
    return this.#run?.session() ?? followedSession(this.#parts, this.#view, this.#end)
  }

  invite(agents: readonly (readonly string[])[]): void {
    this.#run?.invite(agents)
  }

  settle(subTask: string, outcome: RunOutcome): boolean {
    return this.#run?.settle(subTask, outcome) === true
  }

  /** Time passed. `found`: who may take part, by need. */
  tick(found: readonly Survey[]): void {
    if (this.#isStopped || this.#end !== null) return
    this.#offers?.tick()
    this.#shelf.contents.tick()
    this.#stand(found)
    if (!this.isHere) this.#following.tick(this.#seat?.coordinator.node ?? null)
    this.#run?.tick(found)
    this.#tell()
  }

  #stand(found: readonly Survey[]): void {
    const [launcher] = this.#voters
    const isWelcome = launcher !== undefined && !this.#parts.isPutOut(launcher) && found.every(({ allowed }) => allowed.length > 0)
    this.#seat?.standing(this.#parts.clock.monotonic() >= this.#ableAt && (this.#offers === null ? isWelcome : this.#offers.hasMajority))
    this.#seat?.tick()
  }

  #tell(): void {
    this.#news.look(this.#seat?.coordinator ?? { node: null, epoch: 0 }, this.isHere)
  }

  /** Stops it, where it is coordinated. @throws NodeError CONFLICT elsewhere */
  async cancel(): Promise<void> {
    if (this.#end !== null) return
    if (this.#run !== null && this.isHere) return await this.#run.cancel()
    const { coordinator } = this.#news.coordinator
    throw new NodeError('CONFLICT', coordinator === null ? NO_MAJORITY : `the swarm is coordinated by ${coordinator}: cancel it there`, {
      data: { coordinator }
    })
  }

  /** Its records are about to go, and nobody coordinates it: whoever has more of it goes on without this node. */
  async expire(): Promise<void> {
    await this.stop()
    const error = new NodeError('TIMEOUT', `${NO_MAJORITY}, until all that is known of it expired`).toBody()
    const end = { ...standingOf(this.#parts, this.#view), status: 'failed', error } as const
    this.#ended(end)
    this.#tellEnd(end)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#generation++
    this.#parts.clock.clear(this.#timer)
    this.#seat?.close()
    await this.#run?.stop()
    await this.#accepted.stop()
  }

  heard(peer: NodeId, runs: readonly ItemRun[], isHeld: boolean): ItemRun[] {
    if (this.#run !== null) return this.#run.heard(peer, runs, isHeld)
    return this.#end === null ? [] : [...runs]
  }

  lost(peer: NodeId): void {
    this.#offers?.lost(peer)
    this.#run?.lost(peer)
  }

  follow(listener: (event: SwarmEvent) => void): Following {
    return this.#course.follow(listener)
  }

  results(): SwarmResults {
    const together = this.#end === null ? {} : stagesOf(this.#view).together()
    return { id: this.head.id, status: this.status, ...together, results: this.#course.results() }
  }

  info(): SwarmInfo {
    const { coordinator, epoch } = this.#seat === null ? { coordinator: null, epoch: this.#accepted.records.epoch } : this.#news.coordinator
    const coordination = { coordinator, epoch, participants: this.#voters.map((node) => this.#parts.directory.ref(node).name) }
    if (this.#run !== null && this.#end === null) return { ...this.#run.info(), status: this.status, coordination }
    return { ...infoOf(this.head, this.#end ?? { ...standingOf(this.#parts, this.#view), status: this.status, error: null }), coordination }
  }

  get #view(): FollowedView {
    return { head: this.head, course: this.#course, items: this.#items }
  }

  /** A participant speaks of who coordinates. */
  onCoordination(from: NodeId, message: CoordinationMessage): void {
    this.#seat?.receive(from, message)
    if (message.kind === 'granted' || message.kind === 'refused') this.#tell()
  }

  async onSeated(from: NodeId, message: SeatMessageOf<'seated'>): Promise<void> {
    await this.#offers?.seated(from, message)
    this.tick(this.#parts.survey(this.head))
  }

  onPieces(from: NodeId, message: SeatMessageOf<'pieces'>): void {
    if (!this.#shelf.contents.take(from, message.pieces, from === this.#seat?.supplier)) return
    this.#seat?.supplied()
    this.#accepted.take([], from)
  }

  /** Somebody asks for contents. */
  async onWant(from: NodeId, { wants }: SeatMessageOf<'want'>): Promise<void> {
    await this.#shelf.give(from, wants, (await this.#offers?.pieces(wants)) ?? [])
  }

  /** Somebody asks what was accepted. */
  async onFollow(from: NodeId, message: SeatMessageOf<'follow'>): Promise<void> {
    if (this.#end !== null && this.#accepted.records.size === 0) await this.#accepted.recall()
    if (this.#end !== null || this.#seat?.isCoordinating === true) this.#following.answer(from, message)
  }

  /** The coordinator, or who saw the end, says what was accepted. */
  onAcceptedThere(from: NodeId, message: SeatMessageOf<'accepted'>): void {
    if (this.#end === null && !this.isHere) this.#following.heard(from, message)
  }

  #onAccepted(epoch: number, accepted: readonly ContentName[]): void {
    this.#following.announce(epoch, accepted)
    this.#term?.onAccepted(accepted)
  }

  /** This node coordinates: it goes on from what was accepted before. */
  async #begin(epoch: number, accepted: readonly ContentName[]): Promise<void> {
    const { swarmBook, telemetry, self } = this.#parts
    const generation = ++this.#generation
    const isOver = (): boolean => generation !== this.#generation || this.#end !== null
    const { id, itemCount } = this.head
    this.#accepted.records.add(accepted, { total: 0, epoch })
    try {
      const { rows, marks } = await this.#accepted.read(accepted)
      if (isOver()) return
      if (this.#accepted.hasEnd) return this.#accepted.take(accepted, self)
      const { items, leases } = await swarmBook.unfinished(id)
      if (isOver() || this.#seat === null) return
      for (const row of rows) this.#accepted.settled(row)
      const known = new Set(accepted.map(({ index }) => index))
      const term = new SwarmTerm({ ...this.#parts, seat: this.#seat, course: this.#course, epoch, items: itemCount, accepted: known })
      const past = { rows, leases: leasesBefore(leases, marks, self) }
      this.#term = term
      telemetry.log('info', 'this node coordinates a swarm', { swarm: id, epoch, accepted: rows.length })
      const hooks = {
        onEnd: (run: SwarmRun) => this.#ended(run.end),
        onStatus: (_run: SwarmRun, status: 'running' | 'stalled') => this.#parts.onStatus(this, status)
      }
      const isNew = rows.length + past.leases.length === 0
      const allowed = this.#parts.survey(this.head).map((one) => one.allowed)
      this.#run = new SwarmRun({ ...this.#parts, ...hooks }, { head: this.head, items, allowed, past: isNew ? null : past, term })
      this.#tell()
    } catch (error) {
      telemetry.log('error', 'a swarm could not be read', { swarm: id, reason: messageOf(error) })
      if (isOver()) return
      this.#ableAt = this.#parts.clock.monotonic() + UNABLE_MS
      this.#seat?.close()
      this.#reopen(generation)
    }
  }

  /** It coordinates no more: whoever does goes on from what was accepted. */
  #leave(): void {
    this.#generation++
    const [run, term] = [this.#run, this.#term]
    this.#run = null
    this.#term = null
    void run?.stop()
    void (term?.stop() ?? Promise.resolve()).then(() => {
      if (this.#end === null) this.#accepted.takeUntold(this.#parts.self)
    })
    if (run !== null) this.#parts.telemetry.log('info', 'this node coordinates a swarm no more', { swarm: this.head.id })
    this.#tell()
  }

  #reopen(generation: number): void {
    this.#leave()
    this.#seat = null
    if (this.#isStopped || generation > this.#generation) return
    const { clock, swarmVotes } = this.#parts
    this.#timer = clock.after(REOPEN_MS, () => {
      swarmVotes.stored(this.head.id).then(
        (stored) => this.open(this.#record.state === 'lost' ? { type: 'lost' } : { type: 'restarted', stored }),
        () => this.#reopen(this.#generation)
      )
    })
  }

  #tellEnd({ status, counts, durationMs, error }: SwarmEnd): void {
    this.#course.tell({ type: 'done', id: this.head.id, status, counts, durationMs, error, ...stagesOf(this.#view).together() })
  }

  #ended(end: SwarmEnd | null): void {
    if (end === null || this.#end !== null) return
    this.#end = end
    this.#seat?.close()
    this.#seat = null
    this.#parts.onEnd(this)
  }
}
