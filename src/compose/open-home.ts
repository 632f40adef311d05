import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type Corestore from 'corestore'
import type { Clock } from '../kit/clock.js'
import { messageOf } from '../kit/errors.js'
import { type ErrorCode, NodeError, REPAIR_STEPS } from '../kit/errors.js'
import { keyFromText, keyToText } from '../kit/ids.js'
import type { PolicySource } from '../ports/policy.js'
import type { Ledger } from '../ports/ledger.js'
import type { Problem } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Config } from '../config/settings.js'
import { startFlagsText } from '../config/start-flags.js'
import type { StartFlagTexts } from '../config/start-options.js'
import { readIfThere, replaceFile } from '../adapters/storage/home/atomic-file.js'
import type { HomePaths } from '../config/paths.js'
import { CoreCare } from '../adapters/mesh/log/core-care.js'
import { LogMarks } from '../adapters/mesh/log/log-marks.js'
import type { MeshNode, MeshState } from '../adapters/mesh/network/mesh-node.js'
import { closeStore, coreStore } from '../adapters/mesh/cores/core-store.js'
import { DocumentCores } from '../adapters/mesh/documents/document-cores.js'
import {
  type DurableLedgerOptions,
  type LedgerOnDisk,
  openDurableLedger
} from '../adapters/storage/ledger/durable-ledger.js'
import { openAudit as openAuditLog } from '../adapters/storage/audit/audit-log.js'
import { AuditWatch } from '../adapters/storage/audit/audit-watch.js'
import { assertIdentityWhole } from '../adapters/storage/home/former-node.js'
import { FreshHome } from '../adapters/storage/home/fresh-home.js'
import { openBallast } from '../adapters/storage/home/ballast.js'
import { readFaultNote, removeFaultNote, writeFaultNote } from '../adapters/storage/home/fault-note.js'
import { GuardedLedger } from '../adapters/storage/ledger/guarded-ledger.js'
import { makeDataDirs } from '../adapters/storage/home/data-dir.js'
import { isDiskFull } from '../adapters/storage/home/disk-space.js'
import { mendDocuments, openNodeStore } from '../adapters/storage/home/node-store.js'
import { openPolicyFile } from '../adapters/storage/policy/policy-file.js'
import { type ProcessLock, takeProcessLock } from '../adapters/storage/home/process-lock.js'
import { damageError, diskFull, storeError } from '../adapters/storage/home/store-errors.js'
import { type WriteFaults, writeProblem } from '../adapters/storage/home/write-faults.js'
import { healStore } from '../adapters/storage/home/store-heal.js'
import { MemoryTelemetry } from '../adapters/telemetry/memory-telemetry.js'
import { REDACT_KEYS } from '../adapters/telemetry/redact.js'
import type { LastFault, NodeDeps } from '../node/dependencies.js'
import type { PackageFault } from '../kit/package-fault.js'
import type { ConfigReload, ReloadSource } from './config-reload.js'
import type { PackageFaults } from './package-faults.js'
import type { Unwind } from './unwind.js'

/** Name of the document with the number of commits of the ledger. */
const LEDGER = 'ledger'
/** Name of the document with the seed of every key of the node. */
const SEED = 'seed'
/** Name of the document with the length of the own writer core. */
const CORE = 'core'

interface SeedDocument {
  /** z32. */
  readonly key: string
}

/** The flags of a start, for the next start of the home. */
export interface StartMemory {
  /** null: the file stays as it is. */
  readonly texts: StartFlagTexts | null
  /** Faults for which flags of the last start are not in force. */
  readonly faults: readonly string[]
}

/** Options of a start. */
export interface StartOptions {
  readonly config: Config
  readonly home: HomePaths
  /** `--name`: its name in the mesh. A node in a mesh keeps its name; admins may rename it. */
  readonly name: string | null
  /** Invite code; null founds a mesh or opens the one of the home. */
  readonly join: string | null
  /** Ignores the code when the home is in a mesh. Default: false, which makes that an error. */
  readonly joinsOnce?: boolean
  readonly extraAgentDirs: readonly string[]
  /** Flags that the home gets for its next start, once this one succeeded. Absent: its memory stays as it is. */
  readonly memory?: StartMemory
  readonly onProgress?: (line: string) => void
  /** Called with the number of MCP clients of this machine whenever it changes. */
  readonly onMcpClients?: (count: number) => void
  /** The config of the next start; `status` then names changed settings. Absent: it does not. */
  readonly configSource?: ReloadSource
  /** Redirects the output of packages to the log. */
  readonly packageOutput?: (log: (line: string) => void) => void
  /**
   * Registers a listener for uncaught errors of packages: the node goes on and reports them. Absent: they end the
   * process.
   */
  readonly packageErrors?: (listener: (fault: PackageFault) => void) => void
  /**
   * Registers a listener for the fatal error of this process: the next start does not rerun the work of that moment.
   */
  readonly ownErrors?: (listener: (error: unknown) => void) => void
  /** Writes log lines. Default: to stderr; null: no log. */
  readonly log?: ((line: string) => void) | null
  /** The file of the log, when its last write failed, and the error. Absent: the log has no file of its own. */
  readonly logFault?: () => { readonly file: string; readonly error: unknown } | null
}

