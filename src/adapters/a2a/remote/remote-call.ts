import { backoffMs } from '../../../kit/backoff.js'
import { type Clock, wait } from '../../../kit/clock.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import type { RemoteLink, RemoteMessage } from './remote-client.js'
import { failedRemote, RemoteFault, remoteFaultOf } from './remote-fault.js'
import { RemoteTask } from './remote-task.js'

/** Wait before the first poll of a task, in milliseconds; each further wait is 1.5 times as long. */
export const FIRST_POLL_MS = 250
/** Longest wait between two polls of a task, in milliseconds. */
export const MAX_POLL_MS = 5000
/** Failed polls in a row after which a task is lost. */
export const MAX_LOST_POLLS = 8
/** Most resubscriptions to one task; then it is only polled. */
export const MAX_RESUBSCRIBED = 16
/** Time limit of the cancel request of an abandoned task, in milliseconds. */
export const CANCEL_MS = 5000
/** Time limit of the comparison of a streamed answer with its task, in milliseconds; then the stream counts. */
export const COMPARE_MS = 5000

/** Dependencies of {@link callRemote}. */
export interface RemoteCallDeps {
  /** Name of the agent in messages. */
  readonly agent: string
  readonly link: RemoteLink
  readonly clock: Clock
  readonly maxOutputBytes: number
  /** Called with the full reason of a failure, which callers do not see. */
  onFault?(fault: RemoteFault): void
  /** Called with the context that the agent gave the message, before the outcome. */
  onContext?(contextId: string): Promise<void>
}

/** Abort signal and progress of one call. */
export interface RemoteRun {
  readonly signal: AbortSignal
  progress(data: unknown): void
}

/**
 * Sends a message to a remote agent once and follows its task until it rests. When the stream is lost before the task
 * id is known, the outcome is unknown and the message is not sent again. A known task is resubscribed to, else polled.
 * An abort cancels it at the agent. Never rejects.
 */
export async function callRemote(deps: RemoteCallDeps, message: RemoteMessage, run: RemoteRun): Promise<AgentOutcome> {
  const call = new RemoteCall(deps, run, message.taskId !== null)
  try {
    return await call.run(message)
  } finally {
    call.end()
  }
}

class RemoteCall {
  readonly #deps: RemoteCallDeps
  readonly #run: RemoteRun
  readonly #task: RemoteTask
  readonly #stop = new AbortController()
  readonly #onAbort = (): void => this.#stop.abort()

