import { NodeError } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { asksFor, MAX_PUSH_CONFIGS, pushEventOf, type PushHook, type PushNotice } from '../../../domain/gateway/push.js'
import {
  CONFIG_RANGE,
  configRange,
  NOTICE_RANGE,
  noticeNameOf,
  type NoticeName,
  PUSH_KEYS
} from '../../../domain/gateway/push-records.js'
import {
  dropHook,
  emptyShares,
  endHook,
  keepPlaced,
  mayRevive,
  openHook,
  type OwnedHook,
  placeNotice,
  restoreNotice,
  settleNotice,
  shareFault,
  undoPlaced,
  waitingOf
} from '../../../domain/gateway/push-shares.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import type { GatewayEvent, GatewayTask } from '../../../domain/gateway/task.js'
import type { PushRequest } from '../../../ports/gateway.js'
import type { Ledger, LedgerChange } from '../../../ports/ledger.js'
import type { Webhooks } from '../../../ports/webhooks.js'
import { ledgerEntries } from '../../ledger/scan.js'

type LiveHook = Pick<PushHook, 'hook' | 'version'> & { readonly events?: readonly string[] }

/** The push configs of tasks that have not ended, and the number of pending notifications of each: in memory. */
export class LiveHooks {
  /** By task. */
  readonly #live = new Map<string, Map<string, LiveHook>>()
  readonly #shares = emptyShares()

  /** True for a task with live push configs. */
  has(task: string): boolean {
    return this.#live.has(task)
  }

  /** The hooks of a task that has not ended. */
  of(task: string): Iterable<string> {
    return this.#live.get(task)?.keys() ?? []
  }

  /** Reads the pending notifications after a start. `ownerOf`: owner of a task. @throws NodeError STORE_DAMAGED */
  async restore(ledger: Pick<Ledger, 'list'>, ownerOf: (task: string) => string): Promise<void> {
    for await (const { key, value } of ledgerEntries(ledger, NOTICE_RANGE)) {
      const [name, notice] = [noticeNameOf(key), decodeRecord<PushNotice>(value)]
      if (name !== null && notice !== null) this.waitsAgain(name, notice, ownerOf(notice.task))
    }
  }

