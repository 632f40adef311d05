import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf, type ErrorCode, NodeError } from '../../kit/errors.js'
import { shown, shellWord } from '../../kit/text.js'
import type { AgentHealth, HealthFinding, HostedAgent } from '../../ports/agent-runtime.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'
import { MAX_CARDS, MAX_CARDS_BYTES } from '../../domain/membership/fold/card.js'
import type { LogProblem, Problem } from '../../ports/node-api.js'
import type { AgentHost } from './agent-host.js'
import type { LocalCards } from '../cards/local-cards.js'

/** Interval between health checks, in milliseconds. */
export const CHECK_EVERY_MS = 30_000
/** Time limit of one check, in milliseconds. */
export const CHECK_TIMEOUT_MS = 10_000
/** The most checks at once. */
export const MAX_CHECKS = 4
/** The most characters of a reason. */
const MAX_REASON = 512

/** Dependencies of {@link HealthChecks}. `agents`: those in service. */
export interface HealthChecksDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  agents(): Iterable<HostedAgent>
  /** An agent became unhealthy, or is it no more. */
  onChange(): void
}

/**
 * Checks at intervals whether the agents of this node could take work. The findings of a version of an agent end with
 * it.
 */
export class HealthChecks {
  readonly #deps: HealthChecksDeps
  readonly #found = new WeakMap<HostedAgent, AgentHealth>()
  readonly #stopped = new Abort()
  #timer: Timer | null = null
  /** The running round of checks. */
  #round: Promise<void> | null = null

  constructor(deps: HealthChecksDeps) {
    this.#deps = deps
  }

  /** Starts the checks with a first round. */
  start(): void {
    this.#timer = this.#deps.clock.every(CHECK_EVERY_MS, () => void this.look())
    void this.look()
  }

  /** Stops the checks. */
  stop(): void {
    this.#deps.clock.clear(this.#timer)
    this.#stopped.abort()
  }

  /** Checks the agents that were never checked, once the checks have started. Never rejects. */
  async lookAtNew(): Promise<void> {
    if (this.#timer !== null) await this.#lookAtAll((agent) => !this.#found.has(agent))
  }

  /** The last finding; null when unchecked, or the agent has no check. */
  of(agent: HostedAgent): AgentHealth | null {
    return this.#found.get(agent) ?? null
  }

  /** Checks every agent once. A running round is shared. Never rejects. */
  look(): Promise<void> {
    this.#round ??= this.#lookAtAll().finally(() => {
      this.#round = null
    })
    return this.#round
  }

  async #lookAtAll(isMeant: (agent: HostedAgent) => boolean = () => true): Promise<void> {
    const agents = [...this.#deps.agents()].filter((agent) => agent.check !== undefined && isMeant(agent))
    const next = async (): Promise<void> => {
      for (let agent = agents.pop(); agent !== undefined && !this.#stopped.aborted; agent = agents.pop())
        await this.#lookAt(agent)
    }
    await Promise.all(Array.from({ length: MAX_CHECKS }, next))
  }

  async #lookAt(agent: HostedAgent): Promise<void> {
    const found = await this.#ask(agent)
    if (this.#stopped.aborted) return
    const { clock, telemetry } = this.#deps
    const before = this.#found.get(agent)
    const since = before?.state === found.state ? before.since : clock.now()
    const reason = found.reason === null ? null : shown(found.reason, MAX_REASON)
    this.#found.set(agent, { state: found.state, reason, since })
    telemetry.count('agent_checks', found.state)
    if ((before?.state === 'unhealthy') !== (found.state === 'unhealthy')) this.#deps.onChange()
    if ((before?.state ?? 'healthy') === found.state) return
    telemetry.log(found.state === 'healthy' ? 'info' : 'warn', `an agent is ${found.state}`, {
      agent: agent.definition.id,
      reason
    })
  }

  /** Asks an agent. One that does not answer is degraded, and unhealthy after a second failure in a row. */
  async #ask(agent: HostedAgent): Promise<HealthFinding> {
    const { clock } = this.#deps
    const late = new Abort()
    const stop = (): void => late.abort()
    this.#stopped.addEventListener('abort', stop)
    const over = new Promise<never>((_resolve, reject) =>
      late.addEventListener('abort', () => reject(new Error('it did not answer in time')))
    )
    over.catch(() => {})
    const timer = clock.after(CHECK_TIMEOUT_MS, stop)
    try {
      return (await Promise.race([agent.check?.(late), over])) ?? { state: 'healthy', reason: null }
    } catch (error) {
      const was = this.#found.get(agent)?.state ?? 'healthy'
      return { state: was === 'healthy' ? 'degraded' : 'unhealthy', reason: messageOf(error) }
    } finally {
      clock.clear(timer)
      this.#stopped.removeEventListener('abort', stop)
    }
  }
}

