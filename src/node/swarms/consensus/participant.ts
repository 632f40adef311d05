import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Coordination } from '../../../domain/swarm/coordination.js'
import {
  coordinationStatus,
  isCoordinating,
  openCandidate,
  stepCandidate
} from '../../../domain/swarm/coordination-candidate.js'
import type { CandidateEffect, CandidateInput, CandidateState } from '../../../domain/swarm/coordination-candidate.js'
import { MAX_RECORDS, type CoordinationMessage, type Tell } from '../../../domain/swarm/coordination-message.js'
import { openVoter, stepVoter } from '../../../domain/swarm/coordination-vote.js'
import type { VoterEffect, VoterInput, VoterStart, VoterState } from '../../../domain/swarm/coordination-vote.js'
import type { ParticipantMessage } from '../../../domain/swarm/participant-message.js'
import type { CommitQueueDeps } from '../../ledger/commit-queue.js'
import { pieceOf, piecesMessages, type ContentName, type ContentTransfer } from './content-transfer.js'
import { NO_CONTENTS, NO_MAJORITY } from './follower.js'
import type { ContentStore } from './content-store.js'
import type { VoteStore, StoreEffect } from './vote-store.js'

/** Messages kept until their contents arrive. */
const MAX_DEFERRED = 64
/** Milliseconds without progress on earlier accepted records after which a coordinator retreats. */
const STUCK_MS = 60_000
/** Contents of at most this many bytes are sent to the others before they are asked to record them. */
const PUSHED_BYTES = 16 * 1024

/** Dependencies of a participant. */
export interface ParticipantDeps extends CommitQueueDeps {
  readonly self: NodeId
  readonly swarmVotes: VoteStore
  /** Sends to another participant, unless there is no link. Never throws. */
  tell(to: NodeId, message: SwarmWord): void
}

/** A message between participants. */
export type SwarmWord =
  | { readonly name: 'coordination'; readonly body: CoordinationMessage }
  | { readonly name: 'swarm'; readonly body: ParticipantMessage }

/** The swarm of a participant, and its callbacks. */
export interface ParticipantOf {
  /** Its items are the records of the swarm. */
  readonly coordination: Coordination
  /** Item count of the swarm. */
  readonly items: number
  /** Is another outcome accepted? A late earlier vote must not replace it. */
  isVoid(name: ContentName): boolean
  readonly contentStore: Pick<ContentStore, 'contents' | 'obtain' | 'moved'>
  /** An id that is unique to this start. */
  readonly run: string
  readonly start: VoterStart
  /** It coordinates, and has all records accepted before. */
  onBegin(epoch: number, accepted: readonly ContentName[]): void
  onAccepted(epoch: number, accepted: readonly ContentName[]): void
  /** It coordinates no more. */
  onEnded(): void
  /** Its promises are durable. */
  onStored(): void
  /** A vote could not be made durable: the participant must be opened anew. */
  onFailed(): void
}

interface Deferred {
  readonly from: NodeId
  readonly message: CoordinationMessage
}

/** Messages that wait for contents. */
class DeferredMessages {
  #messages: Deferred[] = []

  /** Keeps a message; it replaces an earlier one of the same sender and kind with the same first record. */
  add(from: NodeId, message: CoordinationMessage): void {
    const isSame = (one: Deferred): boolean =>
      one.from === from && one.message.kind === message.kind && firstIndex(one.message) === firstIndex(message)
    this.#messages = [...this.#messages.filter((one) => !isSame(one)), { from, message }].slice(-MAX_DEFERRED)
  }

  /** Removes and returns all messages. */
  take(): Deferred[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }
}

/** The last progress towards coordination, and the time of it. */
class Progress {
  #mark: string | null = null
  #since = 0

  /** `mark`: the state now; null: nothing is pending. True: it has not changed for too long. */
  isStuck(mark: string | null, now: number): boolean {
    if (mark !== this.#mark) [this.#mark, this.#since] = [mark, now]
    return mark !== null && now - this.#since >= STUCK_MS
  }
}

/** This node as a participant of one swarm: votes, is a candidate, has outcomes accepted while it coordinates. */
export class Participant {
  readonly #deps: ParticipantDeps
  readonly #swarm: ParticipantOf
  readonly #voter: VoterState
  readonly #candidate: CandidateState
  readonly #contents: ContentTransfer
  readonly #deferred = new DeferredMessages()
  /** Effects to perform, in order. */
  readonly #effects: (VoterEffect | CandidateEffect)[] = []
  #isPerforming = false
  /** Count of the voter's stores that are not durable yet. */
  #unstored = 0
  /** Indexes of the records whose contents it stored since it was opened, and since they were proposed here. */
  readonly #stored = new Set<number>()
  /** Records to propose with the next message. */
  #proposed: ContentName[] = []
  /** It coordinates, but contents of records accepted before are missing. */
  #beginning: { readonly epoch: number; readonly accepted: readonly ContentName[] } | null = null
  readonly #progress = new Progress()
  #isClosed = false

