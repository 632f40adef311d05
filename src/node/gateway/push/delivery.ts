import { type Timer, wait } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { type PushHook, type PushNotice } from '../../../domain/gateway/push.js'
import {
  emptyOutbox,
  isFuture,
  type PushEffect,
  type PushInput,
  stepPush
} from '../../../domain/gateway/push-outbox.js'
import {
  NOTICE_RANGE,
  type NoticeName,
  noticeId,
  noticeNameOf,
  noticeRange,
  PUSH_KEYS
} from '../../../domain/gateway/push-records.js'
import { judgePush, type PushVerdict } from '../../../domain/gateway/push-verdict.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import { foldedSnapshot, addToFold, emptyFold, type TaskFold } from '../../../domain/gateway/task-fold.js'
import { ENDED_STATES, type GatewayTask } from '../../../domain/gateway/task.js'
import type { LedgerChange } from '../../../ports/ledger.js'
import type { Webhooks } from '../../../ports/webhooks.js'
import { Abort } from '../../../kit/abort.js'
import type { DeadLetters } from './dead-letters.js'
import type { LiveHooks, WebhookConfigs } from './configs.js'
import type { TaskLog } from '../task-log.js'
import type { NodeDeps } from '../../dependencies.js'

/** Delay before a retry after a failure within this node, in milliseconds. */
const AGAIN_MS = 1000

/** Dependencies of {@link WebhookDelivery}. */
export interface WebhookDeliveryDeps {
  readonly node: Pick<NodeDeps, 'clock' | 'ledger' | 'telemetry' | 'chance'>
  readonly webhooks: Webhooks
  readonly hooks: WebhookConfigs
  readonly live: Pick<LiveHooks, 'settled' | 'drop'>
  readonly dead: DeadLetters
  readonly log: Pick<TaskLog, 'events'>
  readonly taskOf: (id: string) => GatewayTask | undefined
  readonly isGone: (owner: string) => boolean
}

/** The oldest notification of a hook. */
interface NoticeHead extends NoticeName {
  readonly notice: PushNotice
}

/** Delivers notifications from the ledger to their hooks, each hook's in order, until they are accepted or given up. */
export class WebhookDelivery {
  readonly #deps: WebhookDeliveryDeps
  readonly #outbound = emptyOutbox()
  readonly #busy = new Map<string, { readonly stop: Abort; readonly done: Promise<void> }>()
  readonly #stopped = new Abort()
  readonly #snapshots: TaskSnapshots
  #timer: Timer | null = null
  /** Bodies are made one at a time: each may take much of the log into memory. */
  #making: Promise<unknown> = Promise.resolve()

  constructor(deps: WebhookDeliveryDeps) {
    this.#deps = deps
    this.#snapshots = new TaskSnapshots(deps.log)
  }

