import type { AutobaseHandlers } from 'autobase'
import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import type { NoiseStream } from 'hyperswarm'
import Hyperbee from 'hyperbee'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { Emitter } from '../../../kit/events.js'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { MeshId, NodeId } from '../../../kit/ids.js'
import type { Sign, Verify } from '../../../kit/sign.js'
import { chargeOf, LOG_SHARE_LIMITS } from '../../../domain/membership/log-share.js'
import { documentCoreKey, memberKey } from '../../../domain/membership/keys.js'
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
import { type CoreFault, GuardedBase, type LogGuard } from './guarded-base.js'
import { type WriterClaim, LogWriters } from './log-writers.js'
import { OwnPast } from './own-past.js'
import type { Quarantine } from './quarantine.js'
import { RevokedCores } from './revoked-cores.js'
import { SignedView } from './signed-view.js'
import { Submission } from './submission.js'
import { ViewReader } from './view-reader.js'
import { WriterCores } from '../cores/writer-cores.js'

/** How long a submitted entry may take to be applied, in milliseconds, unless the caller says otherwise. */
const SUBMIT_TIMEOUT_MS = 10_000

/** What a log needs. */
export interface LogDeps {
  readonly store: Corestore
  /** null: a new mesh is made. */
  readonly mesh: null | { readonly key: Uint8Array; readonly encryptionKey: Uint8Array }
  readonly nodeId: NodeId
  readonly sign: Sign
  readonly verify: Verify
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Why the store can take nothing now; null: it can. Absent: nobody looks. */
  writeFault?(): NodeError | null
  /** Which cores starts ended at. Absent: nobody looks. */
  readonly care?: CoreCare
  /** It was found before that the home was put back to an older copy. */
  readonly isRolledBack?: boolean
}

/** Hands an encoded entry to any connected writer. `isAgain`: one said that it had, and the log does not show it. True: one says that it appended it. */
export type EntryRelayPort = (entry: Uint8Array, options: EntryRelayOptions) => Promise<boolean>

/** The Autobase log behind the MemberLog port, and what the rest of the mesh adapter needs of it. */
export class AutobaseLog implements MemberLog {
  /** Key of the mesh: its Autobase's, also as text. */
  readonly key: Uint8Array
  readonly meshId: MeshId
  readonly discoveryKey: Uint8Array
  readonly encryptionKey: Uint8Array
  /** Key (z32) of this node's own writer core. */
  readonly coreKey: string
  /** Resolves when the base closed itself: what it reads is damaged. */
  readonly failed: Promise<Error>
  readonly #deps: LogDeps
  readonly #base: GuardedBase
  readonly #writers: LogWriters
  readonly #reader: ViewReader
  readonly #changes: Emitter<MembershipView>
  readonly #appender: BatchAppender
  readonly #intake: EntryIntake
  readonly #catchUp: CatchUp
  readonly #ownPast: OwnPast
  readonly #signedView: SignedView
  #writerCores: WriterCores | null = null
  readonly #revoked: RevokedCores
  readonly #submissions = new Set<Submission>()
  /** Told of a core that is forked (z32); members whose entries are not taken. */
  #quarantine: Pick<Quarantine, 'add' | 'has'> | null = null
  #relay: EntryRelayPort = () => Promise.resolve(false)
  #isClosed = false

