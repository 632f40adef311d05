import { messageOf, NodeError } from '../../../kit/errors.js'
import { type IdKind, MAX_CANDIDATES, resolveId } from '../../../kit/resolve-id.js'
import type { PushHook, PushNotice } from '../../../domain/gateway/push.js'
import {
  CONFIG_RANGE,
  noticeRange,
  PUSH_KEYS,
  NOTICE_RANGE,
  type NoticeName,
  noticeId,
  noticeNameOf
} from '../../../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import { ENDED_STATES, type GatewayEvent, type GatewayTask } from '../../../domain/gateway/task.js'
import type { Unsubscribe } from '../../../kit/events.js'
import type { Owners, PushConfigs, PushRequest } from '../../../ports/gateway.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Principal } from '../../../ports/node-api.js'
import type { PushAdmin, PushConfigInfo, PushList, PushNoticeInfo } from '../../../ports/push-api.js'
import type { Webhooks } from '../../../ports/webhooks.js'
import { DeadLetters } from './dead-letters.js'
import { WebhookDelivery } from './delivery.js'
import { LiveHooks, WebhookConfigs } from './configs.js'
import type { TaskLog } from '../task-log.js'
import { ledgerEntries } from '../../ledger/scan.js'
import type { NodeDeps } from '../../dependencies.js'

/** Dependencies of {@link PushService}. */
export interface PushServiceDeps {
  readonly node: Pick<NodeDeps, 'chance' | 'clock' | 'ids' | 'ledger' | 'telemetry'>
  readonly webhooks: Webhooks
  readonly owners: Owners
  readonly log: Pick<TaskLog, 'events'>
  readonly taskOf: (id: string) => GatewayTask | undefined
  /** @throws NodeError TASK_NOT_FOUND, FORBIDDEN */
  readonly find: (by: Principal, id: string, scope: 'read' | 'send') => GatewayTask
}

/** The push notifications of gateway tasks: their configs and their delivery. */
export class PushService implements PushConfigs {
  /** The calls for the operator. */
  readonly admin: PushAdmin
  readonly #deps: PushServiceDeps
  readonly #live = new LiveHooks()
  readonly #hooks: WebhookConfigs
  readonly #dead: DeadLetters
  readonly #delivery: WebhookDelivery
  /** Config changes run one at a time. */
  #turn: Promise<unknown> = Promise.resolve()
  /** True when there may be configs of revoked owners. */
  #mustLook = true
  #unlisten: Unsubscribe = () => {}