  constructor(deps: RemoteCallDeps, run: RemoteRun, isFurther: boolean) {
    this.#deps = deps
    this.#run = run
    this.#task = new RemoteTask({ maxBytes: deps.maxOutputBytes, report: (data) => run.progress(data), isFurther })
    if (run.signal.aborted) this.#stop.abort()
    run.signal.addEventListener('abort', this.#onAbort)
  }

  end(): void {
    this.#run.signal.removeEventListener('abort', this.#onAbort)
    // Closes streams that are still open.
    this.#stop.abort()
  }

  async run(message: RemoteMessage): Promise<AgentOutcome> {
    const { link, agent } = this.#deps
    const fault = await this.#read(link.send(message, this.#stop.signal))
    const { taskId } = this.#task
    if (!this.#task.isOver && taskId === null)
      return this.#failed(fault ?? new RemoteFault('unknown', 'it ended its answer without one'))
    const lost = this.#task.isOver || taskId === null || isFinal(fault) ? fault : await this.#follow(taskId)
    const { contextId } = this.#task
    if (contextId !== null) await this.#deps.onContext?.(contextId)
    if (this.#task.isOver) return await this.#compared(agent)
    if (taskId !== null) await this.#cancel(taskId)
    if (isFinal(lost)) return this.#failed(lost as RemoteFault)
    // The agent has the task: a lost connection leaves the outcome unknown.
    return this.#failed(
      new RemoteFault('unknown', lost?.message ?? 'it was given up', lost === null ? {} : { printed: lost.printed })
    )
  }

  /** The outcome. A stream may have lost artifacts or pieces of them: the task at its end says so. */
  async #compared(agent: string): Promise<AgentOutcome> {
    const { taskId, isStreamed } = this.#task
    if (taskId !== null && isStreamed && !this.#stop.signal.aborted) {
      const { clock, link } = this.#deps
      // The answer is there: a slow agent must not make the call run out of time.
      const timer = clock.after(COMPARE_MS, () => this.#stop.abort())
      try {
        this.#task.compare(await link.get(taskId, this.#stop.signal))
      } catch (error) {
        const { message } = remoteFaultOf(error)
        this.#deps.onFault?.(new RemoteFault('answered', `its task could not be compared with its stream: ${message}`))
      }
      clock.clear(timer)
    }
    return this.#task.outcome(agent)
  }

  /** Follows the task until it rests; returns why it can no longer be followed, else null. */
  async #follow(taskId: string): Promise<RemoteFault | null> {
    const { clock, link } = this.#deps
    let streams = link.follow === null ? MAX_RESUBSCRIBED : 0
    let polls = 0
    for (let failures = 0; !this.#task.isOver && !this.#stop.signal.aborted; ) {
      if (link.follow !== null && streams < MAX_RESUBSCRIBED) {
        const fault = await this.#read(link.follow(taskId, this.#stop.signal))
        if (isFinal(fault)) return fault
        // An agent that refuses the stream is not asked for it again.
        streams = fault === null || fault.kind === 'unknown' || fault.kind === 'unsent' ? streams + 1 : MAX_RESUBSCRIBED
      }
      if (this.#task.isOver || this.#stop.signal.aborted) return null
      const fault = await this.#read(once(link.get(taskId, this.#stop.signal)))
      if (isFinal(fault) || fault?.reason === 'TASK_NOT_FOUND') return fault
      failures = fault === null ? 0 : failures + 1
      if (failures >= MAX_LOST_POLLS) return fault
      if (this.#task.isOver) return null
      await wait(
        clock,
        backoffMs({ baseMs: FIRST_POLL_MS, maxMs: MAX_POLL_MS, factor: 1.5 }, polls++),
        this.#stop.signal
      )
    }
    return null
  }

  /** Reads events until the task rests. Returns the fault that ended the stream; null: a normal end. */
  async #read(events: AsyncIterable<Parameters<RemoteTask['take']>[0]>): Promise<RemoteFault | null> {
    try {
      for await (const event of events) {
        this.#take(event)
        if (this.#task.isOver) return null
      }
      return null
    } catch (error) {
      return error instanceof TooMuch ? error : remoteFaultOf(error)
    }
  }

  #take(event: Parameters<RemoteTask['take']>[0]): void {
    try {
      this.#task.take(event)
    } catch (error) {
      throw new TooMuch(error instanceof RemoteFault ? error.message : 'it cannot be read')
    }
  }

  async #cancel(taskId: string): Promise<void> {
    const { clock, link } = this.#deps
    const stop = new AbortController()
    const timer = clock.after(CANCEL_MS, () => stop.abort())
    await link.cancel(taskId, stop.signal).catch(() => {})
    clock.clear(timer)
  }

  #failed(fault: RemoteFault): AgentOutcome {
    if (this.#run.signal.aborted)
      return {
        ok: false,
        code: 'CANCELED',
        message: 'canceled',
        ...(fault.kind === 'unknown' ? { isUnknown: true } : {})
      }
    this.#deps.onFault?.(fault)
    return failedRemote(this.#deps.agent, fault)
  }
}

/** The agent sent unacceptable data: a retry would bring the same. */
class TooMuch extends RemoteFault {
  constructor(message: string) {
    super('answered', message)
  }
}

function isFinal(fault: RemoteFault | null): boolean {
  return fault instanceof TooMuch
}

async function* once<T>(value: Promise<T>): AsyncGenerator<T> {
  yield await value
}
