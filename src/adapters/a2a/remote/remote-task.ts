import { GrowingArtifacts } from '../../../domain/gateway/growing-artifacts.js'
import { type Artifact, MAX_CLIENT_ID, type Part } from '../../../domain/gateway/message.js'
import { ASKING_STATES, type GatewayState, RESTING_STATES } from '../../../domain/gateway/task.js'
import { isRecord, jsonFault, RESULT_LIMITS, writtenJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import { MAX_FAULT_TEXT, RemoteFault } from './remote-fault.js'
import { valueOfParts } from './remote-parts.js'

/** Most events of one remote task; more fail it. */
export const MAX_REMOTE_EVENTS = 10_000
/** Bytes that each part counts beside its JSON, so that empty parts count too. */
const PART_BYTES = 32
/** Most bytes of one progress report; a larger artifact is in the result only. */
const MAX_REPORT_BYTES = 65_536

/** States of a remote task; `unknown` for states that this node does not know. */
export type RemoteState = GatewayState | 'unknown'

/** States in which a task waits for an action or has ended. */
const RESTING: ReadonlySet<RemoteState> = RESTING_STATES

/** Ends without a result. */
const UNFINISHED: ReadonlySet<RemoteState> = new Set(['failed', 'rejected', 'canceled'])

/** States in which a task waits for its client. */
const ASKING: ReadonlySet<RemoteState> = ASKING_STATES

/** A message of a remote agent. */
export interface RemoteReply {
  readonly id: string
  readonly parts: readonly Part[]
}

/** An event of a message at its remote agent, in one form for both versions. */
export type RemoteEvent =
  | { readonly type: 'answer'; readonly message: RemoteReply; readonly contextId: string }
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

/** Folds the events of one message into its outcome. */
export class RemoteTask {
  readonly #maxBytes: number
  readonly #report: (data: unknown) => void
  readonly #isFurther: boolean
  /** Parts as received, to compare with the artifacts of a whole task. */
  readonly #artifacts = new GrowingArtifacts({ isJoined: false })
  #taskId: string | null = null
  #contextId: string | null = null
  #state: RemoteState = 'submitted'
  #message: RemoteReply | null = null
  #answer: RemoteReply | null = null
  /** Key of the last reported message. */
  #reported = ''
  #bytes = 0
  #events = 0
  #isStreamed = false

  /** `isFurther`: the message continues a resting task. */
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

  /** Id at the agent; null: not known yet, or no task. */
  get taskId(): string | null {
    return this.#taskId
  }

  /** Context at the agent; null: not known. */
  get contextId(): string | null {
    return this.#contextId
  }

  /** Has it completed by an event of a stream, which may have lost others? A whole task has all of it. */
  get isStreamed(): boolean {
    return this.#isStreamed && this.#state === 'completed'
  }

  /** Takes what the task at its end has beyond its stream. @throws RemoteFault as {@link take} */
  compare(event: RemoteEvent): void {
    if (event.type !== 'task' || event.taskId !== this.#taskId || event.state !== this.#state) return
    for (const artifact of event.artifacts) this.#whole(artifact)
    this.#message ??= event.message
  }

  /** Has the message an answer, or does its task rest? */
  get isOver(): boolean {
    return this.#answer !== null || RESTING.has(this.#state)
  }

  /** Takes an event and reports its new content. @throws RemoteFault when it exceeds a limit or is of another task */
  take(event: RemoteEvent): void {
    try {
      this.#take(event)
    } catch (error) {
      // E.g. a value nested too deep to encode.
      throw error instanceof RemoteFault ? error : new RemoteFault('answered', 'it cannot be read')
    }
  }

  #take(event: RemoteEvent): void {
    if (this.isOver) return
    if (++this.#events > MAX_REMOTE_EVENTS)
      throw new RemoteFault('answered', `it tells of more than ${MAX_REMOTE_EVENTS} things`)
    if (event.type === 'answer') return this.#answered(event)
    if (event.taskId === '' || event.taskId.length > 256) throw new RemoteFault('answered', 'it names no task')
    if (this.#taskId !== null && event.taskId !== this.#taskId)
      throw new RemoteFault('answered', 'it tells of another task')
    this.#taskId = event.taskId
    this.#isStreamed = event.type !== 'task'
    if (event.type === 'artifact') return this.#chunk(event)
    this.#placed(event.contextId)
    if (event.type === 'task') for (const artifact of event.artifacts) this.#whole(artifact)
    // Servers first send the task as it was before the message.
    const isBefore = this.#isFurther && this.#events === 1 && event.type === 'task' && ASKING.has(event.state)
    if (isBefore) this.#reported = event.message?.id ?? ''
    else this.#moved(event.state, event.message)
  }

  /** The outcome of the run, once it is over. */
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
      case 'rejected': {
        const message = `the A2A agent ${agent} rejected it${this.#why()}`
        return { ok: false, code: 'TASK_FAILED', message, data: { a2a: { state: 'rejected', message } } }
      }
      default:
        return { ok: false, code: 'TASK_FAILED', message: `the A2A agent ${agent} failed${this.#why()}` }
    }
  }

  #answered({ message, contextId }: Extract<RemoteEvent, { type: 'answer' }>): void {
    this.#count(message.parts)
    this.#answer = message
    this.#placed(contextId)
  }

  /** A context of another length is none to come back to; servers may leave it out. */
  #placed(contextId: string | undefined): void {
    if (contextId !== undefined && contextId !== '' && contextId.length <= MAX_CLIENT_ID) this.#contextId = contextId
  }

  #moved(state: RemoteState, message: RemoteReply | null): void {
    if (state !== 'unknown') this.#state = state
    // Earlier words are no reason for an end without any.
    if (UNFINISHED.has(this.#state)) this.#message = null
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
    const isKnown = this.#artifacts.parts(artifact.artifactId) !== null
    const isMore = append && isKnown
    this.#artifacts.take(artifact, isMore)
    this.#state = this.#state === 'submitted' ? 'working' : this.#state
    this.#tell({ a2a: { artifact, append: isMore, lastChunk } })
  }

  /** An artifact of a whole task: of a known one only the new parts are reported. */
  #whole(artifact: Artifact): void {
    const before = this.#artifacts.parts(artifact.artifactId)
    const isLonger =
      before !== null &&
      before.length <= artifact.parts.length &&
      before.every((part, at) => writtenJson(part) === writtenJson(artifact.parts[at]))
    if (isLonger && before.length === artifact.parts.length) return
    // Servers may join texts.
    if (before !== null && writtenJson(valueOfParts(before, '')) === writtenJson(valueOfParts(artifact.parts, '')))
      return
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
    const parts = this.#message?.parts ?? []
    const isPlain = parts.every((part) => part.text !== undefined)
    const words = message === undefined || message === null ? {} : { message }
    return { a2a: { state, ...words, ...(isPlain ? {} : { parts }), ...ids } }
  }

  #result(value: unknown): AgentOutcome {
    const fault = jsonFault(value, RESULT_LIMITS)
    return fault === null
      ? { ok: true, result: value }
      : { ok: false, code: 'INVALID_OUTPUT', message: `the agent's result: ${fault}` }
  }

  #why(): string {
    const message = this.#message === null ? null : valueOfParts(this.#message.parts, '\n')
    if (message === null || message === '') return ', and does not say why'
    return `: ${shown(typeof message === 'string' ? message : isRecord(message) && typeof message['text'] === 'string' ? message['text'] : JSON.stringify(message), MAX_FAULT_TEXT)}`
  }
}
