import type { Clock } from '../../../kit/clock.js'
import { NodeError, type ErrorBody } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { shellWord } from '../../../kit/text.js'
import { addressText, parseAddress } from '../../../domain/card/card.js'
import { decodePayload, encodePayload } from '../../../domain/envelope/codec.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { retryAfterMs } from '../../../domain/reliable/repeat.js'
import { isDue, SETTLED, stepCaller } from '../../../domain/reliable/request.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { STORED, type Asking, type CallerOutcome, type RequestMaking, type RequestNames } from './request-codec.js'
import { isIdempotent, onlyReads } from '../callee/record.js'
import type { Directory } from '../../cards/directory.js'
import type { TaskTable } from '../../tasks/task-table.js'
import type { RequestStore, RequestContents } from '../store.js'
import { sizeOf } from '../../../kit/size.js'

/** Bytes of what a peer says beside an error that are kept with it: records are read many at once. */
const MAX_DATA_BYTES = 64 * 1024

/** Characters of an input that are typed again for a person. */
const MAX_TYPED = 400

/** A request that is asked for again, which counts when the ledger holds the message. */
interface AskedAgain {
  readonly kind: 'request' | 'query'
  /** What the ledger holds from the commit of the message on. */
  changes(): readonly LedgerChange[]
  /** It was not sent. @throws what it is given */
  failed(error: unknown): never
}

/** What the ledger holds of one request of this node, or is to hold. Changes are committed in the order in which they were asked for. */
export class CallerRecord {
  readonly #requestStore: RequestStore
  #current: RequestRecord
  #isStored: boolean
  #beforeEnd: RequestRecord | null = null
  #isAsking = false

  /** `isStored`: the ledger has it. */
  constructor(requestStore: RequestStore, record: RequestRecord, isStored: boolean) {
    this.#requestStore = requestStore
    this.#current = record
    this.#isStored = isStored
  }

  /** As it is with all changes that were asked for. */
  get current(): RequestRecord {
    return this.#current
  }

  /** Is it in the ledger, or on its way there? */
  get isStored(): boolean {
    return this.#isStored
  }

