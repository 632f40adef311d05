import { mayAccept, Pinned, type Remembered } from '../../../domain/pinning/pinned.js'
import type { LinkState, Phase } from '../../../domain/pinning/link-state.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { AgentOutcome, AgentRun, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedServerState, ToolListChange } from '../../../ports/imported-tools.js'
import type { ImportAdapter, ImportOffer } from '../../../ports/imports.js'
import type { Problem } from '../../../ports/node-api.js'
import type { NodeStore } from '../../../ports/storage.js'
import { ImportLink } from './import-link.js'
import { listedItems, namesInForce } from './listed-items.js'

/** How long a tool list or card is good, in milliseconds. */
export const LIST_TTL_MS = 300_000

const STATES: Readonly<Record<Phase, ImportedServerState>> = {
  idle: 'idle',
  starting: 'starting',
  ready: 'ready',
  backoff: 'failed',
  closed: 'closed'
}
const NO_CHANGE: ToolListChange = { added: [], removed: [], changed: [] }

/** Dependencies of {@link PinnedImport}. */
export interface PinnedImportDeps {
  readonly store: NodeStore
  readonly clock: Clock
  /** In [0, 1). */
  readonly chance: () => number
  readonly log: (level: 'warn' | 'error', message: string, fields: Readonly<Record<string, unknown>>) => void
  /** Default {@link LIST_TTL_MS}. */
  readonly ttlMs?: number
  /** The offer has changed; resolves when its agent is in service. */
  onOffer(): void | Promise<void>
}

/**
 * One import: its link, the value in force, and calls. The first value seen (or the config's pin) is in force until a
 * person accepts another. Only its items that the other side still has are offered.
 */
export class PinnedImport {
  readonly adapter: ImportAdapter
  readonly #deps: PinnedImportDeps
  readonly #pinned: Pinned<object>
  readonly #link: ImportLink
  #offer: ImportOffer | null = null
  #shownError: string | null = null