  /** Adds a config: it gets a notification of each later event. */
  add({ hook, task, version, events }: PushHook, owner: string): void {
    const hooks = this.#live.get(task) ?? new Map<string, LiveHook>()
    openHook(this.#shares, { hook, owner })
    this.#live.set(task, hooks.set(hook, { hook, version, ...(events === undefined ? {} : { events }) }))
  }

  /** Ends the configs of a task: they get no further events. */
  end(task: string): void {
    for (const hook of this.of(task)) endHook(this.#shares, hook)
    this.#live.delete(task)
  }

  /** Deletes a config with its pending notifications. */
  drop(task: string, hook: string): void {
    const hooks = this.#live.get(task)
    hooks?.delete(hook)
    if (hooks?.size === 0) this.#live.delete(task)
    dropHook(this.#shares, hook)
  }

  /** The number of pending notifications of a hook. */
  waiting(hook: string): number {
    return waitingOf(this.#shares, hook)
  }

  /** True when a dead-lettered notification may become pending again. */
  mayRevive(named: OwnedHook): boolean {
    return mayRevive(this.#shares, named)
  }

  /** A notification is recorded outside of a commit of events. */
  waitsAgain({ hook, generation }: NoticeName, { folded = 0 }: Pick<PushNotice, 'folded'>, owner: string): void {
    restoreNotice(this.#shares, { hook, owner }, { generation, folded })
  }

  /** A pending notification was delivered or given up. */
  settled(hook: string): void {
    settleNotice(this.#shares, hook)
  }

  /** @throws NodeError OVERLOADED when the caller may have no further config */
  refuseMore(owner: string): void {
    const fault = shareFault(this.#shares, owner)
    if (fault !== null) throw new NodeError('OVERLOADED', fault, { retryable: true })
  }

  /**
   * The notifications of events for a task's hooks, for the commit of these events. A repeated call replaces the last
   * one's.
   */
  noticesOf({ id }: GatewayTask, events: readonly GatewayEvent[]): LedgerChange[] {
    const hooks = this.#live.get(id)
    if (hooks === undefined) return []
    for (const hook of hooks.keys()) undoPlaced(this.#shares, hook)
    return events.flatMap((event) =>
      [...hooks.values()].flatMap((one) => {
        const name = pushEventOf(event, one.version)
        return name === null || !asksFor(one, name) ? [] : this.#place(id, { ...event, name, hook: one.hook })
      })
    )
  }

  /** The notification that a new task was begun. */
  firstNotice(hook: PushHook, at: number): LedgerChange[] {
    const name = 'task.submitted'
    return asksFor(hook, name) ? this.#place(hook.task, { generation: 1, at, name, hook: hook.hook }) : []
  }

  /** The commit of a task's events is durable. */
  placed(task: string): void {
    for (const hook of this.of(task)) keepPlaced(this.#shares, hook)
  }

  /** With too many pending, the newest is replaced by this one, which covers both. */
  #place(task: string, { hook, generation, at, name }: Occasion): LedgerChange[] {
    const { over, folded } = placeNotice(this.#shares, hook, generation)
    const notice: PushNotice = { task, event: name, at, tries: 0, dueAt: at, ...(folded === 0 ? {} : { folded }) }
    const change = { key: PUSH_KEYS.notice(hook, generation), value: encodeRecord(notice), isNew: true }
    return over === null ? [change] : [{ key: PUSH_KEYS.notice(hook, over), value: null }, change]
  }
}

/** Dependencies of {@link WebhookConfigs}. */
export interface WebhookConfigsDeps {
  readonly ledger: Ledger
  readonly ids: IdSource
  readonly webhooks: Pick<Webhooks, 'refusal'>
  readonly live: Pick<LiveHooks, 'refuseMore'>
}

/** The push configs of tasks in the ledger. */
export class WebhookConfigs {
  readonly #deps: WebhookConfigsDeps

  constructor(deps: WebhookConfigsDeps) {
    this.#deps = deps
  }

  /** Makes a config from a request. @throws NodeError INVALID_INPUT */
  make(task: string, { target, version }: PushRequest): PushHook {
    const { ids, webhooks } = this.#deps
    const refusal = webhooks.refusal(target.url)
    if (refusal !== null) throw new NodeError('INVALID_INPUT', `url: nothing is sent there: ${refusal}`)
    // Clients of 0.3 that name no id look for a config with the id of its task.
    const id = target.id ?? (version === '0.3' ? task : ids.next('push'))
    return { ...target, id, hook: ids.next('hook'), task, version }
  }

  /** The ledger change that stores a config. */
  changeOf(hook: PushHook): LedgerChange {
    return { key: PUSH_KEYS.config(hook.task, hook.hook), value: encodeRecord(hook) }
  }

  /** Stores a config; it replaces the one with its id. @throws NodeError OVERLOADED, and the errors of {@link make} */
  async set({ id: task, owner }: Pick<GatewayTask, 'id' | 'owner'>, request: PushRequest): Promise<PushHook> {
    const fresh = this.make(task, request)
    const all = await this.list(task)
    const before = all.find(({ id }) => id === fresh.id)
    if (before === undefined) this.#deps.live.refuseMore(owner)
    if (before === undefined && all.length >= MAX_PUSH_CONFIGS)
      throw new NodeError('OVERLOADED', `the task has ${MAX_PUSH_CONFIGS} push configs: delete one first`)
    const hook = before === undefined ? fresh : { ...fresh, hook: before.hook }
    await this.#deps.ledger.commit([this.changeOf(hook)])
    return hook
  }

  /** The configs of a task. */
  async list(task: string): Promise<readonly PushHook[]> {
    const entries = await this.#deps.ledger.list({ ...configRange(task), limit: MAX_PUSH_CONFIGS })
    return entries.flatMap(({ value }) => decodeRecord<PushHook>(value) ?? [])
  }

  /** The configs of all tasks, at most `limit`. */
  async all(limit: number): Promise<readonly PushHook[]> {
    const entries = await this.#deps.ledger.list({ ...CONFIG_RANGE, limit })
    return entries.flatMap(({ value }) => decodeRecord<PushHook>(value) ?? [])
  }

  /** A config by the node's id of it; null when it was deleted. */
  async find(task: string, hook: string): Promise<PushHook | null> {
    const bytes = await this.#deps.ledger.get(PUSH_KEYS.config(task, hook))
    return bytes === null ? null : decodeRecord<PushHook>(bytes)
  }
}

/** An event for a hook. */
interface Occasion extends NoticeName {
  readonly at: number
  readonly name: string
}
