import { NodeError } from '../../kit/errors.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import type { CommitQueueDeps } from '../ledger/commit-queue.js'
import type { Participants } from './consensus/participants.js'
import type { Coordinator } from './coordinator.js'
import { newHead, type HeadDeps, type Launching, type SwarmLaunch } from './create.js'
import type { Eligibility } from './eligibility.js'
import { checkPrepared, prepare } from './prepare.js'
import type { SwarmHead, SwarmStore } from './store.js'
import type { SwarmLifecycle } from './lifecycle.js'
import type { SwarmHere, SwarmMemory } from './memory.js'

/** The request of a program to launch a swarm. */
export interface SwarmPlan extends SwarmRequest {
  /** Capabilities that agents need beside the requested one. Default: none. */
  readonly furtherCapabilities?: readonly string[]
}

/** Dependencies of the launcher. */
export interface LauncherDeps extends HeadDeps, Pick<CommitQueueDeps, 'commit'> {
  readonly eligibility: Pick<Eligibility, 'survey' | 'begin'>
  readonly swarmStore: SwarmStore
  readonly memory: Pick<SwarmMemory, 'add'>
  readonly lifecycle: Pick<SwarmLifecycle, 'launched' | 'resumed'>
  readonly participants: Pick<Participants, 'joinedHead' | 'launchChanges' | 'launched' | 'resume'>
  /** Starts to coordinate a swarm of this node alone. */
  createCoordinator(launch: SwarmLaunch): Coordinator
}

/** A launch, and the callback that gets its run first. */
interface SwarmLaunchRequest extends Launching {
  onRun(run: SwarmHere): void
}

/** Launches and resumes swarms: checks them, records them, and makes an idempotency key name one swarm. */
export class Launcher {
  readonly #deps: LauncherDeps
  /** Launches under way, one at a time for the name of each idempotency key. */
  readonly #launching = new Map<string, Promise<unknown>>()
  #isStopped = false

  constructor(deps: LauncherDeps) {
    this.#deps = deps
  }

  /**
   * Launches a swarm and returns its id, once it is durable; {@link SwarmView.follow} has its events. A repeated
   * idempotency key returns the earlier swarm, running or ended. `onRun`: gets a new swarm before anything happens in
   * it.
   * @throws NodeError NO_CAPABLE_AGENT when no agent is capable, or on a node with the labels; TIER_VIOLATION,
   * SANDBOX_VIOLATION or ESCALATION_REQUIRED (with the rule) when capable ones may not; PEER_OFFLINE when all allowed
   * ones are offline; USAGE for no or too many items; CONFLICT for another request's key; the ledger's error.
   */
  async launch(
    { furtherCapabilities = [], ...request }: SwarmPlan,
    onBehalfOf?: CertifiedPower,
    onRun: (run: SwarmHere) => void = () => {}
  ): Promise<string> {
    const capabilities = [request.capability, ...furtherCapabilities]
    const by = onBehalfOf === undefined ? {} : { onBehalfOf }
    const { idempotencyKey } = request
    const wanted = { request, capabilities, ...by, onRun }
    if (idempotencyKey === undefined) return await this.#launch({ ...wanted, key: null })
    const key = this.#deps.swarmStore.key(idempotencyKey, request, capabilities)
    const before = this.#launching.get(key.name) ?? Promise.resolve()
    const turn = before.then(() => this.#launchOnce({ ...wanted, key }))
    const settled = turn.catch(() => {})
    this.#launching.set(key.name, settled)
    try {
      return await turn
    } finally {
      if (this.#launching.get(key.name) === settled) this.#launching.delete(key.name)
    }
  }

  async #launchOnce(wanted: SwarmLaunchRequest & { readonly key: NonNullable<SwarmHead['key']> }): Promise<string> {
    const known = await this.#deps.swarmStore.ofKey(wanted.key.name)
    if (known === null) return await this.#launch(wanted)
    if (known.key?.fingerprint === wanted.key.fingerprint) return known.id
    const message = `that idempotency key is the one of swarm ${known.id}, which was launched with something else: give another key for a new swarm`
    throw new NodeError('CONFLICT', message, {
      data: { swarm: known.id },
      next: [`a2a-node swarm show ${known.id}`, "--idempotency-key '<another key>'"]
    })
  }

  async #launch(launching: SwarmLaunchRequest): Promise<string> {
    const { lifecycle, commit, swarmStore, eligibility, directory, participants } = this.#deps
    const refused = new Set<string>()
    const [, ...further] = launching.capabilities
    const prepared = prepare(eligibility, { ...launching, further }, refused)
    checkPrepared(directory, prepared)
    const { items } = prepared
    if (items.length === 0) throw new NodeError('USAGE', 'there are no items to work on')
    const allowed = prepared.found.map((one) => one.allowed)
    const head = participants.joinedHead(newHead(this.#deps, launching, prepared), items, allowed.flat())
    await commit([...swarmStore.launched(head, items), ...participants.launchChanges(head)])
    lifecycle.launched(head)
    // It resumes at the next start.
    if (this.#isStopped) return head.id
    eligibility.begin(head.id, refused)
    launching.onRun(
      head.voters === undefined ? this.#run({ head, items, allowed, past: null }) : participants.launched(head, items)
    )
    return head.id
  }

  /** Resumes the swarms that had not ended when this node stopped. @throws NodeError STORE_DAMAGED */
  async resume(): Promise<void> {
    const { swarmStore, lifecycle, participants, eligibility } = this.#deps
    for (const id of await swarmStore.open()) {
      const head = await swarmStore.get(id)
      if (head === null) continue
      const { items, leases } = await swarmStore.unfinished(id)
      lifecycle.resumed(head)
      if (head.voters !== undefined) {
        await participants.resume(head, items)
        continue
      }
      const past = { leases, rows: await swarmStore.results(head) }
      eligibility.begin(id, new Set())
      const run = this.#run({ head, items, allowed: [], past })
      // Its work since the copy was made would be repeated.
      if (head.isRestored === true) await run.cancel()
    }
  }

  /** This node stops: no swarm starts any more. */
  stop(): void {
    this.#isStopped = true
  }

  #run(launch: SwarmLaunch): Coordinator {
    const run = this.#deps.createCoordinator(launch)
    this.#deps.memory.add(run)
    return run
  }
}