  constructor(deps: PushServiceDeps) {
    const { node, webhooks, log, taskOf, owners } = deps
    this.#deps = deps
    this.#hooks = new WebhookConfigs({ ledger: node.ledger, ids: node.ids, webhooks, live: this.#live })
    this.#dead = new DeadLetters(node.ledger)
    this.#delivery = new WebhookDelivery({
      ...{ node, webhooks, log, taskOf },
      isGone: (owner) => owners.isGone(owner),
      hooks: this.#hooks,
      live: this.#live,
      dead: this.#dead
    })
    const inTurn: InTurn = (run) => this.#inTurn(run)
    this.admin = new NodePushAdmin({
      node,
      taskOf,
      inTurn,
      hooks: this.#hooks,
      live: this.#live,
      dead: this.#dead,
      delivery: this.#delivery
    })
  }

  /**
   * Reads the configs and pending notifications before the first event, and starts delivery.
   * @throws NodeError STORE_DAMAGED
   */
  async start(tasks: Iterable<GatewayTask>): Promise<void> {
    for (const { id, owner, state } of tasks)
      if (!ENDED_STATES.has(state)) for (const hook of await this.#hooks.list(id)) this.#live.add(hook, owner)
    const ownerOf = (task: string): string => this.#deps.taskOf(task)?.owner ?? ''
    await this.#live.restore(this.#deps.node.ledger, ownerOf)
    await this.#dead.start(ownerOf)
    this.#unlisten = this.#deps.owners.onGone(() => {
      this.#mustLook = true
      void this.#endGone()
    })
    await this.#endGone()
    void this.#delivery.start()
  }

  /** Stops all delivery. */
  stop(): void {
    this.#unlisten()
    this.#delivery.stop()
  }

  /**
   * Adds the config of a task that is about to begin, if any. Returns the changes for its first commit.
   * @throws NodeError INVALID_INPUT, OVERLOADED
   */
  begin({ id, owner, createdAt }: GatewayTask, request: PushRequest | undefined): LedgerChange[] {
    if (request === undefined) return []
    const hook = this.#hooks.make(id, request)
    this.#live.refuseMore(owner)
    this.#live.add(hook, owner)
    return [this.#hooks.changeOf(hook), ...this.#live.firstNotice(hook, createdAt)]
  }

  /** The task did not begin. */
  notBegun({ id }: GatewayTask): void {
    this.#live.end(id)
  }

  /** The notifications of a task's events, for the commit of these. */
  noticesOf(task: GatewayTask, events: readonly GatewayEvent[]): LedgerChange[] {
    return this.#live.noticesOf(task, events)
  }

  /** Events of a task are durable: queues their notifications. */
  look({ id, owner, state }: GatewayTask): void {
    if (!this.#live.has(id)) return
    this.#live.placed(id)
    for (const hook of this.#live.of(id)) this.#delivery.queued(hook, owner)
    if (ENDED_STATES.has(state)) this.#live.end(id)
  }

  /** Removes the configs and notifications of a task. @throws NodeError from the ledger */
  async forget({ id }: GatewayTask): Promise<void> {
    await this.#inTurn(async () => {
      for (const hook of await this.#hooks.list(id)) await this.#drop(hook)
    })
  }

  /** Removes expired dead letters, and the configs of revoked owners. @throws NodeError from the ledger */
  async sweep(): Promise<void> {
    const { ledger, clock } = this.#deps.node
    const past = this.#dead.past(clock.now())
    if (past.length > 0) await ledger.commit(this.#dead.removal(past))
    this.#dead.forget(past)
    await this.#endGone()
  }

  async set(by: Principal, task: string, request: PushRequest): Promise<PushHook> {
    return await this.#inTurn(async () => {
      const hook = await this.#hooks.set(this.#deps.find(by, task, 'send'), request)
      // The task may have ended meanwhile.
      const { state, owner } = this.#deps.find(by, task, 'send')
      if (!ENDED_STATES.has(state)) this.#live.add(hook, owner)
      return hook
    })
  }

  async get(by: Principal, task: string, id: string): Promise<PushHook> {
    const found = (await this.list(by, task)).find((one) => one.id === id)
    if (found === undefined) throw new NodeError('TASK_NOT_FOUND', 'the task has no such push config')
    return found
  }

  async list(by: Principal, task: string): Promise<readonly PushHook[]> {
    this.#deps.find(by, task, 'read')
    return await this.#hooks.list(task)
  }

  async remove(by: Principal, task: string, id: string): Promise<void> {
    this.#deps.find(by, task, 'send')
    await this.#inTurn(async () => {
      const found = (await this.#hooks.list(task)).find((one) => one.id === id)
      if (found !== undefined) await this.#drop(found)
    })
  }

  /**
   * Deletes the configs of revoked owners. Never rejects: after a failed commit the next sweep tries again, and nothing
   * is sent.
   */
  async #endGone(): Promise<void> {
    const { node, taskOf, owners } = this.#deps
    await this.#inTurn(async () => {
      if (!this.#mustLook) return
      this.#mustLook = false
      for await (const { value } of ledgerEntries(node.ledger, CONFIG_RANGE)) {
        const hook = decodeRecord<PushHook>(value)
        if (hook !== null && owners.isGone(taskOf(hook.task)?.owner ?? '')) await this.#drop(hook)
      }
    }).catch((error: unknown) => {
      this.#mustLook = true
      node.telemetry.log('warn', 'webhooks of somebody who was revoked could not be deleted yet', {
        reason: messageOf(error)
      })
    })
  }

  /** Deletes the config first: a notification in preparation then finds none. */
  async #drop({ task, hook }: PushHook): Promise<void> {
    const { ledger } = this.#deps.node
    this.#live.drop(task, hook)
    await this.#delivery.end(hook)
    await ledger.commit([{ key: PUSH_KEYS.config(task, hook), value: null }])
    const keys: string[] = []
    for await (const { key } of ledgerEntries(ledger, noticeRange(hook))) keys.push(key)
    const dead = this.#dead.of(hook)
    const changes = [...keys.map((key) => ({ key, value: null })), ...this.#dead.removal(dead)]
    if (changes.length > 0) await ledger.commit(changes)
    this.#dead.forget(dead)
  }

  async #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run)
    this.#turn = turn.catch(() => {})
    return await turn
  }
}

/** The most rows of each kind in `a2a push ls`. */
const MAX_PUSH_ROWS = 1000
const NOTICE_IDS: IdKind = {
  one: 'pending or dead-lettered notification',
  several: 'notifications',
  prefix: 'hook_',
  code: 'NOTIFICATION_NOT_FOUND',
  list: 'a2a-node a2a push ls'
}
/** The id of a notification, or a prefix of one. */
const NAME = /^[A-Za-z0-9_-]{4,40}(?:\.\d{0,8})?$/

/** Runs a job when no other one of this kind runs. */
type InTurn = <T>(run: () => Promise<T>) => Promise<T>

/** Dependencies of {@link NodePushAdmin}. */
interface PushAdminDeps {
  readonly node: Pick<NodeDeps, 'ledger' | 'clock'>
  readonly hooks: WebhookConfigs
  readonly live: LiveHooks
  readonly dead: DeadLetters
  readonly delivery: WebhookDelivery
  readonly taskOf: (id: string) => GatewayTask | undefined
  readonly inTurn: InTurn
}

