import { backoffMs } from '../../../kit/backoff.js'
import { type Clock, wait } from '../../../kit/clock.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import type { RemoteLink, RemoteMessage } from './remote-client.js'
import { failedRemote, RemoteFault, remoteFaultOf } from './remote-fault.js'
import { RemoteTask } from './remote-task.js'

/** Wait before a task is asked after for the first time; each further one is half as long again. Milliseconds. */
export const FIRST_POLL_MS = 250
/** Longest wait between two times that a task is asked after, in milliseconds. */
export const MAX_POLL_MS = 5000
/** A task that cannot be asked after so many times in a row is lost. */
export const MAX_LOST_POLLS = 8
/** Streams of one task that are taken up again; then it is only asked after. */
export const MAX_RESUBSCRIBED = 16
/** How long the agent of a task that nobody wants has to hear of it, in milliseconds. */
export const CANCEL_MS = 5000

/** What calling needs. */
export interface RemoteCallDeps {
  /** Of the agent, for people. */
  readonly agent: string
  readonly link: RemoteLink
  readonly clock: Clock
  readonly maxOutputBytes: number
  /** Told of why there is no answer, in words that callers are not told. */
  onFault?(fault: RemoteFault): void
}

/** How one call is followed. */
export interface RemoteRun {
  readonly signal: AbortSignal
  progress(data: unknown): void
}

/**
 * Says a message to a remote agent and follows its task to where it rests. It is said once: when the stream is lost before its
 * task is known, nobody knows what became of it, and it is not said again. Of a known task the stream is taken up again, else
 * it is asked after. An abort cancels it there. Never rejects.
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
    // Whatever is still open: nobody reads it any more.
    this.#stop.abort()
  }

  async run(message: RemoteMessage): Promise<AgentOutcome> {
    const { link, agent } = this.#deps
    const fault = await this.#read(link.send(message, this.#stop.signal))
    const { taskId } = this.#task
    if (!this.#task.isOver && taskId === null) return this.#failed(fault ?? new RemoteFault('unknown', 'it ended its answer without one'))
    const lost = this.#task.isOver || taskId === null || isFinal(fault) ? fault : await this.#follow(taskId)
    if (this.#task.isOver) return this.#task.outcome(agent)
    if (taskId !== null) await this.#cancel(taskId)
    if (isFinal(lost)) return this.#failed(lost as RemoteFault)
    // It has the task: that it cannot be reached now says nothing of what it did.
    return this.#failed(new RemoteFault('unknown', lost?.message ?? 'it was given up', lost === null ? {} : { printed: lost.printed }))
  }

  /** Until the task rests; what it gives is why it cannot be followed any more. */
  async #follow(taskId: string): Promise<RemoteFault | null> {
    const { clock, link } = this.#deps
    let streams = link.follow === null ? MAX_RESUBSCRIBED : 0
    let polls = 0
    for (let failures = 0; !this.#task.isOver && !this.#stop.signal.aborted; ) {
      if (link.follow !== null && streams < MAX_RESUBSCRIBED) {
        const fault = await this.#read(link.follow(taskId, this.#stop.signal))
        if (isFinal(fault)) return fault
        // One that has no such stream is not asked for it again.
        streams = fault === null || fault.kind === 'unknown' || fault.kind === 'unsent' ? streams + 1 : MAX_RESUBSCRIBED
      }
      if (this.#task.isOver || this.#stop.signal.aborted) return null
      const fault = await this.#read(once(link.get(taskId, this.#stop.signal)))
      if (isFinal(fault) || fault?.reason === 'TASK_NOT_FOUND') return fault
      failures = fault === null ? 0 : failures + 1
      if (failures >= MAX_LOST_POLLS) return fault
      if (this.#task.isOver) return null
      await wait(clock, backoffMs({ baseMs: FIRST_POLL_MS, maxMs: MAX_POLL_MS, factor: 1.5 }, polls++), this.#stop.signal)
    }
    return null
  }

  /** Takes what comes. Gives what ended it before the task rests; null: its plain end. */
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
      return { ok: false, code: 'CANCELED', message: 'canceled', ...(fault.kind === 'unknown' ? { isUnknown: true } : {}) }
    this.#deps.onFault?.(fault)
    return failedRemote(this.#deps.agent, fault)
  }
}

/** The agent tells what cannot be taken: to ask again would bring the same. */
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
