import { Abort } from '../../../kit/abort.js'
import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { type GatewaySnapshot, type GatewayTask, RESTING_STATES } from '../../../domain/gateway/task.js'
import type { Message } from '../../../domain/gateway/message.js'
import type { Gateway } from '../../../ports/gateway.js'
import type { NodeApi, Principal } from '../../../ports/node-api.js'
import { isNamed } from '../cards/card-interfaces.js'
import { contentOf, isAnswered, stateOf } from './facade-content.js'
import { FacadeFault, facadeFaultOf, guardrailFault, taskFault } from './facade-fault.js'
import { type FacadeRequest, partsOfRequest } from './facade-request.js'
import { guardedText, type Guardrails } from '../server/guardrails.js'
import type { StreamItem } from '../server/operations.js'

/** Longest run, in milliseconds; then it is canceled. Longer runs need a stream or A2A. */
export const MAX_RUN_MS = 600_000

/** Dependencies of {@link FacadeRuns}. */
export interface FacadeRunDeps {
  readonly gateway: Gateway
  readonly guardrails: Guardrails
  readonly clock: Clock
  readonly ids: IdSource
  /** Called with internal errors, whose details clients do not see. */
  onUnexpected(fault: FacadeFault): void
}

/** The caller of an agent. `api`: with the rights of the caller. */
export interface FacadeCaller {
  readonly by: Principal
  readonly api: NodeApi
  readonly agent: string
  readonly signal: AbortSignalLike
  /** Does the node stop? Else an abort means that the client hung up. */
  isStopping(): boolean
}

/** Result of a run. */
export interface FacadeResult {
  readonly result: unknown
  readonly meta: {
    readonly agent: string
    readonly capability: string
    /** Id of the A2A task, which the same token can read. */
    readonly taskId: string
    /** For a further run in the session. */
    readonly sessionId: string
    /** `completed`; or `input-required`, `auth-required`: the result is the question of the agent. */
    readonly state: string
    readonly durationMs: number
  }
}

interface Begun {
  readonly snapshot: GatewaySnapshot
  /** The generation of the task before this turn. */
  readonly before: number
  readonly from: number
}

/** Runs agents by a prompt. Each run is a turn of an A2A task of its caller and ends with its request. */
export class FacadeRuns {
  readonly #deps: FacadeRunDeps

  constructor(deps: FacadeRunDeps) {
    this.#deps = deps
  }

  /**
   * Runs to the end. Canceled when its client hangs up, the node stops, or after {@link MAX_RUN_MS}.
   * @throws FacadeFault, NodeError
   */
  async run(request: FacadeRequest, caller: FacadeCaller): Promise<FacadeResult> {
    const { clock } = this.#deps
    const stop = new Abort()
    const giveUp = (): void => stop.abort()
    const timer = clock.after(MAX_RUN_MS, giveUp)
    caller.signal.addEventListener('abort', giveUp)
    if (caller.signal.aborted) giveUp()
    try {
      const begun = await this.#begin(request, caller, stop)
      const { task } = begun.snapshot
      if (RESTING_STATES.has(task.state)) return this.#resultOf(begun.snapshot, { caller, from: begun.from })
      this.#cancel(caller, task)
      if (caller.isStopping()) throw stopping('the task is canceled')
      throw new FacadeFault('timeout', `the agent took longer than ${MAX_RUN_MS / 1000} s: its task is canceled`)
    } finally {
      clock.clear(timer)
      caller.signal.removeEventListener('abort', giveUp)
    }
  }

  /** Begins a run and streams its events. It is canceled when the reader stops. @throws FacadeFault, NodeError */
  async stream(request: FacadeRequest, caller: FacadeCaller): Promise<AsyncIterable<StreamItem>> {
    if (!caller.by.scopes.includes('read'))
      throw new FacadeFault('forbidden', 'a stream needs the scope read, which this caller does not have')
    return this.#follow(await this.#begin(request, caller, null), caller)
  }

