import type { Hash } from '../../../kit/sign.js'
import { taskIdOf } from '../../../domain/task/task-id.js'
import type { Clock } from '../../../kit/clock.js'
import { NodeError, type ErrorBody } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { shellWord } from '../../../kit/text.js'
import { addressText, parseAddress } from '../../../domain/card/card.js'
import { decodeStored, encodeStored } from '../../../domain/envelope/codec.js'
import { packConversation, unpackConversation } from '../../../domain/gateway/conversation.js'
import type { AskingRecord, RequestRecord } from '../../../domain/reliable/records.js'
import { retryAfterMs } from '../../../domain/reliable/repeat.js'
import { isDue, SETTLED, stepCaller } from '../../../domain/reliable/request.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import { STORED, type Asking, type CallerOutcome, type RequestMaking, type RequestNames } from './request-codec.js'
import { ENDINGS } from '../../../domain/task/outcome.js'
import type { LedgerQuota } from '../../ledger/quota.js'
import { isIdempotent, onlyReads } from '../callee/record.js'
import type { Directory } from '../../cards/directory.js'
import type { TaskTable } from '../../tasks/task-table.js'
import type { RequestStore, RequestContents } from '../store.js'
import { sizeOf } from '../../../kit/size.js'

/** Bytes of a peer's error data that are kept: many records are read at once. */
const MAX_DATA_BYTES = 64 * 1024

/** Characters of an input that are repeated in a command for a person. */
const MAX_TYPED = 400

/** A repeated request, which counts once the ledger has the message. */
interface AskedAgain {
  readonly kind: 'request' | 'query'
  /** Ledger changes for the commit of the message. */
  changes(): readonly LedgerChange[]
  /** The repeat was not sent. @throws its argument */
  failed(error: unknown): never
}

/** The ledger record of one request of this node. Changes are committed in the order of the calls. */
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

  /** The record after all changes so far. */
  get current(): RequestRecord {
    return this.#current
  }

  /** Is it in the ledger, or on its way there? */
  get isStored(): boolean {
    return this.#isStored
  }

  /** Has the request ended? */
  get isSettled(): boolean {
    return SETTLED.has(this.#current.status)
  }

  /** The input of a request from the ledger; null when it is no longer kept. */
  storedInput(): Promise<Uint8Array | null> {
    return this.#requestStore.input(this.#requestStore.name(this.#current))
  }

  /**
   * The request waits and is not with its node, which may have refused it for a time. The first change includes the
   * input. Empty for a request that has ended.
   */
  waiting(now: number, input: () => unknown, refusal: ErrorBody | null): readonly LedgerChange[] {
    if (this.isSettled) return []
    const afterMs = refusal === null ? 0 : retryAfterMs(refusal)
    const error = refusal === null ? null : keptOf(refusal)
    return this.#change(
      { status: 'pending', tries: 0, updatedAt: now, retryAt: afterMs === 0 ? null : now + afterMs, error },
      input
    )
  }

  /** Milliseconds until it may be sent again; 0: now. A clock that was set back does not extend the wait. */
  restMs(now: number): number {
    const { status, retryAt, error } = this.#current
    if (status !== 'pending' || retryAt === null || error === null) return 0
    return Math.min(Math.max(0, retryAt - now), retryAfterMs(error))
  }

  /** The refusal of its node for which it waits, or waited; null when it has none. */
  get refusal(): ErrorBody | null {
    return this.#current.status === 'pending' ? this.#current.error : null
  }

  /** It is sent once more. The first change includes the input. */
  sent(now: number, input: () => unknown): readonly LedgerChange[] {
    return this.#change({ tries: this.#current.tries + 1, retryAt: null, updatedAt: now }, input)
  }

  /** Is it time to ask for its unknown outcome? */
  isDue(now: number): boolean {
    return !this.#isAsking && isDue(this.#current, now)
  }

  /** Its node is linked again. */
  peerIsBack(now: number): void {
    const { retryAt } = stepCaller(this.#current, { type: 'back' }, { now }).request
    this.#current = { ...this.#current, retryAt }
  }

  /** Prepares a repeat; null before its time, and while one is under way. `chance` in [0, 1). */
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

  /** Records its outcome. Empty for a request that was never recorded or has ended. */
  ended(outcome: CallerOutcome, now: number): readonly LedgerChange[] {
    if (!this.#isStored || this.isSettled) return []
    const { status } = outcome
    const error = 'error' in outcome ? keptOf(outcome.error) : null
    const retryAt = 'retryAt' in outcome ? outcome.retryAt : null
    const contents = 'result' in outcome ? resultOf(outcome.result) : {}
    this.#beforeEnd = this.#current
    const asking =
      'run' in outcome && this.#current.asking !== null
        ? { ...this.#current.asking, run: outcome.run }
        : this.#current.asking
    return this.#changes({ ...this.#current, status, error, retryAt, updatedAt: now, asking }, contents)
  }

  /** The ledger did not take its outcome: the earlier state applies. */
  notEnded(): void {
    this.#current = this.#beforeEnd ?? this.#current
  }

  #change(change: Partial<RequestRecord>, input?: () => unknown): readonly LedgerChange[] {
    const contents = this.#isStored || input === undefined ? {} : { input: encodeStored(input()) }
    return this.#changes({ ...this.#current, ...change }, contents)
  }

  #changes(next: RequestRecord, contents: RequestContents): readonly LedgerChange[] {
    const changes = this.#requestStore.changes(this.#isStored ? this.#current : null, next, contents)
    this.#current = next
    this.#isStored = true
    return changes
  }
}

/** Ledger changes for a request on its way: its record, or the lease that it carries. */
export function changesOfSending(asking: Asking, record: CallerRecord | null, now: number): readonly LedgerChange[] {
  if (record === null) return asking.lease?.changes() ?? []
  return record.isSettled ? [] : record.sent(now, () => storedForm(asking))
}