/** Makes the telemetry. Loads pino only for the format `json`. */
export async function openTelemetry({ config, log }: StartOptions, clock: Clock): Promise<MemoryTelemetry> {
  const { level, format, redactKeys } = config.log
  const write = log === undefined ? (line: string) => void process.stderr.write(line) : log
  return new MemoryTelemetry({
    clock,
    level: write === null ? null : level,
    format: format === 'json' ? (await import('../adapters/telemetry/json-lines.js')).jsonLines : 'text',
    redactKeys: [...REDACT_KEYS, ...redactKeys],
    write: write ?? (() => {})
  })
}

/** Dependencies of all steps of a start. */
export interface StartDeps {
  readonly options: StartOptions
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly unwind: Unwind
  /** The config in force. */
  readonly reload: ConfigReload
  /** Errors of packages that the node survived. */
  readonly faults: PackageFaults
  /** Files of the home whose last write failed. */
  readonly writes: WriteFaults
}

/**
 * Makes the directories and locks the home for this process, until `unwind` runs or the process ends. All writers of a
 * home must claim it first. @throws NodeError ALREADY_RUNNING, STORE_LOCKED, NO_PERMISSION, DISK_FULL, PATH_TOO_LONG,
 * CONFIG_INVALID
 */
export async function claimHome(
  { options: { home }, unwind }: Pick<StartDeps, 'options' | 'unwind'>,
  startedAt: number
): Promise<void> {
  await makeDataDirs({ home: home.home, dirs: [home.store, home.run, home.audit, home.agents] })
  const lock = await takeHomeLock(home, startedAt)
  unwind.add('lock of the home', () => lock.release())
  await assertIdentityWhole(home.home)
}

/** Errors of a home that another process has. */
const LOCKED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['ALREADY_RUNNING', 'STORE_LOCKED'])

/**
 * Claims a home as {@link claimHome}. When the start fails before `keep`, a home that held nothing before is removed
 * again.
 */
export async function claimForStart(deps: StartDeps, startedAt: number): Promise<FreshHome> {
  const { home, run, logFile, store, audit, agents } = deps.options.home
  const inside = [store, audit, agents].filter((dir) => !path.relative(home, dir).startsWith('..'))
  const fresh = await FreshHome.before({ home, run, logFile, dirs: inside })
  deps.unwind.add('directories of the home', () => fresh.removeDirectories())
  await claimHome(deps, startedAt).catch((error: unknown) => {
    // Another process has the home.
    if (error instanceof NodeError && LOCKED.has(error.code)) fresh.keep()
    throw error
  })
  await fresh.look()
  deps.unwind.add('content of the home', () => fresh.removeContent())
  return fresh
}

/**
 * Locks a home for this process; its `run` directory must exist.
 * @throws NodeError ALREADY_RUNNING, STORE_LOCKED, NO_PERMISSION, DISK_FULL
 */
export async function takeHomeLock({ run, socket }: HomePaths, startedAt: number): Promise<ProcessLock> {
  return await takeProcessLock(path.join(run, 'node'), { pid: process.pid, startedAt, socket })
}

/**
 * Reads the fatal error of the previous process, and records that of this one from now on. Claim the home first.
 * @throws NodeError NO_PERMISSION
 */
export async function openLastFault({ options, telemetry }: StartDeps): Promise<LastFault | null> {
  const file = path.join(options.home.run, 'fault')
  const reason = await readFaultNote(file)
  options.ownErrors?.((error) => writeFaultNote(file, messageOf(error)))
  const onError = (error: unknown): void =>
    telemetry.log('warn', 'the note of the last error could not be removed', { reason: messageOf(error) })
  return reason === null ? null : { reason, settled: () => removeFaultNote(file).catch(onError) }
}

