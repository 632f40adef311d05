import type { AutobaseHandlers } from 'autobase'
import type Corestore from 'corestore'
import type { NoiseStream } from 'hyperswarm'
import Hyperbee from 'hyperbee'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { Emitter } from '../../../kit/events.js'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { MeshId, NodeId } from '../../../kit/ids.js'
import type { Sign, Verify } from '../../../kit/sign.js'
import { documentCoreKey } from '../../../domain/membership/keys.js'
import type { FoldResult } from '../../../domain/membership/fold/effects.js'
import { seal } from '../../../domain/membership/signing.js'
import type { Entry, EntryBody, MembershipView } from '../../../domain/membership/types.js'
import { isWriter } from '../../../domain/membership/view.js'
import type { MemberLog } from '../../../ports/mesh.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { applyNodes, tryEntry } from './apply.js'
import { BatchAppender } from './batch-appender.js'
import { CatchUp } from './catch-up.js'
import type { CoreCare } from './core-care.js'
import type { EntryRelayOptions, EntryRelay } from './entry-relay.js'
import { EntryIntake, type IntakeLog } from './entry-intake.js'
import { GuardedBase, type LogGuard } from './guarded-base.js'
import { type WriterClaim, LogWriters } from './log-writers.js'
import { OwnBlocks } from './own-blocks.js'
import type { Quarantine } from './quarantine.js'
import { MemberCores } from './member-cores.js'
import { SignedView } from './signed-view.js'
import { Submissions } from './submission.js'
import { ViewReader } from './view-reader.js'

/** How long a submitted entry may take to be applied, in milliseconds, unless the caller says otherwise. */
const SUBMIT_TIMEOUT_MS = 10_000

/** Dependencies of {@link AutobaseLog}. */
export interface LogDeps {
  readonly store: Corestore
  /** null: a new mesh is made. */
  readonly mesh: null | { readonly key: Uint8Array; readonly encryptionKey: Uint8Array }
  readonly nodeId: NodeId
  readonly sign: Sign
  readonly verify: Verify
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Why the store takes no writes now; null: it does. Absent: not checked. */
  writeFault?(): NodeError | null
  /** The record of cores at which starts ended. Absent: none. */
  readonly care?: CoreCare
  /** An earlier start found that the home was put back to an older copy. */
  readonly isRolledBack?: boolean
}

/**
 * Hands an encoded entry to any connected writer. `isAgain`: one said that it had, and the log does not show it. True:
 * one says that it appended it.
 */
export type EntryRelayPort = (entry: Uint8Array, options: EntryRelayOptions) => Promise<boolean>

/** The Autobase log behind the MemberLog port, and the parts that the rest of the mesh adapter uses. */
export class AutobaseLog implements MemberLog {
  /** Key of the mesh: its Autobase's, also as text. */
  readonly key: Uint8Array
  readonly meshId: MeshId
  readonly discoveryKey: Uint8Array
  readonly encryptionKey: Uint8Array
  /** Key (z32) of this node's own writer core. */
  readonly coreKey: string
  /** The blocks of that core. */
  readonly own: Pick<OwnBlocks, 'fault' | 'lost' | 'length' | 'isFull'>
  /** Cores (z32) whose further blocks are not read. */
  readonly unreadable: Pick<LogWriters, 'badBlock' | 'onBad'>
  /** Resolves when the base closed itself: its data is damaged. */
  readonly failed: Promise<Error>
  readonly view: MemberLog['view']
  readonly #deps: LogDeps
  readonly #base: GuardedBase
  readonly #writers: LogWriters
  readonly #reader: ViewReader
  readonly #changes: Emitter<MembershipView>
  readonly #appender: BatchAppender
  readonly #intake: EntryIntake
  readonly #catchUp: CatchUp
  readonly #own: OwnBlocks
  readonly #signedView: SignedView
  readonly #cores: MemberCores
  readonly #submissions: Submissions
  /** Records forked cores (z32); names members whose entries are not taken. */
  #quarantine: Pick<Quarantine, 'add' | 'has'> | null = null
  #relay: EntryRelayPort = () => Promise.resolve(false)
  #isClosed = false

