import { messageOf, NodeError } from '../../../kit/errors.js'
import type { PushHook } from '../../../domain/gateway/push.js'
import { CONFIG_RANGE, noticeRange, PUSH_KEYS } from '../../../domain/gateway/push-records.js'
import { decodeRecord } from '../../../domain/gateway/records.js'
import { ENDED_STATES, type GatewayEvent, type GatewayTask } from '../../../domain/gateway/task.js'
import type { Unsubscribe } from '../../../kit/events.js'
import type { Owners, PushConfigs, PushRequest } from '../../../ports/gateway.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Principal } from '../../../ports/node-api.js'
import type { PushAdmin } from '../../../ports/push-api.js'
import type { Webhooks } from '../../../ports/webhooks.js'
import { DeadLetters } from './dead-letters.js'
import { WebhookDelivery } from './delivery.js'
import { WebhookConfigs } from './configs.js'
import type { TaskLog } from '../task-log.js'
import { NodePushAdmin, type InTurn } from './admin.js'
import { ledgerEntries } from '../../ledger/scan.js'
import type { NodeDeps } from '../../dependencies.js'

/** What push notifications need of the gateway. */
export interface PushServiceDeps {
  readonly node: NodeDeps
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
