import { asNodeError } from '../../src/kit/errors.js'
import { REQUEST_POLICY, SETTLED } from '../../src/domain/reliable/request.js'
import type { TaskState } from '../../src/domain/task/task.js'
import type { Asked } from '../../src/node/requests/caller/requests.js'
import type { Place, PlaceParts } from './place.js'

/** What a task shows at its end. */
const ENDS: ReadonlySet<string> = new Set<TaskState>(['completed', 'failed', 'canceled'])

const DAY_MS = 86_400_000

/** A request of a world. */
interface Query {
  readonly number: number
  readonly from: Place
  readonly to: Place
  readonly mayRepeat: boolean
  /** null until the node took it. */
  asked: Asked | null
  /** The process that was asked. */
  readonly life: number
  /** Disks that its two ends had lost before. */
  readonly losses: readonly [number, number]
}

/** The requests of a world: asks, cancels, and judges how they ended. */
export class Queries {
  readonly #parts: Pick<PlaceParts, 'random' | 'trace' | 'witness' | 'hasRelays'>
  readonly #all: Query[] = []

  constructor(parts: Pick<PlaceParts, 'random' | 'trace' | 'witness' | 'hasRelays'>) {
    this.#parts = parts
  }

  /** Requests so far, also those that were refused. */
  get count(): number {
    return this.#all.length
  }

  /** Something is asked of an agent. */
  ask(from: Place, to: Place): void {
    const { random, trace } = this.#parts
    const { node, life } = from
    const [agentId, kind] = [random.is(0.7) ? 'slow' : 'fast', random.is(0.5) ? 'again' : 'once']
    const allowRepeat = random.is(0.15)
    const mayRepeat = allowRepeat || kind === 'again'
    const timeoutMs = this.#timeoutMs()
    const mayQueue = random.is(0.7)
    if (node === null) return
    const number = this.#all.length + 1
    const question: Query = { number, from, to, mayRepeat, asked: null, life, losses: [from.losses, to.losses] }
    const name = `ask ${number}`
    this.#all.push(question)
    trace.add(from.name, `${name}: ${agentId}.${kind} of ${to.name}, ${timeoutMs} ms${mayQueue ? ', may queue' : ''}`)
    const asking = {
      sender: { agentId: 'operator', nodeId: from.actor.id },
      target: { agentId, nodeId: to.actor.id },
      capability: `${agentId}.${kind}`,
      input: { ask: number, mayRepeat },
      description: '',
      timeoutMs,
      mayQueue,
      allowRepeat
    }
    node.core.requests.ask(asking).then(
      (asked) => {
        if (life !== from.life) return
        question.asked = asked
        trace.add(from.name, `${name} is ${asked.requestId}, task ${asked.taskId}`)
      },
      (error: unknown) => {
        if (life === from.life) trace.add(from.name, `${name} is refused: ${asNodeError(error).code}`)
      }
    )
  }

  /** Over relays most requests wait so long that nothing but their delivery ends them. */
  #timeoutMs(): number {
    const { random, hasRelays } = this.#parts
    if (hasRelays && random.is(0.7)) return DAY_MS
    return random.is(0.2) ? random.int(1, 5000) : random.int(5000, 60_000)
  }

  /** A request is canceled where it was asked. */
  cancel(): void {
    const question = this.#parts.random.pick(
      this.#all.filter(({ asked, from, life }) => asked !== null && from.life === life)
    )
    if (question === null) return
    this.#parts.trace.add(question.from.name, `cancels ask ${question.number}`)
    question.asked?.cancel()
  }

  /** Has every request an end that is told, or nobody who asks after it any more? */
  get isOver(): boolean {
    return this.#all.every((question) => {
      const { asked, from } = question
      const record = asked === null ? null : this.#parts.witness.askedOn(from.name, asked.requestId)
      if (record === null || (record.status === 'unknown' && record.retryAt === null)) return true
      return SETTLED.has(record.status) && ENDS.has(this.#stateOf(question))
    })
  }

  /** As its caller's node shows it. */
  #stateOf({ asked, from }: Query): TaskState | 'forgotten' {
    return from.node?.core.tasks.get(asked?.taskId ?? '')?.state ?? 'forgotten'
  }

  /** Each has an end, the same at both ends. What a lost disk held nobody knows. */
  judge(): void {
    for (const question of this.#all) {
      const { asked, from, to, losses } = question
      const [isCallerLost, isCalleeLost] = [from.losses > losses[0], to.losses > losses[1]]
      if (asked === null || isCallerLost) continue
      const { witness } = this.#parts
      const state = this.#stateOf(question)
      const isEnded = ENDS.has(state) || (state === 'unknown' && this.#mayBeUnknown(question, asked, isCalleeLost))
      const why = from.node?.core.tasks.get(asked.taskId ?? '')?.error?.message ?? ''
      if (why.includes('nothing was') && witness.hasBegun(asked.requestId))
        witness.fault(`${from.name} says of ${asked.requestId} that ${why}, and it has begun`)
      if (!isEnded) witness.fault(`${asked.requestId} is ${state} at ${from.name} at the end`)
      if (from !== to && !isCalleeLost) witness.agree(asked.requestId, from.name, to.name)
    }
  }

  #mayBeUnknown(question: Query, { requestId }: Asked, isCalleeLost: boolean): boolean {
    const { to, mayRepeat } = question
    const { witness } = this.#parts
    if (!mayRepeat || isCalleeLost || this.#isExhausted(question)) return true
    return witness.wasLate(to.name, requestId) || witness.wasCutShort(to.name, requestId)
  }

  /** Was it asked for as often as is asked, while its node could not take it? */
  #isExhausted({ asked, from }: Query): boolean {
    const record = asked === null ? null : this.#parts.witness.askedOn(from.name, asked.requestId)
    return record !== null && record.tries >= REQUEST_POLICY.maxAttempts
  }
}
