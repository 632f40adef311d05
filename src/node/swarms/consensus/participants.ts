import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { coordinationOf } from '../../../domain/swarm/coordination.js'
import { decodePlan } from '../../../domain/swarm/handover.js'
import { MAX_PLAN_BYTES } from '../../../domain/swarm/participant-message.js'
import type { Hash } from '../../../kit/sign.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { parseAddress } from '../../../domain/card/card.js'
import type { Directory } from '../../cards/directory.js'
import type { Eligibility } from '../eligibility.js'
import type { SwarmHead, SwarmItem, SwarmStore } from '../store.js'
import { planOf } from './invitations.js'
import type { Joining, JoiningDeps } from './joining.js'
import type { SwarmWord } from './participant.js'
import type { ReplicatedSwarm } from './replicated-swarm.js'
import type { ParticipantRecord } from './vote-store.js'

/** Nodes that a swarm needs for a takeover: of two nodes, the remaining one is no majority. */
const MIN_VOTERS = 3

/** Dependencies of participants. */
export interface ParticipantsDeps
  extends Pick<JoiningDeps, 'createReplica' | 'ledgerName' | 'memory' | 'self' | 'swarmVotes'> {
  readonly hash: Hash
  readonly telemetry: Telemetry
  readonly directory: Directory
  readonly swarmStore: SwarmStore
  readonly eligibility: Pick<Eligibility, 'of'>
  readonly joining: Joining
}

/** This node as a participant of swarms, its own and others': joins them, and dispatches messages of participants. */
export class Participants {
  readonly #deps: ParticipantsDeps

  constructor(deps: ParticipantsDeps) {
    this.#deps = deps
  }

  /** The head of a swarm to be launched, with its voters, unless there are too few or its plan is too large. */
  joinedHead(head: SwarmHead, items: readonly SwarmItem[], agents: readonly string[]): SwarmHead {
    const { self, directory, hash } = this.#deps
    if (head.request.takeover === false) return head
    const sandbox = directory.certificate(self)?.sandboxId ?? null
    const isNear = (node: NodeId): boolean => (directory.certificate(node)?.sandboxId ?? null) === sandbox
    const nodes = agents.flatMap((agent) => parseAddress(agent)?.nodeId ?? []).filter(isNear)
    const { voters } = coordinationOf(
      { swarm: head.id, itemCount: items.length, mayTakeOver: true, launcher: self, nodes },
      hash
    )
    const replicated = { ...head, voters }
    return voters.length < MIN_VOTERS || !isPortable(replicated, items) ? head : replicated
  }

  /** The changes that make this node the first participant of its own swarm; none for a swarm without voters. */
  launchChanges(head: SwarmHead): LedgerChange[] {
    return head.voters === undefined ? [] : [this.#deps.swarmVotes.participantChange(head.id, this.#join('open'))]
  }

  /** Adds this node as the first participant of a swarm that it has just launched. */
  launched(head: SwarmHead, items: readonly SwarmItem[]): ReplicatedSwarm {
    const swarm = this.#deps.createReplica({ head, items, record: this.#join('open'), cancelRequest: null })
    this.#deps.memory.add(swarm)
    swarm.open({ type: 'fresh' })
    swarm.tick(this.#deps.eligibility.of(head))
    return swarm
  }

  /** Resumes as a participant after a restart of this node. @throws NodeError STORE_DAMAGED */
  async resume(head: SwarmHead, items: readonly SwarmItem[]): Promise<ReplicatedSwarm> {
    const { swarmStore, swarmVotes } = this.#deps
    const cancelRequest = await swarmStore.cancelRequest(head.id, this.#deps.self)
    const kept = (await swarmVotes.participant(head.id)) ?? this.#join('lost')
    // A ledger restored from an older copy has lost its promises.
    const own: ParticipantRecord =
      kept.ledger === this.#deps.ledgerName() ? kept : { ...kept, ...this.#join('lost'), seated: kept.seated }
    const swarm = this.#deps.createReplica({ head, items, record: own, cancelRequest })
    this.#deps.memory.add(swarm)
    if (own.state === 'lost') swarm.open({ type: 'lost' })
    if (own.state === 'open') swarm.open({ type: 'restarted', stored: await swarmVotes.stored(head.id) })
    return swarm
  }

  #join(state: ParticipantRecord['state']): ParticipantRecord {
    return { ledger: this.#deps.ledgerName() ?? '', state, seated: {} }
  }

  /** Does a peer vote in a swarm that has not ended here? */
  has(peer: NodeId): boolean {
    return this.#deps.memory.runningReplicated().some(({ head }) => head.voters?.includes(peer) === true)
  }

  /** Is a lease of an epoch void, since this node has granted a higher one? */
  isPast(peer: NodeId, id: string, epoch: number): boolean {
    const swarm = this.#deps.memory.replicated(id)
    return swarm?.head.voters?.includes(peer) === true && epoch < swarm.epoch
  }

  /** Do nodes vote in a swarm that this one votes in? */
  areVoters(id: string, nodes: readonly NodeId[]): boolean {
    const voters = this.#deps.memory.replicated(id)?.head.voters
    return voters !== undefined && nodes.every((node) => voters.includes(node))
  }

  /** Handles a peer's message to the participants of a swarm. Never throws. */
  onWord(peer: NodeId, word: SwarmWord): void {
    this.#onWord(peer, word).catch((error: unknown) =>
      this.#deps.telemetry.log('warn', 'a message of a participant could not be handled', {
        peer,
        reason: messageOf(error)
      })
    )
  }

  async #onWord(peer: NodeId, word: SwarmWord): Promise<void> {
    const { joining, eligibility, memory } = this.#deps
    if (word.body.kind === 'seat') return await joining.onInvitation(peer, word.body)
    if (word.body.kind === 'pieces' && (await joining.onPieces(peer, word.body))) return
    const { kind, swarm: id } = word.body
    const isAfterEnd = kind === 'follow' || kind === 'want'
    const swarm = memory.replicated(id) ?? (isAfterEnd ? await this.#recall(id, peer) : undefined)
    if (swarm?.head.voters?.includes(peer) !== true) return
    await swarm.onWord(peer, word)
    if (kind === 'seated') swarm.tick(eligibility.of(swarm.head))
  }

  /** An ended swarm that is no longer in memory. */
  async #recall(id: string, peer: NodeId): Promise<ReplicatedSwarm | undefined> {
    const head = await this.#deps.swarmStore.get(id)
    const known = this.#deps.memory.replicated(id)
    if (known !== undefined || head === null || head.end === null || head.voters?.includes(peer) !== true) return known
    const rows = await this.#deps.swarmStore.results(head)
    const swarm = this.#deps.createReplica({
      head,
      items: [],
      record: this.#join('open'),
      cancelRequest: null,
      rows
    })
    this.#deps.memory.add(swarm)
    return swarm
  }
}

/** Can its plan be sent to participants? */
function isPortable(head: SwarmHead, items: readonly SwarmItem[]): boolean {
  try {
    const bytes = planOf(head, items)
    return bytes.byteLength <= MAX_PLAN_BYTES && decodePlan(bytes, head.createdAt) !== null
  } catch {
    return false
  }
}
