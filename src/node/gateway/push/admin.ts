import { type IdKind, MAX_CANDIDATES, resolveId } from '../../../kit/resolve-id.js'
import type { PushHook, PushNotice } from '../../../domain/gateway/push.js'
import { NOTICE_RANGE, type NoticeName, noticeId, noticeNameOf, PUSH_KEYS } from '../../../domain/gateway/push-records.js'
import { decodeRecord, encodeRecord } from '../../../domain/gateway/records.js'
import type { GatewayTask } from '../../../domain/gateway/task.js'
import type { PushAdmin, PushConfigInfo, PushList, PushNoticeInfo } from '../../../ports/push-api.js'
import type { DeadLetters } from './dead-letters.js'
import type { WebhookDelivery } from './delivery.js'
import type { WebhookConfigs } from './configs.js'
import { ledgerEntries } from '../../ledger/scan.js'
import type { NodeDeps } from '../../dependencies.js'

/** Rows of each kind that `a2a push ls` shows at most. */
export const MAX_PUSH_ROWS = 1000
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
export type InTurn = <T>(run: () => Promise<T>) => Promise<T>

/** What showing and retrying notifications needs. */
export interface PushAdminDeps {
  readonly node: Pick<NodeDeps, 'ledger' | 'clock'>
  readonly hooks: WebhookConfigs
  readonly dead: DeadLetters
  readonly delivery: WebhookDelivery
  readonly taskOf: (id: string) => GatewayTask | undefined
  readonly inTurn: InTurn
}

/** Notifications as people see them. */
export class NodePushAdmin implements PushAdmin {
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
