import { GrowingArtifacts } from '../../../domain/gateway/growing-artifacts.js'
import type { Artifact, Part } from '../../../domain/gateway/message.js'
import { ASKING_STATES, type GatewayState, RESTING_STATES } from '../../../domain/gateway/task.js'
import { isRecord, JSON_LIMITS, jsonFault, writtenJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import { MAX_FAULT_TEXT, RemoteFault } from './remote-fault.js'
import { valueOfParts } from './remote-parts.js'

/** Events of one remote task; one that tells more has failed. */
export const MAX_REMOTE_EVENTS = 10_000
/** What a part counts beside its JSON, in bytes: an empty one takes room, too. */
const PART_BYTES = 32
/** Bytes of one report of progress; a larger artifact is in the result only. */
const MAX_REPORT_BYTES = 65_536
/** Results are bounded in bytes; of their structure only depth and dangerous keys matter. */
const RESULT_LIMITS = { ...JSON_LIMITS, maxKeys: Number.POSITIVE_INFINITY, maxString: Number.POSITIVE_INFINITY }

/** States of a remote task; `unknown` for what this node has no word for. */
export type RemoteState = GatewayState | 'unknown'

/** In these nothing happens any more until somebody acts. */
const RESTING: ReadonlySet<RemoteState> = RESTING_STATES

/** In these its client is to say more. */
const ASKING: ReadonlySet<RemoteState> = ASKING_STATES

/** What a remote agent says. */
export interface RemoteReply {
  readonly id: string
  readonly parts: readonly Part[]
}

/** What happens to a message at its remote agent, in the words of either version. */
export type RemoteEvent =
  | { readonly type: 'answer'; readonly message: RemoteReply }
  | {
      readonly type: 'task'
      readonly taskId: string
      readonly contextId: string
      readonly state: RemoteState
      readonly message: RemoteReply | null
      readonly artifacts: readonly Artifact[]
    }
  | {
      readonly type: 'status'
      readonly taskId: string
      readonly contextId: string
      readonly state: RemoteState
      readonly message: RemoteReply | null
    }
  | {
      readonly type: 'artifact'
      readonly taskId: string
      readonly artifact: Artifact
      readonly append: boolean
      readonly lastChunk: boolean
    }

/** What one message has come to, by what its agent tells. */
export class RemoteTask {
  readonly #maxBytes: number
  readonly #report: (data: unknown) => void
  readonly #isFurther: boolean
  /** Parts as they came: what a whole task tells is compared with them. */
  readonly #artifacts = new GrowingArtifacts({ isJoined: false })
  #taskId: string | null = null
  #contextId: string | null = null
  #state: RemoteState = 'submitted'
  #message: RemoteReply | null = null
  #answer: RemoteReply | null = null
  /** The message that was reported last. */
  #reported = ''
  #bytes = 0
  #events = 0

  /** `isFurther`: the message goes on with a task that rested. */
  constructor({
    maxBytes,
    report,
    isFurther
  }: {
    readonly maxBytes: number
    readonly report: (data: unknown) => void
    readonly isFurther: boolean
  }) {
    this.#maxBytes = maxBytes
    this.#isFurther = isFurther
    this.#report = report
  }

  /** At the agent; null: it has not told, or there is none. */
  get taskId(): string | null {
    return this.#taskId
  }

  /** Is there nothing more to come? */
  get isOver(): boolean {
    return this.#answer !== null || RESTING.has(this.#state)
  }

  /** Takes an event and reports what is new in it. @throws RemoteFault when its agent tells too much, or of another task */
  take(event: RemoteEvent): void {
    try {
      this.#take(event)
    } catch (error) {
      // What is nested too deep for this node to write, for one.
      throw error instanceof RemoteFault ? error : new RemoteFault('answered', 'it cannot be read')
    }
  }

  #take(event: RemoteEvent): void {
    if (this.isOver) return
    if (++this.#events > MAX_REMOTE_EVENTS) throw new RemoteFault('answered', `it tells of more than ${MAX_REMOTE_EVENTS} things`)
    if (event.type === 'answer') return this.#answered(event.message)
    if (event.taskId === '' || event.taskId.length > 256) throw new RemoteFault('answered', 'it names no task')
    if (this.#taskId !== null && event.taskId !== this.#taskId) throw new RemoteFault('answered', 'it tells of another task')
    this.#taskId = event.taskId
    if (event.type === 'artifact') return this.#chunk(event)
    this.#contextId = event.contextId === '' ? this.#contextId : event.contextId
    if (event.type === 'task') for (const artifact of event.artifacts) this.#whole(artifact)
    // Servers begin with the task as it was before the message.
    const isBefore = this.#isFurther && this.#events === 1 && event.type === 'task' && ASKING.has(event.state)
    if (isBefore) this.#reported = event.message?.id ?? ''
    else this.#moved(event.state, event.message)
  }

  /** How the run ends, once it is over. */
  outcome(agent: string): AgentOutcome {
    if (this.#answer !== null) return this.#result(valueOfParts(this.#answer.parts, '\n'))
    switch (this.#state) {
      case 'completed':
        return this.#result(this.#completed())
      case 'input-required':
      case 'auth-required':
        return this.#result(this.#question(this.#state))
      case 'canceled':
        return { ok: false, code: 'CANCELED', message: `the A2A agent ${agent} canceled it${this.#why()}` }
      default:
        return {
          ok: false,
          code: 'TASK_FAILED',
          message: `the A2A agent ${agent} ${this.#state === 'rejected' ? 'rejected it' : 'failed'}${this.#why()}`
        }
    }
  }

  #answered(message: RemoteReply): void {
    this.#count(message.parts)
    this.#answer = message
  }

  #moved(state: RemoteState, message: RemoteReply | null): void {
    if (state !== 'unknown') this.#state = state
    if (message === null) return
    this.#count(message.parts)
    this.#message = message
    const key = message.id === '' ? writtenJson(message.parts) : message.id
    if (this.isOver || key === this.#reported) return
    this.#reported = key
    const value = valueOfParts(message.parts, '\n')
    if (value !== null && value !== '') this.#tell(typeof value === 'string' ? { message: value } : value)
  }

  #chunk({ artifact, append, lastChunk }: Extract<RemoteEvent, { type: 'artifact' }>): void {
    this.#count(artifact.parts)
    const isMore = append && this.#artifacts.parts(artifact.artifactId) !== null
    this.#artifacts.take(artifact, isMore)
    this.#state = this.#state === 'submitted' ? 'working' : this.#state
    this.#tell({ a2a: { artifact, append: isMore, lastChunk } })
  }

  /** An artifact as the whole task has it: of one that is known only what came since is told. */
  #whole(artifact: Artifact): void {
    const before = this.#artifacts.parts(artifact.artifactId)
    const isLonger =
      before !== null &&
      before.length <= artifact.parts.length &&
      before.every((part, at) => writtenJson(part) === writtenJson(artifact.parts[at]))
    if (isLonger && before.length === artifact.parts.length) return
    const parts = isLonger ? artifact.parts.slice(before.length) : artifact.parts
    this.#count(parts)
    this.#artifacts.take(artifact, false)
    this.#tell({ a2a: { artifact: { ...artifact, parts }, append: isLonger, lastChunk: false } })
  }

  #count(parts: readonly Part[]): void {
    this.#bytes += Buffer.byteLength(JSON.stringify(parts)) + parts.length * PART_BYTES
    if (this.#bytes > this.#maxBytes) throw new RemoteFault('answered', `it gives more than ${this.#maxBytes} bytes`)
  }

  #tell(data: unknown): void {
    if (jsonFault(data) === null && Buffer.byteLength(JSON.stringify(data)) <= MAX_REPORT_BYTES) this.#report(data)
  }

  #completed(): unknown {
    const artifacts = this.#artifacts.all()
    const [only] = artifacts
    if (only === undefined) return this.#message === null ? null : valueOfParts(this.#message.parts, '\n')
    return artifacts.length === 1 ? valueOfParts(only.parts, '') : { artifacts }
  }

  #question(state: RemoteState): unknown {
    const message = this.#message === null ? undefined : valueOfParts(this.#message.parts, '\n')
    const ids = { taskId: this.#taskId, ...(this.#contextId === null ? {} : { contextId: this.#contextId }) }
    return { a2a: { state, ...(message === undefined || message === null ? {} : { message }), ...ids } }
  }

  #result(value: unknown): AgentOutcome {
    const fault = jsonFault(value, RESULT_LIMITS)
    return fault === null ? { ok: true, result: value } : { ok: false, code: 'INVALID_OUTPUT', message: `the agent's result: ${fault}` }
  }

  #why(): string {
    const message = this.#message === null ? null : valueOfParts(this.#message.parts, '\n')
    if (message === null || message === '') return ', and does not say why'
    return `: ${shown(typeof message === 'string' ? message : isRecord(message) && typeof message['text'] === 'string' ? message['text'] : JSON.stringify(message), MAX_FAULT_TEXT)}`
  }
}