  private constructor(
    deps: LogDeps,
    base: GuardedBase,
    { encryptionKey, failed, writers }: Pick<AutobaseLog, 'encryptionKey' | 'failed'> & { readonly writers: LogWriters }
  ) {
    this.failed = failed
    this.#writers = writers
    this.unreadable = writers
    this.#deps = deps
    this.#base = base
    this.key = base.key
    this.meshId = keyToText(base.key)
    this.discoveryKey = base.discoveryKey
    this.encryptionKey = encryptionKey
    this.coreKey = keyToText(base.local.key)
    const { clock, telemetry } = deps
    this.#changes = new Emitter((error) =>
      telemetry.log('error', 'a listener of the log failed', { reason: messageOf(error) })
    )
    this.#reader = new ViewReader(
      () => base.view,
      (view) => this.#changes.emit(view),
      clock
    )
    this.view = this.#reader.view
    this.#appender = new BatchAppender((values) => base.append(values))
    this.#intake = new EntryIntake({ log: this.#intakeLog(), clock, telemetry })
    this.#own = this.#newOwnBlocks()
    this.own = this.#own
    this.#submissions = this.#newSubmissions()
    this.#signedView = new SignedView(deps.store, base)
    this.#cores = new MemberCores({ ...deps, meshId: this.meshId, self: this.coreKey, signedView: this.#signedView })
    this.#catchUp = new CatchUp({ clock, telemetry, view: this.#signedView, repair: () => base.repair() })
  }

  /** Opens (or founds) the mesh log in a store and reads it. @throws NodeError STORE_DAMAGED */
  static async open(deps: LogDeps): Promise<AutobaseLog> {
    let tellFailed: (error: Error) => void = () => {}
    const failed = new Promise<Error>((resolve) => {
      tellFailed = resolve
    })
    let log: AutobaseLog | null = null
    const writers = new LogWriters({
      isValid: async ({ entry, coreKey }) => log !== null && (await log.#try(entry)).addWriters.includes(coreKey),
      onClaim: (claim, from) => (log === null ? undefined : log.#onClaim(claim, from)),
      onLimits: () => base.limitsChanged(),
      ...(deps.care === undefined ? {} : { care: deps.care })
    })
    const base = openBase(deps, writers, tellFailed)
    await base.ready()
    if (base.encryptionKey === null) throw new NodeError('STORE_DAMAGED', 'the mesh log has no encryption key')
    log = new AutobaseLog(deps, base, { encryptionKey: base.encryptionKey, failed, writers })
    await log.#read()
    return log
  }

  onChange(listener: (view: MembershipView) => void): () => void {
    return this.#changes.on(listener)
  }

  async submit(body: EntryBody, timeoutMs: number = SUBMIT_TIMEOUT_MS): Promise<void> {
    const { nodeId, sign, telemetry } = this.#deps
    telemetry.count('log_entries_submitted', body.kind)
    await this.#submissions.submit(seal('entry', body, { id: nodeId, sign }), timeoutMs)
  }

  writable(): boolean {
    return this.#base.writable
  }

  length(): number {
    return this.#base.core.length
  }

  /** Attaches replication to a stream that the gate has passed. */
  replicate(stream: NoiseStream): void {
    this.#base.replicate(stream)
  }

  /** Brings an entry of another node into the log. False: it is not taken, here or now. */
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean> {
    return this.#isClosed ? Promise.resolve(false) : this.#intake.take(entry, peer)
  }

  /** Sets the relay of entries to other nodes, and the quarantine that records forked cores. Call it once. */
  bind(relay: EntryRelayPort, quarantine: Pick<Quarantine, 'add' | 'has'>): void {
    this.#relay = relay
    this.#quarantine = quarantine
    this.#cores.follow((core) => quarantine.add(core), this)
  }

  /** A link opened: tells the peer which cores members claim, and offers waiting entries now. */
  linked(relay: Pick<EntryRelay, 'hand'>): void {
    for (const claim of this.#writers.claims()) void relay.hand(claim)
    this.#submissions.retry()
  }

  /** Ends waiting submissions, and the base. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#catchUp.close()
    this.#submissions.retry()
    await this.#reader.close()
    await this.#cores.close()
    await this.#base.close()
  }

  #newOwnBlocks(): OwnBlocks {
    const { clock, isRolledBack: isLost = false } = this.#deps
    return new OwnBlocks({
      core: this.#base.local,
      clock,
      isLost,
      limitBytes: () => this.#writers.limitOf(this.coreKey).bytes
    })
  }

  #newSubmissions(): Submissions {
    return new Submissions({
      clock: this.#deps.clock,
      append: (entry) =>
        this.#base.writable && !this.#own.isFull ? this.#appender.append(entry).then(() => true) : null,
      view: () => this.view(),
      isClosed: () => this.#isClosed,
      // The base closes itself for good when its store takes nothing, and spins where its own core has gaps.
      fault: () => (this.#base.writable ? this.#writeFault() : null),
      onChange: (listener) => this.#changes.on(listener),
      refresh: () => this.#reader.refresh(),
      tryOut: (entry) => this.#try(entry),
      isHalted: () => this.#base.writable && !this.#mayAppend(),
      relay: (entry, options) => this.#relay(entry, options),
      claim: (entry) => this.#claim(entry)
    })
  }

  #intakeLog(): IntakeLog {
    return {
      view: () => this.view(),
      onChange: (listener) => this.#changes.on(listener),
      writable: () => this.#base.writable && !this.#isClosed && this.#mayAppend() && !this.#own.isFull,
      isQuarantined: (nodeId) => this.#quarantine?.has(nodeId) === true,
      wouldChange: async (entry) => isChange(await this.#try(entry)),
      claim: (claim, from) => this.#writers.offer(claim, from),
      append: (entry) => this.#appender.append(entry),
      // A writer that hands on is full itself: among such writers an entry could go in circles.
      handOn: (entry, from) =>
        this.#own.isFull && isWriter(this.view(), from) ? Promise.resolve(false) : this.#relay(entry, { from })
    }
  }

  isCoreSigned(coreKey: string): Promise<boolean> {
    return this.#signedView.isSigned(documentCoreKey(coreKey))
  }

  #try(entry: Entry): Promise<FoldResult> {
    return tryEntry(this.#base.view, entry, { verify: this.#deps.verify, meshId: this.meshId })
  }

  /** Other nodes need the claim before they read the own core, and the base takes it before this node is a writer. */
  async #claim(entry: Uint8Array): Promise<boolean> {
    const mayWrite = this.view().members.get(this.#deps.nodeId)?.certificate.body.mayWrite === true
    if (!mayWrite || !this.#mayAppend()) return false
    try {
      await this.#base.append([entry], { optimistic: true })
    } catch {
      return false
    }
    this.#writers.remember(this.coreKey, entry)
    void this.#relay(entry, { isForAll: true })
    return true
  }

  #onClaim({ bytes, coreKey }: WriterClaim, from: NodeId): void {
    this.#base.hintWakeup({ key: keyFromText(coreKey), length: 1 })
    void this.#relay(bytes, { from, isForAll: true })
  }

  /** The base reports nothing when nothing changed since the last start, so it is read once. */
  async #read(): Promise<void> {
    this.#base.on('update', () => {
      this.#reader.refresh().catch((error: unknown) => {
        if (!this.#isClosed)
          this.#deps.telemetry.log('error', 'the mesh log could not be read', { reason: messageOf(error) })
      })
    })
    await this.#base.update()
    await this.#reader.refresh()
    for (const [coreKey, entry] of await this.#base.claims()) this.#writers.remember(coreKey, entry)
    const review = (view: MembershipView): void => {
      void this.#writers.review(view).catch(ignore)
      this.#cores.review(view)
    }
    this.onChange(review)
    review(this.view())
  }

  #mayAppend(): boolean {
    return !this.#own.isBehind && this.#writeFault() === null
  }

  #writeFault(): NodeError | null {
    return this.#own.fault() ?? this.#deps.writeFault?.() ?? null
  }
}

function openBase(
  { store, mesh, verify, telemetry }: LogDeps,
  guard: LogGuard,
  onFailed: (error: Error) => void
): GuardedBase {
  const handlers: AutobaseHandlers<Hyperbee> = {
    open: (views) =>
      new Hyperbee(views.get('members'), { keyEncoding: 'utf-8', valueEncoding: 'json', extension: false }),
    apply: (nodes, view, host) => applyNodes({ nodes, view, host, verify }),
    encrypt: true,
    ...(mesh === null ? {} : { encryptionKey: mesh.encryptionKey }),
    // A home that was restored brings the entry by which it writes again on the core that is to write.
    optimistic: true,
    valueEncoding: 'binary'
  }
  const base = new GuardedBase(store, mesh?.key ?? null, { handlers, guard })
  base.on('error', (error) => {
    telemetry.log('error', 'the mesh log closed itself', { reason: messageOf(error) })
    onFailed(error)
  })
  return base
}

function isChange({ puts, addWriters, removeWriters }: FoldResult): boolean {
  return puts.size + addWriters.length + removeWriters.length > 0
}

/** A claim that cannot be judged now, since the log is closing, comes again. */
function ignore(): void {}
