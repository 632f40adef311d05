import { NodeError } from '../kit/errors.js'
import type { IdSource } from '../kit/ids.js'
import { asksFor, MAX_PUSH_CONFIGS, pushEventOf, type PushHook, type PushNotice } from '../domain/gateway/push.js'
import { CONFIG_RANGE, configRange, PUSH_KEYS } from '../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../domain/gateway/records.js'
import type { GatewayEvent, GatewayTask } from '../domain/gateway/task.js'
import type { PushRequest } from '../ports/gateway.js'
import type { Ledger, LedgerChange } from '../ports/ledger.js'
import type { Webhooks } from '../ports/webhooks.js'

/** Push configs of tasks that have not ended, all together; then no more are taken. */
export const MAX_LIVE_HOOKS = 20_000

/** What keeping push configs needs. */
export interface GatewayHooksParts {
  readonly ledger: Ledger
  readonly ids: IdSource
  readonly webhooks: Pick<Webhooks, 'refusal'>
}

type LiveHook = Pick<PushHook, 'hook' | 'version'> & { readonly events?: readonly string[] }

/** The push configs of tasks. In memory is what the events of tasks that have not ended must know of them. */
export class GatewayHooks {
  readonly #parts: GatewayHooksParts
  /** By task. */
  readonly #live = new Map<string, Map<string, LiveHook>>()
  #count = 0

  constructor(parts: GatewayHooksParts) {
    this.#parts = parts
  }

  /** Has a task such as are told of its events? */
  has(task: string): boolean {
    return this.#live.has(task)
  }

  /** Those of a task that has not ended. */
  of(task: string): Iterable<string> {
    return this.#live.get(task)?.keys() ?? []
  }

  /** Reads those of a task that has not ended, after a start. @throws NodeError STORE_DAMAGED */
  async open(task: string): Promise<void> {
    for (const hook of await this.list(task)) this.add(hook)
  }

  /** Its events are told from now on. */
  add({ hook, task, version, events }: PushHook): void {
    const hooks = this.#live.get(task) ?? new Map<string, LiveHook>()
    if (!hooks.has(hook)) this.#count++
    this.#live.set(task, hooks.set(hook, { hook, version, ...(events === undefined ? {} : { events }) }))
  }

  /** No more of its events are told; null: of none of the task's. */
  drop(task: string, hook: string | null): void {
    const hooks = this.#live.get(task)
    if (hooks === undefined) return
    const gone = hook === null ? hooks.size : Number(hooks.delete(hook))
    this.#count -= gone
    if (hook === null || hooks.size === 0) this.#live.delete(task)
  }

  /** A config as it would be kept. @throws NodeError INVALID_INPUT, OVERLOADED */
  make(task: string, { target, version }: PushRequest): PushHook {
    const { ids, webhooks } = this.#parts
    const refusal = webhooks.refusal(target.url)
    if (refusal !== null) throw new NodeError('INVALID_INPUT', `url: nothing is sent there: ${refusal}`)
    if (this.#count >= MAX_LIVE_HOOKS)
      throw new NodeError('OVERLOADED', `this node has ${MAX_LIVE_HOOKS} push configs of tasks that have not ended`)
    // Clients of 0.3 that name none look for the one that is called like its task.
    const id = target.id ?? (version === '0.3' ? task : ids.next('push'))
    return { ...target, id, hook: ids.next('hook'), task, version }
  }

  /** What keeps a config. */
  changeOf(hook: PushHook): LedgerChange {
    return { key: PUSH_KEYS.config(hook.task, hook.hook), value: encodeRecord(hook) }
  }

  /** A config in the place of the one with its id. @throws NodeError OVERLOADED, and what {@link make} throws */
  async set(task: string, request: PushRequest): Promise<PushHook> {
    const fresh = this.make(task, request)
    const all = await this.list(task)
    const before = all.find(({ id }) => id === fresh.id)
    if (before === undefined && all.length >= MAX_PUSH_CONFIGS)
      throw new NodeError('OVERLOADED', `the task has ${MAX_PUSH_CONFIGS} push configs: delete one first`)
    const hook = before === undefined ? fresh : { ...fresh, hook: before.hook }
    await this.#parts.ledger.commit([this.changeOf(hook)])
    return hook
  }

  /** The configs of a task. */
  async list(task: string): Promise<readonly PushHook[]> {
    const entries = await this.#parts.ledger.list({ ...configRange(task), limit: MAX_PUSH_CONFIGS })
    return entries.flatMap(({ value }) => decodeRecord<PushHook>(value) ?? [])
  }

  /** The configs of all tasks, as many as are asked for. */
  async all(limit: number): Promise<readonly PushHook[]> {
    const entries = await this.#parts.ledger.list({ ...CONFIG_RANGE, limit })
    return entries.flatMap(({ value }) => decodeRecord<PushHook>(value) ?? [])
  }

  /** A config by what the node calls it; null: it was deleted. */
  async find(task: string, hook: string): Promise<PushHook | null> {
    const bytes = await this.#parts.ledger.get(PUSH_KEYS.config(task, hook))
    return bytes === null ? null : decodeRecord<PushHook>(bytes)
  }

  /** What tells the hooks of a task of its events, to go into the commit of these. */
  noticesOf({ id }: GatewayTask, events: readonly GatewayEvent[]): LedgerChange[] {
    const hooks = this.#live.get(id)
    if (hooks === undefined) return []
    return events.flatMap((event) =>
      [...hooks.values()].flatMap((one) => {
        const name = pushEventOf(event, one.version)
        return name === null || !asksFor(one, name) ? [] : [noticeChange(id, { ...event, name, hook: one.hook })]
      })
    )
  }

  /** What tells the hook of a new task that it was begun. */
  firstNotice(hook: PushHook, at: number): LedgerChange[] {
    const name = 'task.submitted'
    return asksFor(hook, name) ? [noticeChange(hook.task, { generation: 1, at, name, hook: hook.hook })] : []
  }
}

function noticeChange(
  task: string,
  { generation, at, name, hook }: { readonly generation: number; readonly at: number; readonly name: string; readonly hook: string }
): LedgerChange {
  const notice: PushNotice = { task, event: name, at, tries: 0, dueAt: at }
  return { key: PUSH_KEYS.notice(hook, generation), value: encodeRecord(notice), isNew: true }
}
