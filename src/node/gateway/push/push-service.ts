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
import { WebhookConfigs } from './configs.js'
import type { TaskLog } from '../task-log.js'
import { ledgerEntries } from '../../ledger/scan.js'
import type { NodeDeps } from '../../dependencies.js'

/** What push notifications need of the gateway. */
export interface PushServiceDeps {
  readonly node: Pick<NodeDeps, 'chance' | 'clock' | 'ids' | 'ledger' | 'telemetry'>
  readonly webhooks: Webhooks
  readonly owners: Owners
  readonly log: Pick<TaskLog, 'events'>
  readonly taskOf: (id: string) => GatewayTask | undefined
  /** @throws NodeError TASK_NOT_FOUND, FORBIDDEN */
  readonly find: (by: Principal, id: string, scope: 'read' | 'send') => GatewayTask
}

/** The push notifications of gateway tasks: who wants to be told, and that it is. */
export class PushService implements PushConfigs {
  /** For people. */
  readonly admin: PushAdmin
  readonly #deps: PushServiceDeps
  readonly #hooks: WebhookConfigs
  readonly #dead: DeadLetters
  readonly #delivery: WebhookDelivery
  /** Configs are changed one after the other. */
  #turn: Promise<unknown> = Promise.resolve()
  /** May there be configs of somebody who is gone? */
  #mustLook = true
  #unlisten: Unsubscribe = () => {}

  constructor(deps: PushServiceDeps) {
    const { node, webhooks, log, taskOf, owners } = deps
    this.#deps = deps
    this.#hooks = new WebhookConfigs({ ledger: node.ledger, ids: node.ids, webhooks })
    this.#dead = new DeadLetters(node.ledger)
    this.#delivery = new WebhookDelivery({
      ...{ node, webhooks, log, taskOf },
      isGone: (owner) => owners.isGone(owner),
      hooks: this.#hooks,
      dead: this.#dead
    })
    const inTurn: InTurn = (run) => this.#inTurn(run)
    this.admin = new NodePushAdmin({ node, taskOf, inTurn, hooks: this.#hooks, dead: this.#dead, delivery: this.#delivery })
  }

  /** Reads what must be known before the first event, and begins to deliver what waits. @throws NodeError STORE_DAMAGED */
  async start(tasks: Iterable<GatewayTask>): Promise<void> {
    for (const task of tasks) if (!ENDED_STATES.has(task.state)) await this.#hooks.open(task)
    const ownerOf = (task: string): string => this.#deps.taskOf(task)?.owner ?? ''
    await this.#hooks.restore(ownerOf)
    await this.#dead.start(ownerOf)
    this.#unlisten = this.#deps.owners.onGone(() => {
      this.#mustLook = true
      void this.#endGone()
    })
    await this.#endGone()
    void this.#delivery.start()
  }

  /** Sends nothing any more. */
  stop(): void {
    this.#unlisten()
    this.#delivery.stop()
  }

  /** The config of a task that is about to begin, if it has one, and what goes into the commit that begins it. @throws NodeError INVALID_INPUT, OVERLOADED */
  begin({ id, owner, createdAt }: GatewayTask, request: PushRequest | undefined): LedgerChange[] {
    if (request === undefined) return []
    const hook = this.#hooks.make(id, request)
    this.#hooks.refuseMore(owner)
    this.#hooks.add(hook, owner)
    return [this.#hooks.changeOf(hook), ...this.#hooks.firstNotice(hook, createdAt)]
  }

  /** It did not begin. */
  notBegun({ id }: GatewayTask): void {
    this.#hooks.end(id)
  }

  /** What tells of events of a task, to go into their commit. */
  noticesOf(task: GatewayTask, events: readonly GatewayEvent[]): LedgerChange[] {
    return this.#hooks.noticesOf(task, events)
  }

  /** What happened to a task is durable. */
  look({ id, owner, state }: GatewayTask): void {
    if (!this.#hooks.has(id)) return
    this.#hooks.placed(id)
    for (const hook of this.#hooks.of(id)) this.#delivery.queued(hook, owner)
    if (ENDED_STATES.has(state)) this.#hooks.end(id)
  }

  /** A task is let go of: what is not delivered yet is not any more. @throws NodeError what the ledger refuses */
  async forget({ id }: GatewayTask): Promise<void> {
    await this.#inTurn(async () => {
      for (const hook of await this.#hooks.list(id)) await this.#drop(hook)
    })
  }

  /** Lets go of what nobody took long ago. @throws NodeError what the ledger refuses */
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
      // It may have ended meanwhile.
      const { state, owner } = this.#deps.find(by, task, 'send')
      if (!ENDED_STATES.has(state)) this.#hooks.add(hook, owner)
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

  /** Deletes the configs of those who are gone. Never rejects: what the ledger does not take now it does at the next sweep, and nothing is sent. */
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
      node.telemetry.log('warn', 'webhooks of somebody who was revoked could not be deleted yet', { reason: messageOf(error) })
    })
  }

  /** Its config goes first: whatever is being written for it meanwhile finds none. */
  async #drop({ task, hook }: PushHook): Promise<void> {
    const { ledger } = this.#deps.node
    this.#hooks.drop(task, hook)
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