  /** `wait`: waits until the task rests or this aborts; null: does not wait. */
  async #begin(request: FacadeRequest, caller: FacadeCaller, wait: AbortSignalLike | null): Promise<Begun> {
    const { gateway, guardrails, ids, clock } = this.#deps
    const { prompt, context, justification } = request
    const broken = guardrails.inputViolation([{ text: prompt }, ...(context === null ? [] : [{ data: context }])])
    if (broken !== null) throw guardrailFault(broken)
    await refuseAway(caller)
    if (caller.isStopping()) throw stopping('nothing was begun')
    const from = clock.monotonic()
    const asking = await this.#asking(request, caller)
    const message: Message = {
      messageId: ids.next('msg'),
      role: 'user',
      parts: partsOfRequest(request),
      ...(justification === null ? {} : { metadata: { justification } }),
      ...(request.sessionId === null ? {} : { contextId: request.sessionId }),
      ...(asking === null ? {} : { taskId: asking.id })
    }
    const to = { message, agent: caller.agent, skill: null, mayAnswer: false, isAttended: true } as const
    const reply = await gateway.send(caller.by, {
      ...to,
      wait: wait !== null,
      ...(wait === null ? {} : { signal: wait })
    })
    if (reply.kind === 'message') throw new FacadeFault('internal_error', 'the gateway answered without a task')
    return { snapshot: reply.snapshot, before: asking?.generation ?? 0, from }
  }

  /** The waiting task of a session, which the prompt answers; null: none. */
  async #asking({ sessionId }: FacadeRequest, { by, agent }: FacadeCaller): Promise<GatewayTask | null> {
    if (sessionId === null || !by.scopes.includes('read')) return null
    const filter = { contextId: sessionId, state: 'input-required', agentName: agent } as const
    const { tasks } = await this.#deps.gateway.list(by, filter, { after: null, limit: 1, isWhole: false })
    return tasks[0]?.task ?? null
  }

  async *#follow({ snapshot, before, from }: Begun, caller: FacadeCaller): AsyncIterable<StreamItem> {
    const { gateway, guardrails, onUnexpected } = this.#deps
    const { by, signal } = caller
    const { id } = snapshot.task
    let last = before
    let reported = 0
    let isOver = false
    try {
      for await (const event of gateway.follow(by, id, { after: before, untilRest: true, signal })) {
        last = event.generation
        const state = stateOf(event)
        if (state === null || (guardrails.holdsOutputBack && !('waitingFor' in state))) continue
        reported += 'waitingFor' in state ? 0 : guardedText('token' in state ? state.token : state.data).length
        const broken = guardrails.lengthViolation('output', reported)
        if (broken !== null) throw guardrailFault(broken)
        yield { id: last, event: 'state', value: state }
      }
      const isStopping = caller.isStopping()
      if (signal.aborted && !isStopping) return
      const now = await gateway.get(by, id)
      if (isStopping && !RESTING_STATES.has(now.task.state)) throw stopping('the task is canceled')
      isOver = true
      const { result, meta } = this.#resultOf(now, { caller, from })
      yield { id: last, event: 'result', value: { content: result, meta } }
    } catch (error) {
      const fault = facadeFaultOf(error)
      if (fault.kind === 'internal_error') onUnexpected(fault)
      yield { id: last, event: 'error', value: fault.toBody() }
    } finally {
      if (!isOver) this.#cancel(caller, snapshot.task)
    }
  }

  /** @throws FacadeFault for a task that failed, or a result that a guardrail holds back */
  #resultOf(
    snapshot: GatewaySnapshot,
    { caller, from }: { readonly caller: FacadeCaller; readonly from: number }
  ): FacadeResult {
    const { id, contextId, capability, state } = snapshot.task
    if (!isAnswered(state)) throw taskFault(snapshot.task)
    const result = contentOf(snapshot)
    const broken = this.#deps.guardrails.violation('output', result)
    if (broken !== null) throw guardrailFault(broken)
    const durationMs = Math.round(this.#deps.clock.monotonic() - from)
    return { result, meta: { agent: caller.agent, capability, taskId: id, sessionId: contextId, state, durationMs } }
  }

  #cancel({ by }: FacadeCaller, { id }: GatewayTask): void {
    const { gateway, onUnexpected } = this.#deps
    gateway.cancel(by, id).catch((error: unknown) => {
      // CONFLICT: the task has ended meanwhile.
      if (asNodeError(error).code !== 'CONFLICT') onUnexpected(facadeFaultOf(error))
    })
  }
}

function stopping(what: string): FacadeFault {
  return new FacadeFault('unavailable', `the node is stopping: ${what}`)
}

/** Refuses agents of offline nodes, for which the gateway would wait. @throws FacadeFault */
async function refuseAway({ api, agent }: FacadeCaller): Promise<void> {
  // Missing rights and unknown names are answered by the gateway.
  const found = await api.call('agents.show', { agent }).catch(() => null)
  if (found?.status === 'offline' && isNamed(found, agent))
    throw new FacadeFault('unavailable', 'the node of the agent is not reached now')
}