  constructor(adapter: ImportAdapter, deps: PinnedImportDeps) {
    const { ttlMs = LIST_TTL_MS } = deps
    this.adapter = adapter
    this.#deps = deps
    this.#pinned = new Pinned({
      pin: adapter.spec.pin,
      hash: (value) => adapter.hash(value),
      isNothing: (value) => adapter.isNothing(value),
      completed: (accepted, seen) => adapter.completed?.(accepted, seen) ?? null
    })
    this.#link = new ImportLink({
      ...deps,
      ttlMs,
      adapter,
      onList: (value) => this.#take(value),
      onState: (state) => this.#logFailure(state)
    })
  }

  /** Reads its stored pin from the home. Starts nothing. */
  async load(): Promise<void> {
    this.#pinned.restore(await this.#remembered())
    await this.#reoffer()
  }

  /** Starts its link, in the background. */
  start(): void {
    this.#link.input({ type: 'start' })
  }

  /** The agent as it is offered now; null while nothing is in force. */
  get offer(): ImportOffer | null {
    return this.#offer
  }

  /** Is this its name or address? */
  isCalled(text: string): boolean {
    return text === this.adapter.spec.name || (this.adapter.address !== null && text === this.adapter.address)
  }

  /**
   * Refreshes the list, and accepts the one with the sha256 `accept`.
   * @throws NodeError CONFLICT; DISK_FULL, NO_PERMISSION of the store
   */
  async refresh(accept: string | null): Promise<void> {
    const { spec, words } = this.adapter
    const { name, pin } = spec
    await this.#link.refresh()
    if (accept === null) return
    const { phase, lastError } = this.#link.state
    const { seen } = this.#pinned
    const mayTake = mayAccept({
      name,
      setting: `${words.section}.${name}.pin`,
      thing: words.thing,
      accept,
      pin,
      pending: this.#pending()?.hash ?? null,
      pinned: this.#pinned.pinned()?.hash ?? null,
      fault: phase === 'ready' ? null : (lastError ?? `it ${words.notYet}`)
    })
    if (!mayTake || seen === null) return
    const accepted = { ...seen, by: 'accepted' as const }
    await this.#write(accepted)
    this.#pinned.accept(accepted)
    await this.#reoffer()
  }

  /** Its state. */
  info(): ImportedServerInfo {
    const { spec, transport, address } = this.adapter
    const { name } = spec
    const { phase, lastError, starts } = this.#link.state
    const { listedAt } = this.#link
    const pending = this.#pending()
    const pinned = this.#pinned.pinned()
    return {
      name,
      agent: name,
      transport,
      url: transport === 'a2a' ? address : null,
      state: STATES[phase],
      tools: listedItems(this.adapter, this.#pinned, this.#offer),
      pinned: pinned?.hash ?? null,
      pinnedBy: pinned?.by ?? null,
      listed: pending?.hash ?? null,
      change: pending?.change ?? null,
      lastError,
      lastListedAt: listedAt === null ? null : new Date(listedAt).toISOString(),
      restarts: transport === 'a2a' ? 0 : Math.max(0, starts - 1)
    }
  }

  /** Runs one capability. Never rejects. */
  call(task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
    return this.adapter.call(task, run, { offer: this.#offer, link: this.#link })
  }

  /** By its link, which asks for the list all the time. */
  health(): HealthFinding {
    const { what, notYet } = this.adapter.words
    const { phase, lastError } = this.#link.state
    if (phase === 'ready') return { state: 'healthy', reason: null }
    if (lastError !== null || phase === 'closed')
      return { state: 'unhealthy', reason: lastError ?? `the ${what} was closed` }
    return { state: 'degraded', reason: `the ${what} ${notYet}` }
  }

  /** Current problems, for `status`. */
  problems(): Problem[] {
    const { spec, words } = this.adapter
    const { name } = spec
    const { phase, lastError } = this.#link.state
    const look = `a2a-node tools refresh ${name}`
    const problems: Problem[] = []
    // Also during a retry: a problem that comes and goes would be reported each time.
    if (phase !== 'ready' && lastError !== null)
      problems.push({ code: words.failedCode, message: `the ${words.what} ${name}: ${lastError}`, next: look })
    const changed = this.#changedText()
    if (changed !== null) problems.push({ code: words.changedCode, ...changed })
    const count = this.#offer?.leftOut.length ?? 0
    const setting = `${words.section}.${name}.${words.items}`
    if (count > 0)
      problems.push({
        code: 'TOO_MANY_TOOLS',
        message: `the card of ${name} has no room for ${count} of its ${words.items}: name those that matter in ${setting}`,
        next: 'a2a-node tools ls'
      })
    return problems
  }

  /** Ends its link. Idempotent. */
  close(): Promise<void> {
    return this.#link.close()
  }

  get #document(): string {
    return `${this.adapter.words.document}-${this.adapter.spec.name}`
  }

  /** An unreadable document counts as lost, so that nothing is trusted at first sight again. */
  async #remembered(): Promise<Remembered<object>> {
    try {
      const stored = await this.#deps.store.read<unknown>(this.#document)
      if (stored === null) return { kind: 'none' }
      if (!isRecord(stored)) return { kind: 'lost' }
      const { by } = stored
      const value = await this.adapter.decode(stored)
      const isKept = value !== null && (by === 'config' || by === 'first-sight' || by === 'accepted')
      return isKept ? { kind: 'kept', accepted: { ...value, by } } : { kind: 'lost' }
    } catch {
      return { kind: 'lost' }
    }
  }

  /** @throws NodeError DISK_FULL, NO_PERMISSION */
  async #write(accepted: NonNullable<Pinned<object>['accepted']>): Promise<void> {
    await this.#deps.store.write(this.#document, { by: accepted.by, ...this.adapter.encode(accepted) })
  }

  async #take(value: object): Promise<void> {
    const { what, thing } = this.adapter.words
    const kept = this.#pinned.take(value)
    // A full disk must not block a value seen for the first time; the next start sees it first again.
    if (kept !== null)
      await this.#write(kept).catch((error: unknown) =>
        this.#log('error', `a ${thing} could not be kept`, { reason: messageOf(error) })
      )
    if (this.#pending() !== null) this.#log('warn', `an ${what} has another ${thing} than the one accepted`)
    await this.#reoffer()
  }

  /** The last value seen when it is not in force; null when it is, or when nothing was seen yet. */
  #pending(): { readonly hash: string; readonly change: ToolListChange } | null {
    const { seen, accepted, isLost, isPending } = this.#pinned
    if (seen === null || !isPending) return null
    const change = this.adapter.change(accepted, seen)
    return change === null && !isLost ? null : { hash: this.adapter.hash(seen), change: change ?? NO_CHANGE }
  }

  #changedText(): Pick<Problem, 'message' | 'next'> | null {
    const { spec, words } = this.adapter
    const { name, pin } = spec
    const { what, thing, advice } = words
    const look = `a2a-node tools refresh ${name}`
    if (this.#pinned.isLost)
      return { message: `the accepted ${thing} of the ${what} ${name} cannot be read: ${advice}`, next: look }
    const pending = this.#pending()
    if (pending === null) return null
    const changed = this.adapter.changeText(pending.change, pin === null ? null : pending.hash)
    return { message: `the ${what} ${name} ${changed}`, next: pin === null ? look : 'a2a-node tools ls' }
  }

  async #reoffer(): Promise<void> {
    const { accepted, seen } = this.#pinned
    const offered = namesInForce(this.adapter, this.#pinned)
    const next = accepted === null ? (this.adapter.unpinned?.(seen) ?? null) : this.adapter.offer(accepted, offered)
    const isSame = JSON.stringify(next?.definition) === JSON.stringify(this.#offer?.definition)
    this.#offer =
      next === null || this.#offer === null || !isSame ? next : { ...next, definition: this.#offer.definition }
    if (!isSame) await this.#deps.onOffer()
  }

  #logFailure({ lastError, phase }: LinkState): void {
    if (phase === 'backoff' && lastError !== this.#shownError)
      this.#log('warn', `an ${this.adapter.words.what} failed`, { reason: lastError ?? '' })
    this.#shownError = lastError
  }

  #log(level: 'warn' | 'error', message: string, fields: { readonly reason?: string } = {}): void {
    const { spec, words } = this.adapter
    this.#deps.log(level, message, { [words.short]: spec.name, ...fields })
  }
}