/** The most agents named in a problem. */
const NAMED = 5

/** Errors about entries that the log may hold although this node does not find them. */
const FROM_LOG: ReadonlySet<ErrorCode> = new Set([
  'PEER_NOT_FOUND',
  'AGENT_NOT_FOUND',
  'CAPABILITY_NOT_FOUND',
  'NO_CAPABLE_AGENT',
  'DOCUMENT_NOT_FOUND',
  'INVITE_NOT_FOUND'
])

/**
 * Adds to a "not found" error that the log of the mesh is incomplete here, with the next step. Other errors stay
 * unchanged.
 */
export function withLogProblem(failure: NodeError, problems: () => readonly LogProblem[]): NodeError {
  const [problem] = FROM_LOG.has(failure.code) ? problems() : []
  if (problem === undefined) return failure
  const { code, message, data } = failure
  return new NodeError(code, `${message}: ${problem.message}`, {
    data,
    next: [problem.next],
    retryable: true,
    cause: failure
  })
}

/**
 * Why expected agents of this node are missing in the mesh: unusable files, agents of another sandbox, and agents over
 * the limit.
 */
export function agentProblems({
  agents,
  localCards
}: {
  readonly agents: AgentHost
  readonly localCards: LocalCards
}): Problem[] {
  const faults = agents.faults().map((one) => ({
    code: 'AGENT_FILE_INVALID',
    message: `${one.file}${one.line === null ? '' : `:${one.line}`}: ${one.reason}`,
    next: `a2a-node agents check ${shellWord(one.file)}`
  }))
  const misplaced = localCards.misplaced().map(({ id, source, reason }) => ({
    code: 'AGENT_FILE_INVALID',
    message: `${source}: a2a.sandbox: agent ${id} is not offered: ${reason}`,
    next: `a2a-node agents check ${shellWord(source)}`
  }))
  const unwell = agents.definitions().flatMap(({ id, runtime }) => {
    const health = agents.health(id)
    // Remote agents have problems of their own.
    if (health?.state !== 'unhealthy' || runtime === 'a2a' || runtime === 'mcp') return []
    return {
      code: 'AGENT_UNHEALTHY',
      message: `agent ${id} cannot work: ${health.reason ?? 'it does not say why'}`,
      next: `a2a-node agents show ${id}`
    }
  })
  return [...faults, ...unwell, ...misplaced, ...surplusProblem(localCards)]
}

/**
 * The reason for missing agents in the mesh, with the next step: too many agents, or cards that are too large together.
 */
export function surplusReason(localCards: LocalCards): string {
  if (localCards.own().length >= MAX_CARDS)
    return `it takes ${MAX_CARDS - 1} agents of one node: remove the files of some`
  return `it takes ${MAX_CARDS_BYTES / 1024 ** 2} MiB of cards of one node: shorten descriptions and schemas, or remove the files of some`
}

function surplusProblem(localCards: LocalCards): Problem[] {
  const ids = localCards.surplus()
  if (ids.length === 0) return []
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''
  const message = `not in the mesh: ${ids.slice(0, NAMED).join(', ')}${more}; ${surplusReason(localCards)}`
  return [{ code: 'TOO_MANY_AGENTS', message, next: 'a2a-node agents --local' }]
}