  /**
   * Finds the pending notifications, hook by hook, and delivers them. Resolves when it has seen all hooks. Never
   * rejects.
   */
  async start(): Promise<void> {
    const { ledger, telemetry } = this.#deps.node
    for (let { from } = NOTICE_RANGE; !this.#stopped.aborted; ) {
      try {
        const [entry] = await ledger.list({ from, to: NOTICE_RANGE.to, limit: 1 })
        const name = entry === undefined ? null : noticeNameOf(entry.key)
        if (entry === undefined || name === null) return
        const notice = decodeRecord<PushNotice>(entry.value)
        this.queued(name.hook, this.#deps.taskOf(notice?.task ?? '')?.owner ?? '')
        from = noticeRange(name.hook).to
      } catch (error) {
        telemetry.log('warn', 'notifications that wait could not be read yet', { reason: messageOf(error) })
        await wait(this.#deps.node.clock, AGAIN_MS, this.#stopped)
      }
    }
  }

  /** A notification of a hook is pending, durably. */
  queued(hook: string, owner: string): void {
    this.#step({ type: 'queued', hook, owner })
  }

  /** The operator asks to retry the pending notifications of a hook now. */
  hurry(hook: string): void {
    this.#step({ type: 'hurry', hook })
  }

  /** Ends delivery to a hook. Resolves when nothing is in transit to it. */
  async end(hook: string): Promise<void> {
    const busy = this.#busy.get(hook)
    this.#step({ type: 'removed', hook })
    await busy?.done
    this.#snapshots.forget(hook)
  }

  /** Stops all delivery. */
  stop(): void {
    this.#stopped.abort()
    this.#deps.node.clock.clear(this.#timer)
    for (const { stop } of this.#busy.values()) stop.abort()
  }

  #step(input: PushInput): void {
    if (this.#stopped.aborted) return
    for (const effect of stepPush(this.#outbound, input, this.#deps.node.clock.now())) this.#perform(effect)
  }

  #perform(effect: PushEffect): void {
    const { clock } = this.#deps.node
    if (effect.type === 'stop') return this.#busy.get(effect.hook)?.stop.abort()
    if (effect.type === 'wake') {
      clock.clear(this.#timer)
      this.#timer = clock.after(effect.at - clock.now(), () => this.#step({ type: 'time' }))
      return
    }
    const stop = new Abort()
    this.#busy.set(effect.hook, { stop, done: this.#serve(effect, stop) })
  }

  async #serve(
    { hook, isHurried }: { readonly hook: string; readonly isHurried: boolean },
    stop: Abort
  ): Promise<void> {
    const { clock, telemetry } = this.#deps.node
    // The caller records the work first.
    await Promise.resolve()
    let dueAt: number | null
    try {
      dueAt = await this.#next(hook, { isHurried, stop })
    } catch (error) {
      telemetry.count('errors', 'push')
      telemetry.log('warn', 'a notification could not be read or recorded yet', { hook, reason: messageOf(error) })
      dueAt = clock.now() + AGAIN_MS
    }
    this.#busy.delete(hook)
    this.#step({ type: 'served', hook, dueAt })
  }

  /** Tries the oldest notification of a hook. Returns when to look again; null when none is pending. */
  async #next(
    hook: string,
    { isHurried, stop }: { readonly isHurried: boolean; readonly stop: Abort }
  ): Promise<number | null> {
    const { clock, ledger, chance } = this.#deps.node
    const head = await this.#head(hook)
    if (head === null) return null
    const { dueAt, tries, task } = head.notice
    if (isFuture(dueAt, clock.now()) && !isHurried) return dueAt
    const config = await this.#deps.hooks.find(task, hook)
    const body = config === null ? null : await this.#body(config, head)
    if (stop.aborted) return null
    if (config === null || body === null || this.#deps.isGone(this.#deps.taskOf(task)?.owner ?? '')) {
      // Its config was deleted during this write, or is about to be: its owner is gone.
      await ledger.commit([{ key: PUSH_KEYS.notice(hook, head.generation), value: null }])
      this.#deps.live.settled(hook)
      return clock.now()
    }
    const answer = await this.#deps.webhooks.send(config, { id: noticeId(head), event: head.notice.event, body }, stop)
    if (stop.aborted) return null
    const verdict = judgePush(answer, { tries, now: clock.now(), chance: chance() })
    if (verdict.type === 'gone') await this.#unhook(config, head, verdict)
    else await this.#record(head, verdict)
    return verdict.type === 'again' ? verdict.dueAt : clock.now()
  }

  async #head(hook: string): Promise<NoticeHead | null> {
    const { ledger } = this.#deps.node
    const [entry] = await ledger.list({ ...noticeRange(hook), limit: 1 })
    const name = entry === undefined ? null : noticeNameOf(entry.key)
    const notice = entry === undefined ? null : decodeRecord<PushNotice>(entry.value)
    return name === null || notice === null ? null : { ...name, notice }
  }

  /** null: the task or the event is gone. */
  #body({ version, task: id }: PushHook, head: NoticeHead): Promise<string | null> {
    const making = this.#making.then(async () => {
      const { log, taskOf, webhooks } = this.#deps
      const { hook, generation } = head
      const task = taskOf(id)
      if (task === undefined) return null
      if (version === '1.0' && (head.notice.folded ?? 0) === 0) {
        const [event] = await log.events(id, { after: generation - 1, to: generation })
        if (event === undefined) return null
        if (event.type !== 'message') return webhooks.bodyOf(version, { task, event })
      }
      const fold = await this.#snapshots.after({ hook, task: id, generation })
      if (fold === null) return null
      const snapshot = foldedSnapshot(task, fold)
      if (version === '1.0' || ENDED_STATES.has(snapshot.task.state)) this.#snapshots.forget(hook)
      return webhooks.bodyOf(version, { snapshot })
    })
    this.#making = making.catch(() => null)
    return making
  }

  /** The hook gets nothing else before this is recorded: after a kill it would come out of order. */
  async #record(
    { hook, generation, notice }: NoticeHead,
    verdict: Exclude<PushVerdict, { type: 'gone' }>
  ): Promise<void> {
    const key = PUSH_KEYS.notice(hook, generation)
    this.#deps.node.telemetry.count('notifications', verdict.type)
    if (verdict.type === 'again') {
      const { tries, dueAt, reason } = verdict
      return await this.#commit([
        { key, value: encodeRecord({ ...notice, tries, dueAt, reason } satisfies PushNotice) }
      ])
    }
    const kept = verdict.type === 'dead' ? this.#giveUp({ hook, generation, notice }, verdict) : []
    await this.#commit([{ key, value: null }, ...kept])
    this.#deps.live.settled(hook)
  }

  /** Deletes the config of a hook that is gone with its dead letters. Its pending notifications then find no config. */
  async #unhook(
    { task, hook, url }: PushHook,
    head: NoticeHead,
    { type, reason }: Extract<PushVerdict, { type: 'gone' }>
  ): Promise<void> {
    const { dead, hooks, live, node } = this.#deps
    // The config may have a new URL by now: the next try uses it.
    if ((await hooks.find(task, hook))?.url !== url) return
    node.telemetry.count('notifications', type)
    node.telemetry.log('warn', 'a webhook is gone: its push config is deleted', { id: noticeId(head), task, reason })
    live.drop(task, hook)
    const letters = dead.of(hook)
    const keys = [PUSH_KEYS.config(task, hook), PUSH_KEYS.notice(hook, head.generation)]
    await this.#commit([...keys.map((key) => ({ key, value: null })), ...dead.removal(letters)])
    dead.forget(letters)
    this.#snapshots.forget(hook)
  }

  #giveUp(
    { hook, generation, notice }: NoticeHead,
    { tries, reason }: Extract<PushVerdict, { type: 'dead' }>
  ): readonly LedgerChange[] {
    const { clock, telemetry } = this.#deps.node
    const { task, event } = notice
    telemetry.log('warn', 'a push notification was given up', {
      id: noticeId({ hook, generation }),
      task,
      event,
      tries,
      reason
    })
    const { dueAt: _, ...content } = notice
    const owner = this.#deps.taskOf(task)?.owner ?? ''
    return this.#deps.dead.add({ hook, generation, owner }, { ...content, tries, reason, deadAt: clock.now() })
  }

  /** Commits, with retries until the ledger accepts it. */
  async #commit(changes: readonly LedgerChange[]): Promise<void> {
    const { clock, ledger, telemetry } = this.#deps.node
    while (!this.#stopped.aborted) {
      try {
        return await ledger.commit(changes)
      } catch (error) {
        telemetry.count('errors', 'ledger')
        telemetry.log('warn', 'what became of a notification could not be recorded yet', { reason: messageOf(error) })
        await wait(clock, AGAIN_MS, this.#stopped)
      }
    }
  }
}