/** Opens the audit log and its integrity check. */
export async function openAudit({
  options: { home },
  clock,
  telemetry,
  unwind,
  writes
}: StartDeps): Promise<Pick<NodeDeps, 'audit' | 'problems'>> {
  const watch = new AuditWatch({ dir: home.audit, seen: home.auditSeen, clock, telemetry })
  const audit = await openAuditLog({
    dir: home.audit,
    seen: home.auditSeen,
    clock,
    onError: (error, _dropped, file) => {
      writes.report(file, { error })
      telemetry.log('error', 'the audit log', { reason: error.message })
    },
    onRecovered: (file) => {
      writes.report(file, null)
      // A removed file took lines with it.
      watch.check()
    }
  })
  unwind.add('audit log', () => audit.close())
  watch.check()
  unwind.add('check of the audit log', () => watch.close())
  const gone = (): readonly Problem[] => (existsSync(home.audit) ? [] : [writeProblem(home.audit, { code: 'ENOENT' })])
  return { audit, problems: () => [...watch.problems(), ...gone()] }
}

/** Opens the policy file, before any join: a broken policy fails it. `isNew`: the home is in no mesh yet. */
export function openPolicy({ options: { home }, telemetry }: StartDeps, isNew: boolean): Promise<PolicySource> {
  const log: MemoryTelemetry['log'] = (level, message, fields) => telemetry.log(level, message, fields)
  return openPolicyFile({ file: home.policyFile, seen: path.join(home.home, 'policy.seen'), isNew, log })
}

/**
 * Opens the documents of the home. `mended`: damaged files restored from their copies, for `status`, since the disk may
 * fail.
 */
export async function openHomeDocuments({
  options: { home },
  telemetry,
  writes
}: StartDeps): Promise<{ readonly documents: NodeStore; readonly mended: readonly Problem[] }> {
  const files = await mendDocuments(home.home)
  const mended = files.map(({ file }) => {
    telemetry.log('warn', 'a damaged file was made again from its copy', { file })
    return {
      code: 'STORE_DAMAGED',
      message: `the file ${file} was damaged; it was made again from its copy`,
      next: 'a2a-node doctor'
    }
  })
  const documents = openNodeStore(home.home, (file, failed) => writes.report(file, failed))
  return { documents, mended }
}

/** Opens the ledger. Its number of commits is stored separately: fewer commits mean damage or an old copy. */
export async function openLedger(
  { options: { home, config }, unwind }: Pick<StartDeps, 'options' | 'unwind'>,
  documents: NodeStore
): Promise<LedgerOnDisk> {
  const ledger = await openDurableLedger({
    dir: home.ledger,
    durability: config.ledger.durability,
    mark: ledgerMark(documents)
  })
  unwind.add('ledger', () => ledger.close())
  return ledger
}

/** Makes the ledger read-only when its disk is full; a ballast file in the home is freed then. */
export function guardLedger({ options: { home }, clock, telemetry, unwind }: StartDeps, ledger: Ledger): GuardedLedger {
  const guarded = new GuardedLedger({
    clock,
    telemetry,
    ledger,
    ballast: openBallast(path.join(home.home, 'ballast')),
    dir: home.ledger
  })
  unwind.add('guard of the ledger', () => guarded.close())
  return guarded
}

/**
 * The error of a full disk, as the ledger (which reserves space for final records) or the disk itself reports it; else
 * null.
 */
export function fullDisk(store: string, { fault }: Pick<Ledger, 'fault'>): NodeError | null {
  return fault?.code === 'DISK_FULL' || isDiskFull(store) ? diskFull(store) : null
}

/** Stores the number of commits of the ledger as a document of the home. */
export function ledgerMark(documents: NodeStore): DurableLedgerOptions['mark'] {
  return {
    read: async () => (await documents.read<{ commits: number }>(LEDGER))?.commits ?? 0,
    write: (commits) => documents.write(LEDGER, { commits })
  }
}

/**
 * Opens the store of the mesh. A document keeps the seed of its keys as well: a store without it, or with another, is
 * not of this node. @throws NodeError STORE_DAMAGED, STORE_LOCKED, DISK_FULL, NO_PERMISSION
 */
export async function openStore(
  dir: string,
  { unwind, documents }: { unwind: Unwind; documents: NodeStore }
): Promise<Corestore> {
  const seed = await documents.read<SeedDocument>(SEED)
  try {
    // The engine would make a directory that other users can read.
    await fs.mkdir(dir, { recursive: true, mode: 0o700 })
    await healStore(dir)
    const store = coreStore(dir, seed === null ? {} : { primaryKey: keyFromText(seed.key), unsafe: true })
    unwind.add('store', () => closeStore(store))
    await store.ready()
    if (seed === null) await documents.write(SEED, { key: keyToText(store.primaryKey) } satisfies SeedDocument)
    return store
  } catch (error) {
    throw damageError(error, dir)
  }
}

/**
 * Opens or makes the store of shared documents.
 * @throws NodeError STORE_DAMAGED, STORE_LOCKED, DISK_FULL, NO_PERMISSION
 */