/** The input of a request as the ledger keeps it: with its conversation, if it is of one, and each content once. */
export function storedForm({ input, conversation }: Pick<Asking, 'input' | 'conversation'>): unknown {
  return conversation === undefined ? input : { input, conversation: packConversation(conversation, input) }
}

/**
 * The input of a request from the ledger, and the conversation that it is of.
 * @throws NodeError STORE_DAMAGED when it is missing
 */
export async function storedInput(record: CallerRecord | null): Promise<Pick<Asking, 'input' | 'conversation'>> {
  const bytes = (await record?.storedInput()) ?? null
  const read = bytes === null ? null : decodeStored(bytes)
  if (read?.ok !== true) throw new NodeError('STORE_DAMAGED', 'the input of the request is no longer there')
  if (record?.current.asking?.hasConversation !== true) return { input: read.value }
  const { input, conversation: packed } = read.value as { readonly input: unknown; readonly conversation: unknown }
  const conversation = unpackConversation(packed, input)
  if (conversation === null) throw new NodeError('STORE_DAMAGED', 'the conversation of the request cannot be read')
  return { input, conversation }
}

/**
 * The error for an unknown outcome. An unrepeatable request is not repeated by itself, so the error names the command
 * for a person. A lease (`record` null) is up to its swarm.
 */
export function inDoubt(
  error: ErrorBody,
  { capability, input, justification }: Asking,
  record: CallerRecord | null
): ErrorBody {
  if (record?.current.isRepeatable !== false) return error
  const named = capability === null ? 'send <agent>' : `call <agent> ${shellWord(capability)}`
  const why = justification === undefined ? '' : ` --justification ${shellWord(justification)}`
  const again = `a2a-node ${named} ${shellWord(typed(input) ?? '<json>')}${why} --allow-repeat`
  return { ...error, retryable: false, next: ['a2a-node tasks', again] }
}

/** An input as text to type; null when it is missing, too long or holds bytes. */
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

/** A result of an agent of this very node may have no encoding. */
function resultOf(result: unknown): RequestContents {
  try {
    return { result: encodeStored(result) }
  } catch {
    return {}
  }
}

/** Dependencies of new requests. */
interface MakeRequestDeps {
  readonly clock: Clock
  readonly hash: Hash
  readonly ids: IdSource
  readonly tasks: TaskTable
  readonly directory: Directory
  readonly requestStore: RequestStore
  readonly ledgerQuota: Pick<LedgerQuota, 'isFull'>
  readonly limits: { readonly defaultTtlMs: number }
}

/** Names a request, and opens its task and its record. @throws NodeError OVERLOADED when the ledger is full. */
export function makeRequest(deps: MakeRequestDeps, asking: Asking): RequestMaking {
  const { requestStore, clock, directory, limits } = deps
  const names = nameRequest(deps, asking)
  const { target, capability, allowRepeat = false, mayGoUnrecorded = false, mayQueue } = asking
  if (asking.lease !== undefined || (mayGoUnrecorded && !mayQueue && onlyReads(directory, target, capability)))
    return { asking, names, record: null }
  if (deps.ledgerQuota.isFull) throw NodeError.fromBody(ENDINGS.full.error)
  const isRepeatable = allowRepeat || isIdempotent(directory, target, capability)
  const record = freshRecord(asking, names, { now: clock.now(), ttlMs: limits.defaultTtlMs, isRepeatable })
  return { asking, names, record: new CallerRecord(requestStore, record, false) }
}

function nameRequest(
  { hash, ids, tasks }: MakeRequestDeps,
  { lease, names, sender, target, capability, description }: Asking
): RequestNames {
  const requestId = lease?.requestId ?? names?.requestId ?? ids.next('req')
  const attempt = lease?.attempt ?? 1
  const origin = { source: addressText(sender), target: addressText(target), requestId, attempt }
  const opening = {
    kind: 'request',
    role: 'caller',
    agent: addressText(target),
    capability: capability ?? '',
    description
  } as const
  return {
    requestId,
    attempt,
    correlationId: ids.next('thr'),
    taskId: lease === undefined ? tasks.open(opening, names?.taskId ?? taskIdOf(hash, origin)) : null
  }
}

/** A request from the ledger; null when its addresses are invalid. */
export function storedRequest(requestStore: RequestStore, record: RequestRecord): RequestMaking | null {
  const [sender, target] = [parseAddress(record.source), parseAddress(record.target)]
  if (sender === null || target === null) return null
  const { requestId, attempt, correlationId, taskId, capability, description, deadline, createdAt } = record
  const timeoutMs = deadline - createdAt
  const asking = {
    sender,
    target,
    capability,
    input: STORED,
    description,
    timeoutMs,
    mayQueue: false,
    ...record.asking
  }
  return {
    asking,
    names: { requestId, attempt, correlationId, taskId },
    record: new CallerRecord(requestStore, record, true)
  }
}

/** The record of a new request. */
function freshRecord(
  asking: Asking,
  names: RequestNames,
  { now, ttlMs, isRepeatable }: { readonly now: number; readonly ttlMs: number; readonly isRepeatable: boolean }
): RequestRecord {
  const { sender, target, capability, description, timeoutMs } = asking
  const { requestId, attempt, correlationId, taskId } = names
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
    asking: askingRecord(asking)
  }
}

function askingRecord({ justification, onBehalfOf, mayQueue, allowRepeat, conversation }: Asking): AskingRecord {
  return {
    ...(justification === undefined ? {} : { justification }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(allowRepeat === true ? { allowRepeat } : {}),
    ...(conversation === undefined ? {} : { hasConversation: true }),
    mayQueue
  }
}