  /** Has it an end? */
  get isSettled(): boolean {
    return SETTLED.has(this.#current.status)
  }

  /** The input, for a request that was read from the ledger; null when it is no longer kept. */
  storedInput(): Promise<Uint8Array | null> {
    return this.#requestStore.input(this.#requestStore.name(this.#current))
  }

  /**
   * It waits, and is not with its node, which may have refused it, and said for how long it is not to be sent again. The first time it
   * takes its input along. Nothing for one that has an end.
   */
  waiting(now: number, input: () => unknown, refusal: ErrorBody | null): readonly LedgerChange[] {
    if (this.isSettled) return []
    const afterMs = refusal === null ? 0 : retryAfterMs(refusal)
    const error = refusal === null ? null : keptOf(refusal)
    return this.#change({ status: 'pending', tries: 0, updatedAt: now, retryAt: afterMs === 0 ? null : now + afterMs, error }, input)
  }

  /** Milliseconds for which it is not to be sent again; 0 for none. A clock that was put back does not make the wait longer. */
  restMs(now: number): number {
    const { status, retryAt, error } = this.#current
    if (status !== 'pending' || retryAt === null || error === null) return 0
    return Math.min(Math.max(0, retryAt - now), retryAfterMs(error))
  }

  /** Why its node did not do it, as far as it waits for that now, or did. */
  get refusal(): ErrorBody | null {
    return this.#current.status === 'pending' ? this.#current.error : null
  }

  /** It is sent once more. The first time it takes its input along. */
  sent(now: number, input: () => unknown): readonly LedgerChange[] {
    return this.#change({ tries: this.#current.tries + 1, retryAt: null, updatedAt: now }, input)
  }

  /** Is its outcome, which is not known, to be asked for by now? */
  isDue(now: number): boolean {
    return !this.#isAsking && isDue(this.#current, now)
  }

  /** Its node is linked again. */
  peerIsBack(now: number): void {
    const { retryAt } = stepCaller(this.#current, { type: 'back' }, { now }).request
    this.#current = { ...this.#current, retryAt }
  }

  /** It is asked for again: null before its time, and while that is being done. `chance` in [0, 1). */
  askedAgain(now: number, chance: number): AskedAgain | null {
    const { request, effects } = stepCaller(this.#current, { type: 'tick', chance }, { now })
    const [effect] = effects
    if (effect?.type !== 'send' || this.#isAsking) return null
    this.#isAsking = true
    const before = this.#current
    let asked: RequestRecord | null = null
    return {
      kind: effect.kind,
      changes: () => {
        this.#isAsking = false
        // An outcome came first.
        if (this.#current !== before) return []
        const changes = this.#change({ tries: request.tries, retryAt: request.retryAt, updatedAt: now })
        asked = this.#current
        return changes
      },
      failed: (error) => {
        this.#isAsking = false
        if (this.#current === asked) this.#current = before
        throw error
      }
    }
  }

  /** Its outcome. Nothing for one that was never recorded, or has an end. */
  ended(outcome: CallerOutcome, now: number): readonly LedgerChange[] {
    if (!this.#isStored || this.isSettled) return []
    const { status } = outcome
    const error = 'error' in outcome ? keptOf(outcome.error) : null
    const retryAt = 'retryAt' in outcome ? outcome.retryAt : null
    const contents = 'result' in outcome ? resultOf(outcome.result) : {}
    this.#beforeEnd = this.#current
    const asking = 'run' in outcome && this.#current.asking !== null ? { ...this.#current.asking, run: outcome.run } : this.#current.asking
    return this.#changes({ ...this.#current, status, error, retryAt, updatedAt: now, asking }, contents)
  }

  /** The ledger did not take its outcome: it is as it was before. */
  notEnded(): void {
    this.#current = this.#beforeEnd ?? this.#current
  }

  #change(change: Partial<RequestRecord>, input?: () => unknown): readonly LedgerChange[] {
    const contents = this.#isStored || input === undefined ? {} : { input: encodePayload(input()) }
    return this.#changes({ ...this.#current, ...change }, contents)
  }

  #changes(next: RequestRecord, contents: RequestContents): readonly LedgerChange[] {
    const changes = this.#requestStore.changes(this.#isStored ? this.#current : null, next, contents)
    this.#current = next
    this.#isStored = true
    return changes
  }
}

/** What the ledger holds once a request is on its way: its record, or the lease that it carries. */
export function changesOfSending({ lease, input }: Asking, record: CallerRecord | null, now: number): readonly LedgerChange[] {
  if (record === null) return lease?.changes() ?? []
  return record.isSettled ? [] : record.sent(now, () => input)
}

/** What a request that was read from the ledger asks with. @throws NodeError STORE_DAMAGED when it is no longer there */
export async function storedInput(record: CallerRecord | null): Promise<unknown> {
  const bytes = (await record?.storedInput()) ?? null
  const read = bytes === null ? null : decodePayload(bytes)
  if (read?.ok !== true) throw new NodeError('STORE_DAMAGED', 'the input of the request is no longer there')
  return read.value
}

/**
 * Why it is not known whether a request was done. What may not be repeated never is by itself, so that says how a person asks
 * for it anew; a lease (`record` null) is the business of its swarm.
 */
export function inDoubt(error: ErrorBody, { capability, input, justification }: Asking, record: CallerRecord | null): ErrorBody {
  if (record?.current.isRepeatable !== false) return error
  const named = capability === null ? 'send <agent>' : `call <agent> ${shellWord(capability)}`
  const why = justification === undefined ? '' : ` --justification ${shellWord(justification)}`
  const again = `a2a-node ${named} ${shellWord(typed(input) ?? '<json>')}${why} --allow-repeat`
  return { ...error, retryable: false, next: ['a2a-node tasks', again] }
}

/** An input as it can be typed; null for what is not there, is too long or holds bytes. */
function typed(input: unknown): string | null {
  let isText = input !== STORED
  const text = JSON.stringify(input, (_key, value: unknown) => {
    isText &&= !(value instanceof Uint8Array)
    return value
  })
  return isText && text !== undefined && text.length <= MAX_TYPED ? text : null
}

function keptOf({ data, ...bare }: ErrorBody): ErrorBody {
  return data === undefined || sizeOf(data) > MAX_DATA_BYTES ? bare : { ...bare, data }
}

/** What an agent of this very node gives need not have a form in which it could be kept. */
function resultOf(result: unknown): RequestContents {
  try {
    return { result: encodePayload(result) }
  } catch {
    return {}
  }
}

/** What making requests needs. */
export interface MakeRequestDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly tasks: TaskTable
  readonly directory: Directory
  readonly requestStore: RequestStore
  readonly limits: { readonly defaultTtlMs: number }
}

/** Names a request, and opens its task and its record. */
export function makeRequest(deps: MakeRequestDeps, asking: Asking): RequestMaking {
  const { requestStore, clock, directory, limits } = deps
  const names = nameRequest(deps, asking)
  const { target, capability, allowRepeat = false, mayGoUnrecorded = false, mayQueue } = asking
  if (asking.lease !== undefined || (mayGoUnrecorded && !mayQueue && onlyReads(directory, target, capability)))
    return { asking, names, record: null }
  const isRepeatable = allowRepeat || isIdempotent(directory, target, capability)
  const record = freshRecord(asking, names, { now: clock.now(), ttlMs: limits.defaultTtlMs, isRepeatable })
  return { asking, names, record: new CallerRecord(requestStore, record, false) }
}

function nameRequest({ ids, tasks }: MakeRequestDeps, { lease, names, target, capability, description }: Asking): RequestNames {
  const opening = { kind: 'request', role: 'caller', agent: addressText(target), capability: capability ?? '', description } as const
  return {
    requestId: lease?.requestId ?? names?.requestId ?? ids.next('req'),
    attempt: lease?.attempt ?? 1,
    correlationId: ids.next('thr'),
    taskId: lease === undefined ? tasks.open(opening, names?.taskId) : null
  }
}

/** A request as the ledger has it; null when its addresses are none. */
export function storedRequest(requestStore: RequestStore, record: RequestRecord): RequestMaking | null {
  const [sender, target] = [parseAddress(record.source), parseAddress(record.target)]
  if (sender === null || target === null) return null
  const { requestId, attempt, correlationId, taskId, capability, description, deadline, createdAt } = record
  const timeoutMs = deadline - createdAt
  const asking = { sender, target, capability, input: STORED, description, timeoutMs, mayQueue: false, ...record.asking }
  return { asking, names: { requestId, attempt, correlationId, taskId }, record: new CallerRecord(requestStore, record, true) }
}

/** The record of a request that was just made. */
function freshRecord(
  { sender, target, capability, description, justification, onBehalfOf, mayQueue, timeoutMs, allowRepeat }: Asking,
  names: RequestNames,
  { now, ttlMs, isRepeatable }: { readonly now: number; readonly ttlMs: number; readonly isRepeatable: boolean }
): RequestRecord {
  const { requestId, attempt, correlationId, taskId } = names
  const by = { ...(onBehalfOf === undefined ? {} : { onBehalfOf }), ...(allowRepeat === true ? { allowRepeat } : {}) }
  return {
    role: 'caller',
    requestId,
    attempt,
    source: addressText(sender),
    target: addressText(target),
    capability,
    description,
    swarm: null,
    correlationId,
    taskId,
    status: 'pending',
    isRepeatable,
    tries: 0,
    createdAt: now,
    updatedAt: now,
    deadline: now + timeoutMs,
    retryAt: null,
    expiresAt: now + timeoutMs + ttlMs,
    error: null,
    asking: { ...(justification === undefined ? {} : { justification }), ...by, mayQueue }
  }
}