export async function openDocumentStore({ home, documents }: HomePaths): Promise<Corestore> {
  try {
    await makeDataDirs({ home, dirs: [documents] })
    await healStore(documents)
    const store = coreStore(documents)
    await store.ready().catch(async (error: unknown) => {
      await closeStore(store).catch(() => {})
      throw error
    })
    return store
  } catch (error) {
    throw damageError(error, documents)
  }
}

/** The cores of shared documents; the store is opened when the first one is replicated or written. */
export function openDocuments({ options: { home }, clock, telemetry, unwind }: StartDeps): DocumentCores {
  const toError = (error: unknown): NodeError => {
    const failure = storeError(error, home.documents)
    if (failure.code !== 'STORE_DAMAGED') return failure
    return new NodeError(failure.code, failure.message, { cause: error, next: REPAIR_STEPS })
  }
  const cores = new DocumentCores({ open: () => openDocumentStore(home), toError, clock, telemetry })
  unwind.add('documents', () => cores.close())
  return cores
}

/** Stores the greatest known length of the own writer core. */
export function coreMark(documents: NodeStore): {
  read(core: string): Promise<number>
  write(core: string, length: number): Promise<void>
} {
  return {
    read: async (core) => {
      const mark = await documents.read<{ core: string; length: number }>(CORE)
      return mark?.core === core ? mark.length : 0
    },
    write: (core, length) => documents.write(CORE, { core, length })
  }
}

/** Records the local lengths of the mesh log from now on, and reports losses. */
export async function openLogMarks(
  { clock, telemetry, unwind }: StartDeps,
  {
    mesh,
    ...of
  }: { readonly mesh: Pick<MeshNode, 'log' | 'meshId'>; readonly store: Corestore; readonly documents: NodeStore }
): Promise<LogMarks> {
  const marks = new LogMarks({ ...of, meshId: mesh.meshId, log: mesh.log, clock, telemetry })
  unwind.add('marks of the log', () => marks.close())
  await marks.start().catch((error: unknown) => Promise.reject(damageError(error, 'the store of the mesh')))
  return marks
}

/** Counts a start that reads the mesh log; see {@link CoreCare}. */
export async function openCare(
  { telemetry, unwind }: StartDeps,
  { documents, state }: { readonly documents: NodeStore; readonly state: MeshState | null }
): Promise<CoreCare> {
  const care = await CoreCare.begin({ documents, telemetry, mesh: state })
  unwind.add('cares of the log', () => care.close())
  return care
}

/** Records the length of the own writer core from now on. */
export function keepMark(
  mesh: Pick<MeshNode, 'log' | 'ownLength'>,
  { documents, telemetry }: { documents: NodeStore; telemetry: Telemetry }
): void {
  const mark = coreMark(documents)
  let kept = -1
  const keep = (): void => {
    const length = mesh.ownLength()
    if (length <= kept) return
    kept = length
    mark
      .write(mesh.log.coreKey, length)
      .catch((error: unknown) =>
        telemetry.log('error', 'the length of the own core could not be kept', { reason: messageOf(error) })
      )
  }
  mesh.log.onChange(keep)
  keep()
}

/**
 * Writes the flags of a start that succeeded into its home (0600). A failure is reported and tried again: the node runs
 * all the same.
 */
export async function rememberFlags(
  file: string,
  { texts }: StartMemory,
  { telemetry, writes }: { readonly telemetry: Pick<Telemetry, 'log'>; readonly writes: Pick<WriteFaults, 'report'> }
): Promise<void> {
  if (texts === null) return
  const text = startFlagsText(texts)
  const write = async (): Promise<void> => {
    if ((await readIfThere(file).catch(() => undefined)) === text) return
    if (text === '') await fs.rm(file, { force: true })
    else await replaceFile(file, text)
  }
  await write().catch((error: unknown) => {
    writes.report(file, { error, again: write })
    telemetry.log('warn', 'the flags of this start could not be remembered', { file, reason: messageOf(error) })
  })
}

/** The problem of a log file that takes nothing, for `status`. */
export function logProblems({ logFault }: StartOptions): readonly Problem[] {
  const fault = logFault?.() ?? null
  return fault === null ? [] : [writeProblem(fault.file, fault.error)]
}

/** Flags of the last start that are not in force, for `status`. */
export function memoryProblems(memory: StartMemory | undefined): readonly Problem[] {
  return (memory?.faults ?? []).map((fault) => ({
    code: 'STORE_DAMAGED',
    message: `${fault}, so flags of the last start are not in force: stop the node, and start it with them`,
    next: 'a2a-node config show'
  }))
}