/** Approximate bytes of the snapshots kept between notifications. */
export const MAX_SNAPSHOTS_BYTES = 33_554_432

/** Key of a snapshot. */
interface SnapshotName {
  readonly hook: string
  readonly task: string
  /** The last event in it. */
  readonly generation: number
}

/**
 * The tasks that webhooks receive whole, each as last sent to its webhook, so that the next time only new events are
 * read.
 */
export class TaskSnapshots {
  readonly #log: Pick<TaskLog, 'events'>
  /** By hook, the most recently used last. */
  readonly #kept = new Map<string, TaskFold>()
  #bytes = 0

  constructor(log: Pick<TaskLog, 'events'>) {
    this.#log = log
  }

  /**
   * The task after an event; null when the log has no such event. The next call may change it.
   * @throws NodeError STORE_DAMAGED
   */
  async after({ hook, task, generation }: SnapshotName): Promise<TaskFold | null> {
    const kept = this.#kept.get(hook)
    // A dead-lettered notification may be sent later: the fold is ahead of it.
    const isPast = kept !== undefined && kept.generation > generation
    const fold = kept === undefined || isPast ? emptyFold() : kept
    const events = await this.#log.events(task, { after: fold.generation, to: generation })
    if (!isPast) this.forget(hook)
    addToFold(fold, events)
    if (!isPast) this.#keep(hook, fold)
    return fold.generation === generation ? fold : null
  }

  /** Forgets the snapshot of a hook that gets nothing more. */
  forget(hook: string): void {
    this.#bytes -= this.#kept.get(hook)?.bytes ?? 0
    this.#kept.delete(hook)
  }

  #keep(hook: string, fold: TaskFold): void {
    this.#kept.set(hook, fold)
    this.#bytes += fold.bytes
    for (const [oldest] of this.#kept) {
      if (this.#bytes <= MAX_SNAPSHOTS_BYTES) return
      this.forget(oldest)
    }
  }
}
