import { NodeError } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { asksFor, MAX_PUSH_CONFIGS, pushEventOf, type PushHook, type PushNotice } from '../../../domain/gateway/push.js'
import { CONFIG_RANGE, configRange, NOTICE_RANGE, noticeNameOf, type NoticeName, PUSH_KEYS } from '../../../domain/gateway/push-records.js'
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

/** What the events of tasks that have not ended must know of their push configs, and how many notifications wait for each: in memory. */
export class LiveHooks {
  /** By task. */
  readonly #live = new Map<string, Map<string, LiveHook>>()
  readonly #shares = emptyShares()

  /** Has a task such as are told of its events? */
  has(task: string): boolean {
    return this.#live.has(task)
  }

  /** Those of a task that has not ended. */
  of(task: string): Iterable<string> {
    return this.#live.get(task)?.keys() ?? []
  }

  /** Reads what waits, after a start. `ownerOf`: of a task. @throws NodeError STORE_DAMAGED */
  async restore(ledger: Pick<Ledger, 'list'>, ownerOf: (task: string) => string): Promise<void> {
    for await (const { key, value } of ledgerEntries(ledger, NOTICE_RANGE)) {
      const [name, notice] = [noticeNameOf(key), decodeRecord<PushNotice>(value)]
      if (name !== null && notice !== null) this.waitsAgain(name, notice, ownerOf(notice.task))
    }
  }

  /** Its events are told from now on. */
  add({ hook, task, version, events }: PushHook, owner: string): void {
    const hooks = this.#live.get(task) ?? new Map<string, LiveHook>()
    openHook(this.#shares, { hook, owner })
    this.#live.set(task, hooks.set(hook, { hook, version, ...(events === undefined ? {} : { events }) }))
  }

  /** No more events of a task are told. */
  end(task: string): void {
    for (const hook of this.of(task)) endHook(this.#shares, hook)
    this.#live.delete(task)
  }

  /** Nothing is told to it any more, also not what waits. */
  drop(task: string, hook: string): void {
    const hooks = this.#live.get(task)
    hooks?.delete(hook)
    if (hooks?.size === 0) this.#live.delete(task)
    dropHook(this.#shares, hook)
  }

  /** How many wait for it. */
  waiting(hook: string): number {
    return waitingOf(this.#shares, hook)
  }

  /** May one that was given up wait again? */
  mayRevive(named: OwnedHook): boolean {
    return mayRevive(this.#shares, named)
  }

  /** A notification that no event placed is on record. */
  waitsAgain({ hook, generation }: NoticeName, { folded = 0 }: Pick<PushNotice, 'folded'>, owner: string): void {
    restoreNotice(this.#shares, { hook, owner }, { generation, folded })
  }

  /** One that waited was taken, or given up. */
  settled(hook: string): void {
    settleNotice(this.#shares, hook)
  }

  /** @throws NodeError OVERLOADED when a caller gets no further config */
  refuseMore(owner: string): void {
    const fault = shareFault(this.#shares, owner)
    if (fault !== null) throw new NodeError('OVERLOADED', fault, { retryable: true })
  }

  /** What tells the hooks of a task of its events, to go into the commit of these. Said again, the commit before is not there. */
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

  /** What tells the hook of a new task that it was begun. */
  firstNotice(hook: PushHook, at: number): LedgerChange[] {
    const name = 'task.submitted'
    return asksFor(hook, name) ? this.#place(hook.task, { generation: 1, at, name, hook: hook.hook }) : []
  }

  /** The commit of the events of a task is on record. */
  placed(task: string): void {
    for (const hook of this.of(task)) keepPlaced(this.#shares, hook)
  }

  /** Where too many wait, the newest gives its place to this one, which tells of all. */
  #place(task: string, { hook, generation, at, name }: Occasion): LedgerChange[] {
    const { over, folded } = placeNotice(this.#shares, hook, generation)
    const notice: PushNotice = { task, event: name, at, tries: 0, dueAt: at, ...(folded === 0 ? {} : { folded }) }
    const change = { key: PUSH_KEYS.notice(hook, generation), value: encodeRecord(notice), isNew: true }
    return over === null ? [change] : [{ key: PUSH_KEYS.notice(hook, over), value: null }, change]
  }
}

/** What keeping push configs needs. */
export interface WebhookConfigsDeps {
  readonly ledger: Ledger
  readonly ids: IdSource
  readonly webhooks: Pick<Webhooks, 'refusal'>
  readonly live: Pick<LiveHooks, 'refuseMore'>
}

/** The push configs of tasks, as the ledger keeps them. */
export class WebhookConfigs {
  readonly #deps: WebhookConfigsDeps

  constructor(deps: WebhookConfigsDeps) {
    this.#deps = deps
  }

  /** A config as it would be kept. @throws NodeError INVALID_INPUT */
  make(task: string, { target, version }: PushRequest): PushHook {
    const { ids, webhooks } = this.#deps
    const refusal = webhooks.refusal(target.url)
    if (refusal !== null) throw new NodeError('INVALID_INPUT', `url: nothing is sent there: ${refusal}`)
    // Clients of 0.3 that name none look for the one that is called like its task.
    const id = target.id ?? (version === '0.3' ? task : ids.next('push'))
    return { ...target, id, hook: ids.next('hook'), task, version }
  }

  /** What keeps a config. */
  changeOf(hook: PushHook): LedgerChange {
    return { key: PUSH_KEYS.config(hook.task, hook.hook), value: encodeRecord(hook) }
  }

  /** A config in the place of the one with its id. @throws NodeError OVERLOADED, and what {@link make} throws */
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

  /** The configs of all tasks, as many as are asked for. */
  async all(limit: number): Promise<readonly PushHook[]> {
    const entries = await this.#deps.ledger.list({ ...CONFIG_RANGE, limit })
    return entries.flatMap(({ value }) => decodeRecord<PushHook>(value) ?? [])
  }

  /** A config by what the node calls it; null: it was deleted. */
  async find(task: string, hook: string): Promise<PushHook | null> {
    const bytes = await this.#deps.ledger.get(PUSH_KEYS.config(task, hook))
    return bytes === null ? null : decodeRecord<PushHook>(bytes)
  }
}

/** What a hook is told of. */
interface Occasion extends NoticeName {
  readonly at: number
  readonly name: string
}