  constructor(deps: ParticipantDeps, swarm: ParticipantOf) {
    const { clock, self } = deps
    const { coordination, run, start } = swarm
    const now = clock.monotonic()
    const making = { coordination, self, run }
    this.#deps = deps
    this.#swarm = swarm
    this.#voter = openVoter(making, start, now)
    this.#candidate = openCandidate(making, now)
    this.#contents = swarm.contentStore.contents
  }

  /** May this node lease items and have outcomes accepted now? */
  get isCoordinating(): boolean {
    return !this.#isClosed && this.#beginning === null && isCoordinating(this.#candidate, this.#deps.clock.monotonic())
  }

  /** The state of the swarm at this node. */
  get status(): 'coordinating' | 'following' | 'stalled' {
    return coordinationStatus(this.#candidate, this.#voter, this.#deps.clock.monotonic())
  }

  /** The coordinator as known here (null: none), the reason why there is none, and the highest known epoch. */
  get coordinator(): { readonly node: NodeId | null; readonly epoch: number; readonly lack: string } {
    const { epoch, candidate } = this.#voter
    const { knownEpoch, retreats } = this.#candidate
    const lack = retreats === 0 ? NO_MAJORITY : NO_CONTENTS
    return { node: this.status === 'stalled' ? null : candidate, epoch: Math.max(epoch, knownEpoch), lack }
  }

  /** The highest epoch that this node has granted. */
  get granted(): number {
    return this.#voter.epoch
  }

  /** Time passed; at least once a second. */
  tick(): void {
    if (this.#isClosed) return
    this.#vote({ type: 'tick' })
    this.#stand({ type: 'tick', voter: this.#voter })
    this.#tryBegin()
    this.#watchProgress()
  }

  /** Records accepted before cannot be read here: another node may try. */
  retreat(): void {
    this.#stand({ type: 'retreat' })
  }

  /** Sets whether this node may be a candidate: it must reach the remaining agents. */
  standing(mayStand: boolean): void {
    this.#stand({ type: 'standing', mayStand })
  }

  /** Handles a message of a participant. */
  receive(from: NodeId, message: CoordinationMessage): void {
    if (this.#isClosed) return
    // Without their contents the message must not be recorded here.
    const missing = unrecorded(this.#voter, from, message).filter(
      (name) => !this.#swarm.isVoid(name) && this.#contents.get(name) === undefined
    )
    if (missing.length > 0) {
      this.#deferred.add(from, message)
      return this.#swarm.contentStore.obtain(missing, from)
    }
    this.#vote({ type: 'message', from, message })
    this.#stand({ type: 'message', from, message })
  }

  /** A participant reports accepted records, up to this epoch. */
  onAccepted(from: NodeId, epoch: number): void {
    if (!this.#isClosed) this.#vote({ type: 'coordinates', from, epoch })
  }

  /** The node whose unrequested contents are taken: the coordinator. */
  get supplier(): NodeId | null {
    return this.#voter.candidate
  }

  /** Contents have arrived. */
  supplied(): void {
    for (const { from, message } of this.#deferred.take()) this.receive(from, message)
    this.#tryBegin()
  }

  /**
   * Proposes a content, once. {@link ParticipantOf.onAccepted} reports that it is accepted; when the lease ends before,
   * it is void.
   */
  propose(index: number, content: Uint8Array): ContentName {
    const name = { index, digest: this.#deps.swarmVotes.digest(content) }
    this.#contents.put(name, content)
    // A former coordinator may have proposed another content for the index.
    this.#stored.delete(index)
    this.#proposed.push(name)
    if (this.#proposed.length === 1) void this.#proposeSoon()
    return name
  }

  /** Is its vote for a record that it proposed durable here? A majority without this node may accept it before. */
  hasStored(index: number): boolean {
    return this.#stored.has(index)
  }

  /** Ends all messages and effects. */
  close(): void {
    this.#isClosed = true
  }

  /** Contents that no node has or can read would block it forever. */
  #watchProgress(): void {
    const { phase, epoch, readings, accepted } = this.#candidate
    const isPending = phase === 'reading' || phase === 'settling' || this.#beginning !== null
    const read = [...readings.values()].map(({ from, records }) => `${from} ${records.size}`)
    const mark = [epoch, phase, accepted.size, this.#unstored, this.#swarm.contentStore.moved, ...read].join()
    if (this.#progress.isStuck(isPending ? mark : null, this.#deps.clock.monotonic())) this.retreat()
  }

  /** Proposals of one turn, and of one ledger write, go together. */
  async #proposeSoon(): Promise<void> {
    await Promise.resolve()
    if (!this.#isPerforming) this.#proposeNow()
  }

  #proposeNow(): void {
    const names = this.#proposed.splice(0)
    if (names.length === 0 || this.#isClosed) return
    const { coordination } = this.#swarm
    const messages = piecesMessages(coordination.swarm, pushedPieces(names, this.#contents))
    for (const node of coordination.voters) {
      if (node !== this.#deps.self) for (const body of messages) this.#deps.tell(node, { name: 'swarm', body })
    }
    for (let at = 0; at < names.length; at += MAX_RECORDS)
      this.#stand({ type: 'propose', items: names.slice(at, at + MAX_RECORDS) })
  }

  #vote(input: VoterInput): void {
    this.#perform(stepVoter(this.#voter, input, this.#deps.clock.monotonic()))
  }

  #stand(input: CandidateInput): void {
    if (!this.#isClosed) this.#perform(stepCandidate(this.#candidate, input, this.#deps.clock.monotonic()))
  }

  #perform(effects: readonly (VoterEffect | CandidateEffect)[]): void {
    this.#effects.push(...effects)
    this.#unstored += effects.filter(({ type }) => type === 'store').length
    if (!this.#isPerforming) void this.#performAll()
  }

  /** Strictly in order: nothing is sent before its promise is durable. */
  async #performAll(): Promise<void> {
    this.#isPerforming = true
    for (let next = this.#effects.shift(); next !== undefined && !this.#isClosed; next = this.#effects.shift()) {
      if (next.type === 'store') await this.#store(next)
      else this.#do(next)
    }
    this.#isPerforming = false
    if (this.#proposed.length > 0) this.#proposeNow()
  }

  #do(effect: Tell | Exclude<CandidateEffect, Tell>): void {
    switch (effect.type) {
      case 'tell':
        if (effect.to === this.#deps.self) return this.receive(effect.to, effect.message)
        return this.#deps.tell(effect.to, { name: 'coordination', body: effect.message })
      case 'begin':
        this.#beginning = {
          epoch: effect.epoch,
          accepted: [...effect.accepted].map(([index, digest]) => ({ index, digest }))
        }
        return this.#tryBegin()
      case 'accepted':
        return this.#swarm.onAccepted(effect.epoch, effect.items)
      case 'ended':
        this.#beginning = null
        this.#proposed = []
        return this.#swarm.onEnded()
    }
  }

  /** Nothing starts before all final records are durable here. */
  #tryBegin(): void {
    if (this.#beginning === null) return
    const { epoch, accepted } = this.#beginning
    const missing = accepted.filter(({ index, digest }) => this.#voter.records.get(index)?.digest !== digest)
    if (missing.length > 0) return this.#complete(missing, epoch)
    if (this.#unstored > 0 || !isCoordinating(this.#candidate, this.#deps.clock.monotonic())) return
    this.#beginning = null
    this.#swarm.onBegin(epoch, accepted)
  }

  /** A majority has recorded them; this node records them too once the contents are here. */
  #complete(missing: readonly ContentName[], epoch: number): void {
    const { swarm } = this.#swarm.coordination
    const away = missing.filter((name) => this.#contents.get(name) === undefined)
    const items = missing.filter((name) => this.#contents.get(name) !== undefined).slice(0, MAX_RECORDS)
    if (away.length > 0) this.#swarm.contentStore.obtain(away, this.#deps.self)
    const message = { kind: 'record', swarm, run: this.#swarm.run, round: 0, epoch, items } as const
    if (items.length > 0) this.receive(this.#deps.self, message)
  }

  async #store(effect: StoreEffect): Promise<void> {
    const { telemetry, swarmVotes, commit } = this.#deps
    const { coordination, items } = this.#swarm
    const names = effect.records.map(([index, { digest }]) => ({ index, digest }))
    const kept = names.flatMap((name) => {
      const content = this.#contents.get(name)
      return content === undefined || this.#swarm.isVoid(name) ? [] : [{ index: name.index, content }]
    })
    const contents = kept.map(({ index, content }) =>
      swarmVotes.contentChange(coordination.swarm, { index, items }, content)
    )
    try {
      await commit(swarmVotes.changes(coordination.swarm, effect, contents))
      for (const name of names) this.#contents.drop(name)
      for (const { index } of kept) this.#stored.add(index)
      this.#unstored--
      this.#swarm.onStored()
      this.#tryBegin()
    } catch (error) {
      telemetry.count('errors', 'ledger')
      telemetry.log('error', 'a vote could not be recorded', { swarm: coordination.swarm, reason: messageOf(error) })
      this.close()
      this.#swarm.onFailed()
    }
  }
}

/** The outcomes of a message that the voter would record, and has not recorded yet. */
function unrecorded(voter: VoterState, from: NodeId, message: CoordinationMessage): ContentName[] {
  const { epoch, candidate, recovery, parts, records } = voter
  const isRecord = message.kind === 'record' && message.epoch === epoch && from === candidate && recovery === null
  const isLearned = message.kind === 'held' && recovery !== null && message.run === parts.run
  if (!isRecord && !isLearned) return []
  return message.items.filter(
    ({ index, digest }) => index < parts.coordination.itemCount && records.get(index)?.digest !== digest
  )
}

/** The contents that are small enough to be sent before they are asked for. */
function pushedPieces(
  names: readonly ContentName[],
  contents: Pick<ContentTransfer, 'get'>
): ReturnType<typeof pieceOf>[] {
  return names.flatMap((name) => {
    const content = contents.get(name)
    return content === undefined || content.byteLength > PUSHED_BYTES ? [] : [pieceOf(name, content, 0)]
  })
}

function firstIndex(message: CoordinationMessage): number {
  return message.kind === 'record' || message.kind === 'held' ? (message.items[0]?.index ?? -1) : -1
}
