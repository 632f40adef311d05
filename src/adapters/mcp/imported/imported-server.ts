import { mayAccept } from '../../../domain/pinning/pinned.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { faultText } from '../../../kit/schema/text.js'
import { boundedCheck } from '../../../kit/schema/cost.js'
import type { Check, CompileSchema } from '../../../kit/sign.js'
import { isRecord } from '../../../kit/json.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedServerState } from '../../../ports/imported-tools.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { ToolLog } from '../server/tool.js'
import { capabilityId, cardSchema, type ImportedCard, type ImportedCardSpec, importedCard } from './imported-card.js'
import type { Connection, OpenConnection, ToolRun } from './imported-connection.js'
import { failedCall, ImportedFault } from './imported-fault.js'
import { type ImportedTool, readList } from './imported-list.js'
import { ImportedLink } from './imported-link.js'
import { ImportedOffer } from './imported-offer.js'
import { type Accepted, ImportedPin } from './imported-pin.js'
import { outcomeOf } from './imported-result.js'
import { safeSchema } from './imported-schema.js'
import type { Phase } from './imported-state.js'

/** How long a call waits for a server that comes up, in milliseconds. */
export const READY_WAIT_MS = 10_000
/** Characters of a description that lists of tools tell. */
const SHOWN_DESCRIPTION = 1000
/** How long a tool list is good, in milliseconds. */
export const LIST_TTL_MS = 300_000

const STATES: Readonly<Record<Phase, ImportedServerState>> = {
  idle: 'idle',
  starting: 'starting',
  ready: 'ready',
  backoff: 'failed',
  closed: 'closed'
}

/** One server of the config. */
export interface ImportedServerSpec extends ImportedCardSpec {
  readonly transport: 'stdio' | 'http'
  /** As the config has it; null for a program. */
  readonly url: string | null
  /** Globs of the tools that are offered; null: all. */
  readonly tools: readonly string[] | null
  /** sha256 of the only list that is offered. */
  readonly pin: string | null
}

/** What {@link ImportedServer} needs. */
export interface ImportedServerDeps {
  readonly spec: ImportedServerSpec
  readonly open: OpenConnection
  readonly store: NodeStore
  readonly compileSchema: CompileSchema
  readonly clock: Clock
  /** In [0, 1). */
  readonly chance: () => number
  readonly log: ToolLog
  /** Default {@link LIST_TTL_MS}. */
  readonly ttlMs?: number
  /** Which tools are offered has changed. */
  onTools(): void
}

/** One imported MCP server: its link, the list that is in force, and calls of its tools. */
export class ImportedServer {
  readonly spec: ImportedServerSpec
  readonly #deps: ImportedServerDeps
  readonly #pin: ImportedPin
  readonly #offer: ImportedOffer
  readonly #link: ImportedLink
  #card: ImportedCard
  #shownError: string | null = null
  /** Lists that were read or are being read: of two only the newer counts. */
  #reading = 0

  constructor(deps: ImportedServerDeps) {
    const { spec, open, clock, chance, ttlMs = LIST_TTL_MS } = deps
    this.spec = spec
    this.#deps = deps
    this.#pin = new ImportedPin(spec.name, deps)
    this.#offer = new ImportedOffer(spec)
    this.#card = importedCard(spec, [])
    this.#link = new ImportedLink({ open, clock, chance, ttlMs, onList: (tools) => this.#take(tools), onState: () => this.#tellState() })
  }

  /** Reads what the home has of it. Starts nothing. */
  async load(): Promise<void> {
    this.#offer.restore(await this.#pin.read())
    this.#card = importedCard(this.spec, this.#offer.offered())
  }

  /** Starts it, in the background. */
  start(): void {
    this.#link.input({ type: 'start' })
  }

  /** The agent as it is offered now. */
  get card(): ImportedCard {
    return this.#card
  }

  /** Is it the server of that name or address? */
  isCalled(text: string): boolean {
    return text === this.spec.name || (this.spec.url !== null && text === this.spec.url)
  }

  /** Lists its tools anew, and takes the list with that sha256. @throws NodeError CONFLICT when they cannot be accepted; what cannot be kept, as the store says. */
  async refresh(accept: string | null): Promise<void> {
    const { name, pin } = this.spec
    await this.#link.refresh()
    if (accept === null) return
    const { phase, lastError } = this.#link.state
    const mayTake = mayAccept({
      name,
      setting: `mcp.servers.${name}.pin`,
      thing: 'tool list',
      accept,
      pin,
      pending: this.#offer.pending()?.hash ?? null,
      pinned: this.#offer.pinned()?.hash ?? null,
      fault: phase === 'ready' ? null : (lastError ?? 'it has not come up yet')
    })
    if (!mayTake) return
    const accepted = this.#offer.listed()
    await this.#pin.write(accepted)
    this.#offer.accept(accepted)
    this.#reoffer()
  }

  /** What there is to say of it. */
  info(): ImportedServerInfo {
    const { name, transport } = this.spec
    const { phase, lastError, starts } = this.#link.state
    const { listedAt } = this.#link
    const pending = this.#offer.pending()
    const pinned = this.#offer.pinned()
    return {
      name,
      agent: name,
      transport,
      url: null,
      state: STATES[phase],
      tools: this.#tools(),
      pinned: pinned?.hash ?? null,
      pinnedBy: pinned?.by ?? null,
      listed: pending?.hash ?? null,
      change: pending?.change ?? null,
      lastError,
      lastListedAt: listedAt === null ? null : new Date(listedAt).toISOString(),
      restarts: Math.max(0, starts - 1)
    }
  }

