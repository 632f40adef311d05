import { messageOf } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import { isRecord, jsonCopy } from '../../kit/json.js'
import type { AbortSignalLike } from '../../kit/clock.js'
import { AgentState } from '../../domain/coordination/agent-state.js'
import type { AgentTask } from '../../ports/agent-runtime.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AttachedAgent, AttachOptions, InProcessAgents } from '../agents/in-process-agents.js'
import type { Reliable } from './reliable.js'

/** A message to an agent of a program (spec mcp-runtime, AgentMessage). */
export interface AgentMessage {
  readonly type: string
  readonly payload: unknown
  /** As the sender states it: the rules decide by the real sender. */
  readonly sourceAgentId?: string
}

/** The context of a handler (spec mcp-runtime, AgentContext). */
export interface AgentHandlerContext {
  readonly agentId: string
  /** The agent's state; its values are frozen copies of JSON. Changes are kept only when the handler succeeds. */
  readonly state: Map<string, unknown>
  readonly logger: Pick<Telemetry, 'log'>
  /** Aborts when the request is canceled. The next message waits until the handler ends. */
  readonly signal: AbortSignalLike
}

/** Handles one message; its result is the answer, its exception a TASK_FAILED. */
export type AgentHandler = (message: AgentMessage, context: AgentHandlerContext) => unknown

/** How an agent appears in the mesh. */
export type RegisterOptions = Pick<AttachOptions, 'description' | 'tier' | 'sandboxId' | 'isReserved'>

/** Dependencies of {@link AgentCoordinator}. */
export interface AgentCoordinatorDeps {
  readonly inProcess: Pick<InProcessAgents, 'attach'>
  readonly reliable: Pick<Reliable, 'sendRequest'>
  readonly telemetry: Telemetry
  /** The most bytes of one agent's state: `tools.maxStateBytes`. */
  readonly maxStateBytes: number
}

interface Registered {
  readonly handler: AgentHandler
  readonly state: AgentState
}

/**
 * The agents of a program with a state each (spec mcp-runtime, AgentCoordinator). They are agents of the node like any
 * other: everybody whom the rules allow may call them, and the node's queue gives them one message at a time, in order.
 * States last as long as the process.
 */
export class AgentCoordinator {
  readonly #deps: AgentCoordinatorDeps
  readonly #agents = new Map<string, Registered & { readonly attached: AttachedAgent }>()
  readonly #changed: Emitter<{ readonly agentId: string; readonly state: AgentState }>

  constructor(deps: AgentCoordinatorDeps) {
    this.#deps = deps
    this.#changed = new Emitter((error) =>
      deps.telemetry.log('error', 'a listener of agent states failed', { reason: messageOf(error) })
    )
  }

  /**
   * Makes a handler an agent with the capability `<id>.message`, with an empty state. Resolves when its card is signed.
   * @throws NodeError USAGE (id taken, too many agents), INVALID_CARD
   */
  async registerAgent(id: string, handler: AgentHandler, options: RegisterOptions = {}): Promise<void> {
    const agent = { handler, state: new AgentState(this.#deps.maxStateBytes) }
    const attached = await this.#deps.inProcess.attach({
      ...options,
      id,
      concurrency: 1,
      capabilities: [
        { id: `${id}.message`, name: 'message', description: 'Handles a message.', inputSchema: {}, outputSchema: {} }
      ],
      run: async (task, { signal }) => await this.#handle(id, agent, { task, signal })
    })
    this.#agents.set(id, { ...agent, attached })
  }

  /** Removes an agent and its state: its running message completes, waiting ones fail. False for an unknown id. */
  async unregisterAgent(id: string): Promise<boolean> {
    const agent = this.#agents.get(id)
    if (agent === undefined) return false
    this.#agents.delete(id)
    await agent.attached.close()
    return true
  }

  /**
   * Sends a message to an agent, as `sourceAgentId` (an agent of this node) or the operator; resolves with the result
   * of its handler.
   * @throws NodeError AGENT_NOT_FOUND; OVERLOADED when too many wait; TIMEOUT after `tasks.requestTimeoutMs`;
   * TASK_FAILED of the handler
   */
  async sendMessage(targetAgentId: string, message: AgentMessage): Promise<unknown> {
    const { sourceAgentId: from } = message
    return await this.#deps.reliable.sendRequest(targetAgentId, message, from === undefined ? {} : { from })
  }

  /** A copy of an agent's state; undefined for an agent that was not registered here. */
  getAgentState(agentId: string): Map<string, unknown> | undefined {
    const agent = this.#agents.get(agentId)
    return agent === undefined ? undefined : new Map(agent.state)
  }

  /** Calls back after each message that changed an agent's state, with a copy of it. */
  onStateChange(handler: (agentId: string, state: Map<string, unknown>) => void): Unsubscribe {
    return this.#changed.on(({ agentId, state }) => handler(agentId, new Map(state)))
  }

  async #handle(
    agentId: string,
    { handler, state }: Registered,
    { task, signal }: { readonly task: AgentTask; readonly signal: AbortSignalLike }
  ): Promise<unknown> {
    const before = new Map(state)
    const { changes } = state
    const isChanged = (): boolean => state.changes !== changes
    let isDone = false
    try {
      const answer = await handler(messageIn(task.input), { agentId, state, logger: this.#deps.telemetry, signal })
      // An answer without a form as JSON fails its task.
      isDone = jsonCopy(answer ?? null) !== undefined
      return answer
    } finally {
      if (!isDone && isChanged()) state.restore(before)
      else if (isChanged()) this.#changed.emit({ agentId, state })
    }
  }
}

/** An input of another form is the payload of a message of the type `message`. */
function messageIn(input: unknown): AgentMessage {
  if (!isRecord(input) || typeof input['type'] !== 'string' || !('payload' in input))
    return { type: 'message', payload: input }
  const { type, payload, sourceAgentId } = input
  return { type, payload, ...(typeof sourceAgentId === 'string' ? { sourceAgentId } : {}) }
}
