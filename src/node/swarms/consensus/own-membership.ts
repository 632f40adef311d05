import { messageOf } from '../../../kit/errors.js'
import type { VoterStart } from '../../../domain/swarm/coordination-vote.js'
import type { Invitations } from './invitations.js'
import type { ParticipantDeps } from './participant.js'
import type { ParticipantRecord } from './vote-store.js'

/** Whose seat it is. */
export interface OwnMembershipOf {
  readonly swarm: string
  readonly record: ParticipantRecord
  /** Those of the launcher, whose record says more; null elsewhere. */
  readonly offers: Invitations | null
}

/** The seat of this node in one swarm, as its ledger has it. */
export class OwnMembership {
  readonly #deps: Pick<ParticipantDeps, 'commit' | 'swarmVotes' | 'telemetry'>
  readonly #of: OwnMembershipOf
  #record: ParticipantRecord

  constructor(deps: Pick<ParticipantDeps, 'commit' | 'swarmVotes' | 'telemetry'>, of: OwnMembershipOf) {
    this.#deps = deps
    this.#of = of
    this.#record = of.record
  }

  /** The launcher knows of it now. True: this node votes from now on, for the first time. @throws NodeError what the ledger refuses. */
  async confirm(ledger: string): Promise<boolean> {
    if (this.#record.state !== 'invited' || this.#record.ledger !== ledger) return false
    const record = { ...this.#record, state: 'open' } as const
    await this.#deps.commit([this.#deps.swarmVotes.participantChange(this.#of.swarm, record)])
    if (this.#record.state !== 'invited') return false
    this.#record = record
    return true
  }

  /** What was lost has been learned again, and is durable: the next start goes on from there. */
  async recovered(): Promise<void> {
    if (this.#record.state !== 'lost') return
    const { commit, swarmVotes, telemetry } = this.#deps
    const { swarm, offers } = this.#of
    this.#record = { ...this.#record, state: 'open' }
    if (offers !== null) return await offers.relearned()
    await commit([swarmVotes.participantChange(swarm, this.#record)]).catch((error: unknown) =>
      telemetry.log('warn', 'that a vote was learned again could not be recorded', { reason: messageOf(error) })
    )
  }

  /** From what its voter goes on. @throws NodeError STORE_DAMAGED */
  async start(): Promise<VoterStart> {
    if (this.#record.state === 'lost') return { type: 'lost' }
    return { type: 'restarted', stored: await this.#deps.swarmVotes.stored(this.#of.swarm) }
  }
}