  /** The list that was accepted cannot be read any more. */
  get isPinLost(): boolean {
    return this.#offer.isLost
  }

  /** Runs one tool. What may have run is repeated only when the config says that it may be, and then once. Never rejects. */
  async call(task: Pick<AgentTask, 'capability' | 'input'>, run: ToolRun): Promise<AgentOutcome> {
    const tool = this.#card.tools.get(task.capability)
    if (tool === undefined) return { ok: false, code: 'TASK_FAILED', message: `the MCP server ${this.spec.name} offers no such tool now` }
    const input = isRecord(task.input) ? task.input : {}
    const fault = this.#inputFault(tool, input)
    if (fault !== null) return { ok: false, code: 'TASK_FAILED', message: `the input does not fit ${tool.name}: ${fault}` }
    for (let tries = 1; ; tries++) {
      const outcome = await this.#try(tool, input, run)
      if (!(outcome instanceof ImportedFault)) return outcome
      const mayRepeat = outcome.kind === 'session' || (outcome.kind === 'unknown' && this.spec.idempotent.includes(tool.name))
      if (!mayRepeat || tries > 1 || run.signal.aborted) return failedCall(this.spec.name, outcome)
    }
  }

  /** Ends it and its program. Idempotent. */
  close(): Promise<void> {
    return this.#link.close()
  }

  async #try(tool: ImportedTool, input: Readonly<Record<string, unknown>>, run: ToolRun): Promise<AgentOutcome | ImportedFault> {
    let connection: Connection | null = null
    let end = (): void => {}
    try {
      connection = await this.#link.ready(READY_WAIT_MS, run.signal)
      end = this.#link.calling()
      return this.#judged(tool, outcomeOf(await connection.call(tool, input, run), this.spec.maxOutputBytes))
    } catch (error) {
      const fault = error instanceof ImportedFault ? error : new ImportedFault('unknown', messageOf(error))
      if (fault.kind === 'session' && connection !== null) this.#link.lost(connection, fault.message)
      if (fault.kind === 'unsent' && connection !== null) this.#link.unreachable(connection, fault.message)
      // Nobody hears any more what becomes of the call: a server that is dead must not take the next one.
      if (run.signal.aborted || fault.kind === 'unknown') this.#link.doubt()
      return fault
    } finally {
      end()
    }
  }

  /** The card may hold only the outline of a schema: here it is the whole one. */
  #inputFault(tool: ImportedTool, input: unknown): string | null {
    const faults = this.#check(tool.inputSchema)(input)
    return faults.length === 0 ? null : faultText(faults)
  }

  #check(schema: ImportedTool['inputSchema']): Check {
    const safe = safeSchema(schema)
    return boundedCheck(this.#deps.compileSchema(safe), safe)
  }

  #judged({ name, outputSchema }: ImportedTool, outcome: AgentOutcome): AgentOutcome {
    if (!outcome.ok || outputSchema === null) return outcome
    const faults = this.#check(outputSchema)(outcome.result)
    if (faults.length === 0) return outcome
    return { ok: false, code: 'INVALID_OUTPUT', message: `the result does not fit the schema that ${name} promises: ${faultText(faults)}` }
  }

  async #take(tools: readonly unknown[]): Promise<void> {
    const number = ++this.#reading
    const list = await readList(tools, this.#deps.compileSchema)
    if (number !== this.#reading) return
    const accepted = this.#offer.take(list)
    if (accepted !== null) await this.#keep(accepted)
    const pending = this.#offer.pending()
    if (pending !== null) this.#deps.log('warn', 'an MCP server lists other tools than those accepted', { server: this.spec.name })
    this.#reoffer()
  }

  /** A disk that is full must not keep tools away that were never seen before; the next start sees them first again. */
  async #keep(accepted: Accepted): Promise<void> {
    const { log } = this.#deps
    await this.#pin
      .write(accepted)
      .catch((error: unknown) => log('error', 'a tool list could not be kept', { server: this.spec.name, reason: messageOf(error) }))
  }

  #reoffer(): void {
    const next = importedCard(this.spec, this.#offer.offered())
    if (JSON.stringify(next.definition) === JSON.stringify(this.#card.definition)) {
      this.#card = { ...next, definition: this.#card.definition }
      return
    }
    this.#card = next
    this.#deps.onTools()
  }

  #tools(): ImportedServerInfo['tools'] {
    const leftOut = new Set(this.#card.leftOut)
    const offered = this.#offer.offered().map(({ name, description, inputSchema }) => {
      const reason = leftOut.has(name) ? 'the card of the agent has no room for it: name fewer in `tools` of the config' : null
      return { name, description, inputSchema, reason }
    })
    return [...offered, ...this.#offer.withheld()]
      .map(({ name, description, inputSchema, reason }) => ({
        name,
        capability: capabilityId(this.spec.name, name),
        description: description.slice(0, SHOWN_DESCRIPTION),
        inputSchema: cardSchema(inputSchema),
        offered: reason === null,
        reason
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #tellState(): void {
    const { lastError, phase } = this.#link.state
    if (phase === 'backoff' && lastError !== this.#shownError)
      this.#deps.log('warn', 'an MCP server failed', { server: this.spec.name, reason: lastError ?? '' })
    this.#shownError = lastError
  }
}