/** Rows of each kind that `a2a push ls` shows at most. */
const MAX_PUSH_ROWS = 1000
const NOTICE_IDS: IdKind = {
  one: 'pending or dead-lettered notification',
  several: 'notifications',
  prefix: 'hook_',
  code: 'NOTIFICATION_NOT_FOUND',
  list: 'a2a-node a2a push ls'
}
/** An id of a notification, or the beginning of one. */
const NAME = /^[A-Za-z0-9_-]{4,40}(?:\.\d{0,8})?$/

/** Runs what must not happen at the same time as something else of the kind. */
type InTurn = <T>(run: () => Promise<T>) => Promise<T>

/** What showing and retrying notifications needs. */
interface PushAdminDeps {
  readonly node: Pick<NodeDeps, 'ledger' | 'clock'>
  readonly hooks: WebhookConfigs
  readonly dead: DeadLetters
  readonly delivery: WebhookDelivery
  readonly taskOf: (id: string) => GatewayTask | undefined
  readonly inTurn: InTurn
}

/** Notifications as people see them. */
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
      if (name !== null && notice !== null) waiting.push({ ...(await this.#row(name, notice)), dueAt: timeText(notice.dueAt) })
    }
    const letters: PushList['dead'][number][] = []
    for (const id of [...dead.ids()].slice(0, MAX_PUSH_ROWS)) {
      const found = await dead.read(id)
      if (found !== null) letters.push({ ...(await this.#row(found, found.letter)), deadAt: timeText(found.letter.deadAt) })
    }
    const more = configs.length > MAX_PUSH_ROWS || entries.length > MAX_PUSH_ROWS || dead.size > MAX_PUSH_ROWS
    const rows = configs.slice(0, MAX_PUSH_ROWS).map((one) => this.#configRow(one))
    return { configs: rows, waiting, dead: letters, pushedOut: dead.pushedOut, more }
  }

  #configRow({ task, id, hook, url, version }: PushHook): PushConfigInfo {
    const { hooks, dead } = this.#deps
    return { task, id, hook, url: urlText(url), version, waiting: hooks.waiting(hook), givenUp: dead.of(hook).length }
  }

  async #row(name: NoticeName, { task, event, at, tries, reason, folded = 0 }: Omit<PushNotice, 'dueAt'>): Promise<PushNoticeInfo> {
    const config = await this.#deps.hooks.find(task, name.hook)
    const url = config === null ? null : urlText(config.url)
    return { id: noticeId(name), hook: name.hook, task, url, event, at: timeText(at), tries, reason: reason ?? null, folded }
  }

  async retry(id: string | null): Promise<readonly string[]> {
    const { dead, delivery, inTurn } = this.#deps
    if (id === null) return await inTurn(() => this.#revive([...dead.ids()]))
    const found = NAME.test(id) ? [...[...dead.ids()].filter((one) => one.startsWith(id)), ...(await this.#waiting(id))] : []
    const one = resolveId(id, new Map(found.map((each) => [each, each])), NOTICE_IDS)
    if (dead.has(one)) return await inTurn(() => this.#revive([one]))
    delivery.hurry(one.slice(0, one.lastIndexOf('.')))
    return [one]
  }

  /** Ids of those that wait and begin so, some of them. */
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

  /** Those that nobody took wait again, as if they had never been tried. */
  async #revive(ids: readonly string[]): Promise<readonly string[]> {
    const { node, dead, hooks, delivery, taskOf } = this.#deps
    const revived: string[] = []
    for (const id of ids) {
      const found = await dead.read(id)
      if (found === null || (await hooks.find(found.letter.task, found.hook)) === null) continue
      const { task, event, at, folded = 0 } = found.letter
      const owner = taskOf(task)?.owner ?? ''
      // What waits there already comes first.
      if (!hooks.mayRevive({ hook: found.hook, owner })) continue
      const notice: PushNotice = { task, event, at, tries: 0, dueAt: node.clock.now(), ...(folded === 0 ? {} : { folded }) }
      const key = PUSH_KEYS.notice(found.hook, found.generation)
      // Counted first: it may be taken before this goes on.
      hooks.waitsAgain(found, notice, owner)
      try {
        await node.ledger.commit([{ key, value: encodeRecord(notice) }, ...dead.removal([id])])
      } catch (error) {
        hooks.settled(found.hook)
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

/** What stands behind it may be a secret. */
function urlText(url: string): string {
  return url.replace(/[?#].*$/s, '')
}

function timeText(at: number): string {
  return new Date(at).toISOString()
}