  private constructor(
    deps: LogDeps,
    base: GuardedBase,
    {
      encryptionKey,
      failed,
      writers
    }: { readonly encryptionKey: Uint8Array; readonly failed: Promise<Error>; readonly writers: LogWriters }
  ) {
    this.failed = failed
    this.#writers = writers
    const { telemetry } = deps
    this.#deps = deps
    this.#base = base
    this.key = base.key
    this.meshId = keyToText(base.key)
    this.discoveryKey = base.discoveryKey
    this.encryptionKey = encryptionKey
    this.coreKey = keyToText(base.local.key)
    this.#changes = new Emitter((error) => telemetry.log('error', 'a listener of the log failed', { reason: messageOf(error) }))
    this.#reader = new ViewReader(
      () => base.view,
      (view) => this.#changes.emit(view),
      deps.clock
    )
    this.#appender = new BatchAppender((values) => base.append(values))
    this.#intake = new EntryIntake({ log: this.#intakeLog(), clock: deps.clock, telemetry })
    this.#ownPast = new OwnPast({ core: base.local, clock: deps.clock, isLost: deps.isRolledBack === true })
    this.#signedView = new SignedView(deps.store, base)
    this.#revoked = this.#newRevokedCores()
    this.#catchUp = new CatchUp({
      clock: deps.clock,
      lengths: () => this.#signedView.lengths(),
      isAstray: () => this.#signedView.isAstray(),
      jump: () => this.#jump()
    })
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

  view(): MembershipView {
    return this.#reader.view
  }

  onChange(listener: (view: MembershipView) => void): () => void {
    return this.#changes.on(listener)
  }

  async submit(body: EntryBody, timeoutMs: number = SUBMIT_TIMEOUT_MS): Promise<void> {
    const { clock, nodeId, sign, telemetry } = this.#deps
    const fault = this.#writeFault()
    // The base closes itself for good when its store takes nothing, and spins where its own core has gaps.
    if (fault !== null && this.#base.writable) throw fault
    telemetry.count('log_entries_submitted', body.kind)
    let isClaimed = body.kind !== 'core'
    const offer = async (entry: Uint8Array, isAgain: boolean): Promise<boolean> => {
      if (await this.#offer(entry, isAgain)) return true
      if (isClaimed || this.#isClosed || !this.#mayWrite() || !this.#mayAppend()) return false
      isClaimed = true
      return await this.#base.append([entry], { optimistic: true }).then(() => this.#claimed(entry), no)
    }
    const submission = new Submission({
      entry: seal('entry', body, { id: nodeId, sign }),
      clock,
      timeoutMs,
      view: () => this.view(),
      isClosed: () => this.#isClosed,
      onChange: (listener) => this.#changes.on(listener),
      offer,
      refresh: () => this.#reader.refresh()
    })
    this.#submissions.add(submission)
    await submission.done.finally(() => this.#submissions.delete(submission))
  }

  writable(): boolean {
    return this.#base.writable
  }

  length(): number {
    return this.#base.core.length
  }

  /** Blocks in this node's own writer core, for the idle check. */
  ownLength(): number {
    return this.#base.local.length
  }

  /** Has its own core no room for further entries? Others read only its share of the log; other writers append for it then. */
  get isFull(): boolean {
    const { length, byteLength } = this.#base.local.core.state
    return this.#writers.limitOf(this.coreKey).bytes - chargeOf(length, byteLength) < LOG_SHARE_LIMITS.reserveBytes
  }

  /** Attaches replication to a stream that the gate has passed. */
  replicate(stream: NoiseStream): void {
    this.#base.replicate(stream)
  }

  /** Brings an entry that another node signed into the log. False: it is not taken, here or now. */
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean> {
    return this.#isClosed ? Promise.resolve(false) : this.#intake.take(entry, peer)
  }

  /** Who is told of forked cores, and says whose entries are not taken. */
  setQuarantine(quarantine: Pick<Quarantine, 'add' | 'has'>): void {
    const open = (core: string): Hypercore => this.#open(core)
    const cores = new WriterCores({ clock: this.#deps.clock, open, onForked: (core) => quarantine.add(core) })
    // The first core stays a writer whatever becomes of its owner's home: it alone confirms the log.
    const follow = ({ writers }: MembershipView): void => cores.follow([this.meshId, ...writers.active])
    this.#quarantine = quarantine
    this.#writerCores = cores
    this.onChange(follow)
    follow(this.view())
  }

  /** Why no further block of a core (z32) is read; null: it is read. */
  unreadable(coreKey: string): CoreFault | null {
    return this.#writers.badBlock(coreKey)
  }

  /** Calls back for each core (z32) of which no further block is read, also for those found before. */
  onUnreadable(listener: (coreKey: string, fault: CoreFault) => void): void {
    this.#writers.onBad(listener)
  }

  /** How entries go out while this node is no writer. */
  setRelay(relay: EntryRelayPort): void {
    this.#relay = relay
  }

  /** A new link is there: tells the peer which cores members claim, and offers waiting entries now. */
  linked(relay: Pick<EntryRelay, 'hand'>): void {
    for (const claim of this.#writers.claims()) void relay.hand(claim)
    this.#nudge()
  }

  #nudge(): void {
    for (const submission of [...this.#submissions]) submission.attempt()
  }

  /** Whether the home was put back to an older copy. */
  get ownPast(): Pick<OwnPast, 'fault' | 'lost'> {
    return this.#ownPast
  }

  /** Ends what waits, and the base. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#catchUp.close()
    this.#nudge()
    await this.#reader.close()
    await this.#revoked.close()
    await this.#writerCores?.close()
    await this.#base.close()
  }

  #intakeLog(): IntakeLog {
    return {
      view: () => this.view(),
      onChange: (listener) => this.#changes.on(listener),
      writable: () => this.#base.writable && !this.#isClosed && this.#mayAppend() && !this.isFull,
      isQuarantined: (nodeId) => this.#quarantine?.has(nodeId) === true,
      wouldChange: async (entry) => isChange(await this.#try(entry)),
      claim: (claim, from) => this.#writers.offer(claim, from),
      append: (entry) => this.#appender.append(entry),
      // A writer that hands on is full itself: among such ones an entry could go in circles.
      handOn: (entry, from) => (this.isFull && isWriter(this.view(), from) ? Promise.resolve(false) : this.#relay(entry, { from }))
    }
  }

  isCoreSigned(coreKey: string): Promise<boolean> {
    return this.#isSigned(documentCoreKey(coreKey))
  }

  #open(core: string): Hypercore {
    return this.#deps.store.get({ key: keyFromText(core), writable: false })
  }

  #newRevokedCores(): RevokedCores {
    const { clock, telemetry } = this.#deps
    const open = (core: string): Hypercore => this.#open(core)
    return new RevokedCores({ self: this.coreKey, clock, telemetry, open, needed: (member, core) => this.#needed(member, core) })
  }

  /** As long as the owner has not signed the revocation another entry may still come before it. */
  async #needed(member: NodeId, core: string): Promise<number | null> {
    if (!(await this.#isSigned(memberKey(member)))) return null
    return (await this.#base.system?.get(keyFromText(core)))?.length ?? 0
  }

  async #isSigned(key: string): Promise<boolean> {
    const snapshot = this.#base.view.snapshot()
    try {
      const entry = await snapshot.get(key)
      return entry !== null && entry.seq < this.#base.view.core.core.state.length && !(await this.#signedView.isAstray())
    } finally {
      await snapshot.close()
    }
  }

  async #try(entry: Entry): Promise<FoldResult> {
    const snapshot = this.#base.view.snapshot()
    try {
      return await tryEntry(snapshot, entry, { verify: this.#deps.verify, meshId: this.meshId })
    } finally {
      await snapshot.close()
    }
  }

  /** The own claim is in the own core: others need it before they read that. */
  #claimed(entry: Uint8Array): true {
    this.#writers.remember(this.coreKey, entry)
    void this.#relay(entry, { isForAll: true })
    return true
  }

  #onClaim({ bytes, coreKey }: WriterClaim, from: NodeId): void {
    this.#base.hintWakeup({ key: keyFromText(coreKey), length: 1 })
    void this.#relay(bytes, { from, isForAll: true })
  }

  /** The base does not tell when nothing changed since the last start, so it is read once. */
  async #read(): Promise<void> {
    this.#base.on('update', () => {
      this.#reader.refresh().catch((error: unknown) => {
        if (!this.#isClosed) this.#deps.telemetry.log('error', 'the mesh log could not be read', { reason: messageOf(error) })
      })
    })
    await this.#base.update()
    await this.#reader.refresh()
    for (const [coreKey, entry] of await this.#base.claims()) this.#writers.remember(coreKey, entry)
    const review = (view: MembershipView): void => {
      void this.#writers.review(view).catch(ignore)
      this.#revoked.review(view)
    }
    this.onChange(review)
    review(this.view())
  }

  /** The entries that this node has and the owner has not signed yet are put in order again on top of it. */
  async #jump(): Promise<void> {
    const { telemetry } = this.#deps
    telemetry.log('warn', 'the mesh log stands still or went astray: the view that the owner signed is taken')
    await this.#base
      .repair()
      .catch((error: unknown) => telemetry.log('warn', 'the signed view is not here yet', { reason: messageOf(error) }))
  }

  #mayAppend(): boolean {
    return !this.#ownPast.isBehind && this.#writeFault() === null
  }

  #writeFault(): NodeError | null {
    return this.#ownPast.fault() ?? this.#deps.writeFault?.() ?? null
  }

  /** The right to write; {@link writable} says whether it can be used now. */
  #mayWrite(): boolean {
    return this.view().members.get(this.#deps.nodeId)?.certificate.body.mayWrite === true
  }

  async #offer(entry: Uint8Array, isAgain: boolean): Promise<boolean> {
    if (this.#isClosed) return false
    if (this.#base.writable && !this.#mayAppend()) return false
    const isTaken = this.#base.writable && !this.isFull ? this.#appender.append(entry).then(yes) : this.#relay(entry, { isAgain })
    return isTaken.catch(no)
  }
}

function openBase({ store, mesh, verify, telemetry }: LogDeps, guard: LogGuard, onFailed: (error: Error) => void): GuardedBase {
  const handlers: AutobaseHandlers<Hyperbee> = {
    open: (views) => new Hyperbee(views.get('members'), { keyEncoding: 'utf-8', valueEncoding: 'json', extension: false }),
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

/** A claim that cannot be judged now, since the log is closing, is told again. */
function ignore(): void {}

function yes(): true {
  return true
}

function no(): false {
  return false
}
