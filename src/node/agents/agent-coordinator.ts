import { messageOf, NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { AgentState, MAX_STATE_BYTES } from '../../domain/coordination/agent-state.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'
import { AgentQueue } from './agent-queue.js'

/** A message to an agent of the coordinator (spec mcp-runtime, AgentMessage). */
export interface AgentMessage {
  readonly type: string
  readonly payload: unknown
  readonly sourceAgentId?: string
}

/** The context of a handler (spec mcp-runtime, AgentContext). */
export interface AgentHandlerContext {
  readonly agentId: string
  /** The agent's state; its values are frozen copies of JSON. Changes are kept only when the handler succeeds. */
  readonly state: Map<string, unknown>
  readonly logger: Pick<Telemetry, 'log'>
}

/** Handles one message; its result or error is the answer. */
export type AgentHandler = (message: AgentMessage, context: AgentHandlerContext) => unknown

/** Options of a coordinator. */
export interface AgentCoordinatorOptions {
  /** The most bytes of one agent's state. Default 262,144. */
  readonly maxStateBytes?: number
  /** The log of handlers. Default: none. */
  readonly logger?: Pick<Telemetry, 'log'>
  /** Called after each message that changed an agent's state, with a copy of it. */
  onStateChange?(agentId: string, state: Map<string, unknown>): void
}

interface Registered {
  readonly handler: AgentHandler
  readonly queue: AgentQueue
  readonly state: AgentState
}

/**
 * In-process handlers that are called by name (spec mcp-runtime, AgentCoordinator). The messages of one agent run strictly in the order
 * they were sent, those of different agents at once. An agent that awaits a message to itself waits for ever.
 */
export class AgentCoordinator {
  readonly #options: AgentCoordinatorOptions
  readonly #agents = new Map<string, Registered>()

  constructor(options: AgentCoordinatorOptions = {}) {
    this.#options = options
  }

  /** Registers an agent, with an empty state. @throws NodeError USAGE when the id is taken or empty. */
  registerAgent(id: string, handler: AgentHandler): void {
    if (id === '' || this.#agents.has(id))
      throw new NodeError('USAGE', id === '' ? 'an agent has an id' : `an agent ${id} is registered already`)
    const state = new AgentState(this.#options.maxStateBytes ?? MAX_STATE_BYTES)
    this.#agents.set(id, { handler, queue: new AgentQueue(1), state })
  }

  /** Removes an agent and its state: its running message completes, waiting ones fail. False for an unknown id. */
  unregisterAgent(id: string): boolean {
    const agent = this.#agents.get(id)
    if (agent === undefined) return false
    this.#agents.delete(id)
    agent.queue.close()
    return true
  }

  /**
   * Sends a message to an agent; resolves with the result of its handler. A failed handler leaves the state as it was.
   * @throws NodeError AGENT_NOT_FOUND; OVERLOADED when too many wait; the errors of the handler.
   */
  async sendMessage(targetAgentId: string, message: AgentMessage): Promise<unknown> {
    const agent = this.#agents.get(targetAgentId)
    if (agent === undefined) throw unknown(targetAgentId)
    const turn = await agent.queue.take(new Abort())
    if (turn === 'full') throw new NodeError('OVERLOADED', `too many messages wait for ${shown(targetAgentId)}`)
    if (turn !== 'held') throw unknown(targetAgentId)
    try {
      return await this.#handle(targetAgentId, agent, message)
    } finally {
      agent.queue.release()
    }
  }

  /** A copy of an agent's state; undefined for an unknown one. */
  getAgentState(agentId: string): Map<string, unknown> | undefined {
    const agent = this.#agents.get(agentId)
    return agent === undefined ? undefined : new Map(agent.state)
  }

  async #handle(agentId: string, { handler, state }: Registered, message: AgentMessage): Promise<unknown> {
    const before = new Map(state)
    const changes = state.changes
    try {
      const answer = await handler(message, { agentId, state, logger: this.#options.logger ?? SILENT })
      if (state.changes !== changes) this.#tell(agentId, state)
      return answer
    } catch (error) {
      if (state.changes !== changes) state.restore(before)
      throw error
    }
  }

  #tell(agentId: string, state: AgentState): void {
    try {
      this.#options.onStateChange?.(agentId, new Map(state))
    } catch (error) {
      this.#options.logger?.log('error', 'a listener of agent states failed', { agent: agentId, reason: messageOf(error) })
    }
  }
}

const SILENT: Pick<Telemetry, 'log'> = { log: () => {} }

function unknown(agentId: string): NodeError {
  return new NodeError('AGENT_NOT_FOUND', `no agent ${shown(agentId)} is registered here`)
}