/** Notifications as the operator sees them. */
class NodePushAdmin implements PushAdmin {
  readonly #deps: PushAdminDeps

  constructor(deps: PushAdminDeps) {
    this.#deps = deps
  }

  async list(): Promise<PushList> {
    const { node, hooks, dead } = this.#deps
    const configs = await hooks.all(MAX_PUSH_ROWS + 1)
    const entries = await node.ledger.list({ ...NOTICE_RANGE, limit: MAX_PUSH_ROWS + 1 })
    const waiting: PushList['waiting'][number][] = []
    for (const { key, value } of entries.slice(0, MAX_PUSH_ROWS)) {
      const [name, notice] = [noticeNameOf(key), decodeRecord<PushNotice>(value)]
      if (name !== null && notice !== null)
        waiting.push({ ...(await this.#row(name, notice)), dueAt: timeText(notice.dueAt) })
    }
    const letters: PushList['dead'][number][] = []
    for (const id of [...dead.ids()].slice(0, MAX_PUSH_ROWS)) {
      const found = await dead.read(id)
      if (found !== null)
        letters.push({ ...(await this.#row(found, found.letter)), deadAt: timeText(found.letter.deadAt) })
    }
    const more = configs.length > MAX_PUSH_ROWS || entries.length > MAX_PUSH_ROWS || dead.size > MAX_PUSH_ROWS
    const rows = configs.slice(0, MAX_PUSH_ROWS).map((one) => this.#configRow(one))
    return { configs: rows, waiting, dead: letters, pushedOut: dead.pushedOut, more }
  }

  #configRow({ task, id, hook, url, version }: PushHook): PushConfigInfo {
    const { live, dead } = this.#deps
    return { task, id, hook, url: urlText(url), version, waiting: live.waiting(hook), givenUp: dead.of(hook).length }
  }

  async #row(
    name: NoticeName,
    { task, event, at, tries, reason, folded = 0 }: Omit<PushNotice, 'dueAt'>
  ): Promise<PushNoticeInfo> {
    const config = await this.#deps.hooks.find(task, name.hook)
    const url = config === null ? null : urlText(config.url)
    return {
      id: noticeId(name),
      hook: name.hook,
      task,
      url,
      event,
      at: timeText(at),
      tries,
      reason: reason ?? null,
      folded
    }
  }

  async retry(id: string | null): Promise<readonly string[]> {
    const { dead, delivery, inTurn } = this.#deps
    if (id === null) return await inTurn(() => this.#revive([...dead.ids()]))
    const found = NAME.test(id)
      ? [...[...dead.ids()].filter((one) => one.startsWith(id)), ...(await this.#waiting(id))]
      : []
    const one = resolveId(id, new Map(found.map((each) => [each, each])), NOTICE_IDS)
    if (dead.has(one)) return await inTurn(() => this.#revive([one]))
    delivery.hurry(one.slice(0, one.lastIndexOf('.')))
    return [one]
  }

  /** Ids of pending notifications that begin with `start`; not all of them. */
  async #waiting(start: string): Promise<string[]> {
    const { ledger } = this.#deps.node
    const [hook = '', generation] = start.split('.')
    const from = `${NOTICE_RANGE.from}${hook}${generation === undefined ? '' : '/'}`
    const ids: string[] = []
    for await (const { key } of ledgerEntries(ledger, { from, to: `${from}~` })) {
      const name = noticeNameOf(key)
      if (name !== null && noticeId(name).startsWith(start)) ids.push(noticeId(name))
      if (ids.length > MAX_CANDIDATES && !ids.includes(start)) break
    }
    return ids
  }

  /** Makes dead letters pending again, as if never tried. */
  async #revive(ids: readonly string[]): Promise<readonly string[]> {
    const { node, dead, hooks, live, delivery, taskOf } = this.#deps
    const revived: string[] = []
    for (const id of ids) {
      const found = await dead.read(id)
      if (found === null || (await hooks.find(found.letter.task, found.hook)) === null) continue
      const { task, event, at, folded = 0 } = found.letter
      const owner = taskOf(task)?.owner ?? ''
      // Pending notifications of the hook come first.
      if (!live.mayRevive({ hook: found.hook, owner })) continue
      const notice: PushNotice = {
        task,
        event,
        at,
        tries: 0,
        dueAt: node.clock.now(),
        ...(folded === 0 ? {} : { folded })
      }
      const key = PUSH_KEYS.notice(found.hook, found.generation)
      // Count it first: delivery may end before the commit returns.
      live.waitsAgain(found, notice, owner)
      try {
        await node.ledger.commit([{ key, value: encodeRecord(notice) }, ...dead.removal([id])])
      } catch (error) {
        live.settled(found.hook)
        throw error
      }
      dead.forget([id])
      delivery.queued(found.hook, owner)
      delivery.hurry(found.hook)
      revived.push(id)
    }
    return revived
  }
}

/** Without query and fragment, which may hold a secret. */
function urlText(url: string): string {
  return url.replace(/[?#].*$/s, '')
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
