import { NodeError } from '../../kit/errors.js'
import type { SwarmItemInput, SwarmRequest } from '../../ports/swarm-api.js'
import { findAgent } from '../cards/select-target.js'
import type { NameDeps } from '../cards/select-target.js'
import { addressText } from '../../domain/card/card.js'
import type { SwarmSession } from '../swarms/session.js'
import type { SwarmTable } from '../swarms/swarm-table.js'

/** Options of a new swarm beside its task and capabilities. */
export interface CreateSwarmOptions
  extends Pick<
    SwarmRequest,
    'maxParallel' | 'retries' | 'deadlineMs' | 'justification' | 'allowRepeat' | 'idempotencyKey'
  > {
  /** The sub-tasks, distributed among the participants. Default: one for each capable agent. */
  readonly items?: readonly SwarmItemInput[]
  /** The input of every participant when there are no items. Default `{}`. */
  readonly input?: unknown
}

/** Dependencies of {@link SwarmCoordinator}. */
export interface SwarmCoordinatorDeps extends NameDeps {
  readonly swarms: SwarmTable
}

/** The swarms of this node, by the operations of the specification (a2a-mcp-mesh, SwarmCoordinator). */
export class SwarmCoordinator {
  readonly #deps: SwarmCoordinatorDeps

  constructor(deps: SwarmCoordinatorDeps) {
    this.#deps = deps
  }

  /**
   * Offers a task to every allowed agent whose card has all the capabilities; the first capability is called. Resolves
   * when the swarm is durable: it continues after a restart.
   * @throws NodeError NO_CAPABLE_AGENT, TIER_VIOLATION, SANDBOX_VIOLATION, ESCALATION_REQUIRED, PEER_OFFLINE when no
   * agent can take part; USAGE for no capability, no items or too many.
   */
  async createSwarm(
    taskDescription: string,
    requiredCapabilities: readonly string[],
    options: CreateSwarmOptions = {}
  ): Promise<SwarmSession> {
    const [capability, ...furtherCapabilities] = requiredCapabilities
    if (capability === undefined) throw new NodeError('USAGE', 'a swarm needs at least one capability')
    const strategy = options.items === undefined ? 'each' : 'map'
    const begun: SwarmSession[] = []
    const { swarms } = this.#deps
    const plan = { goal: taskDescription, capability, furtherCapabilities, strategy, ...options } as const
    const id = await swarms.launch(plan, undefined, (run) => begun.push(run.session()))
    const session = begun[0] ?? swarms.inMemory(id)?.session()
    if (session === undefined) throw new NodeError('SWARM_NOT_FOUND', 'the swarm is no longer kept in memory')
    return session
  }

  /**
   * Offers a part to a later agent (address, or a name that people may type), which joins by accepting.
   * @throws NodeError SWARM_NOT_FOUND, AGENT_NOT_FOUND; CAPABILITY_NOT_FOUND when it cannot or may not take part.
   */
  async joinSwarm(swarmId: string, agent: string): Promise<void> {
    this.#deps.swarms.invite(swarmId, addressText(await findAgent(this.#deps, agent)))
  }

  /**
   * Completes a sub-task instead of its agent, whose run is canceled.
   * @throws NodeError SWARM_NOT_FOUND; TASK_NOT_FOUND when no agent works on it now.
   */
  completeSubTask(swarmId: string, subTaskId: string, result: unknown): void {
    this.#deps.swarms.settle(swarmId, subTaskId, { ok: true, result })
  }

  /**
   * Fails a sub-task instead of its agent, whose run is canceled. While it has retries it goes to another agent.
   * @throws NodeError SWARM_NOT_FOUND; TASK_NOT_FOUND when no agent works on it now.
   */
  failSubTask(swarmId: string, subTaskId: string, error: string): void {
    this.#deps.swarms.settle(swarmId, subTaskId, { ok: false, error: new NodeError('TASK_FAILED', error).toBody() })
  }

  /** A swarm of this node; undefined for one that is not in memory. */
  getSwarm(swarmId: string): SwarmSession | undefined {
    return this.#deps.swarms.inMemory(swarmId)?.session()
  }

  /** Unfinished swarms, oldest first. */
  listActiveSwarms(): SwarmSession[] {
    return this.#deps.swarms.activeSessions()
  }
}
