import fs from 'node:fs/promises'
import path from 'node:path'
import type Corestore from 'corestore'
import { NodeError } from '../kit/errors.js'
import { keyFromText } from '../kit/ids.js'
import { isRecord } from '../kit/json.js'
import type { HomePaths } from '../config/paths.js'
import { restoredValue } from '../domain/reliable/restored.js'
import type { BackupInfo, BackupRequest } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import { coreStore } from '../adapters/mesh/cores/core-store.js'
import { copyStreams } from '../adapters/mesh/documents/document-copy.js'
import { copyLog } from '../adapters/mesh/log/log-copy.js'
import { type MeshState, takeOver } from '../adapters/mesh/network/mesh-node.js'
import { type BackupPart, BackupWriter, readBackup } from '../adapters/storage/home/backup-file.js'
import { type LedgerOnDisk, openDurableLedger } from '../adapters/storage/ledger/durable-ledger.js'
import { configDir, filesBelow, homeParts } from '../adapters/storage/home/home-files.js'
import { encodeCommit, NO_SEAL, readJournal } from '../adapters/storage/ledger/ledger-record.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { healStore } from '../adapters/storage/home/store-heal.js'
import { storeError } from '../adapters/storage/home/store-errors.js'
import { systemClock } from '../adapters/system/system-clock.js'
import { freshEpoch, type StoredRecord } from '../compose/node-record.js'
import { claimHome, ledgerMark, openLedger, openStore } from '../compose/open-home.js'
import type { StartOptions } from '../compose/open-home.js'
import { place, restoreAlone, stagedFor } from './restore-place.js'
import { Unwind } from '../compose/unwind.js'
import { VERSION } from '../compose/version.js'

/** Entries of the ledger in one part of a backup. */
const PAGE = 500
/** Names of parts. */
const MANIFEST = 'manifest.json'
const LEDGER_PART = /^ledger\/\d{6}$/
/** Files of a store that belong to the process that has it open. */
const OF_THE_PROCESS = /^LOCK$|^LOG(\.old.*)?$/

/** Sources of a backup: the open stores of a node. */
export interface BackupSources {
  readonly home: HomePaths
  readonly store: Corestore
  /** Puts a copy of all streams of documents into a directory; false: there are none. */
  readonly copyDocuments: (dir: string) => Promise<boolean>
  readonly ledger: LedgerOnDisk
  readonly state: MeshState
  readonly nodeId: string
  readonly createdAt: number
}

/** A restored home. */
export interface RestoredInfo {
  readonly home: string
  readonly node: { readonly id: string; readonly name: string }
  readonly mesh: { readonly id: string; readonly name: string }
  /** When the backup was made. */
  readonly createdAt: string
}

/**
 * Writes a backup of a node whose stores are open.
 * @throws NodeError USAGE, FILE_EXISTS, NO_PERMISSION, DISK_FULL, STORE_DAMAGED
 */
export async function writeBackup(sources: BackupSources, { file, force = false }: BackupRequest): Promise<BackupInfo> {
  if (!path.isAbsolute(file)) throw new NodeError('USAGE', 'the file of a backup is an absolute path')
  const { home, state, nodeId, createdAt } = sources
  if (!path.relative(home.home, file).startsWith('..'))
    throw new NodeError('USAGE', `a backup in ${home.home} would be lost with it`)
  const writer = await BackupWriter.create(file, { mayReplace: force })
  // Copies of the seed are left nowhere but in the file.
  const copy = path.join(home.run, 'backup')
  try {
    await fs.rm(copy, { recursive: true, force: true })
    const node = await openNodeStore(home.home).read<StoredRecord>('node')
    const manifest: Manifest = {
      software: VERSION,
      createdAt: new Date(createdAt).toISOString(),
      node: { id: nodeId, name: state.chain[0]?.body.name ?? node?.name ?? '' },
      mesh: { id: state.key, name: state.name }
    }
    await writer.add({ name: MANIFEST, bytes: Buffer.from(JSON.stringify(manifest)), mode: 0o600 })
    await addLedger(writer, sources.ledger)
    for await (const part of homeParts(home)) await writer.add(part)
    await copyLog(sources.store, keyFromText(state.key), copy).catch((error: unknown) =>
      Promise.reject(storeError(error, copy))
    )
    await addStore(writer, copy, 'store')
    const streams = path.join(home.run, 'backup', 'documents')
    const hasStreams = await sources
      .copyDocuments(streams)
      .catch((error: unknown) => Promise.reject(storeError(error, streams)))
    if (hasStreams) await addStore(writer, streams, 'documents')
    return { file, ...(await writer.finish()), ...manifest }
  } catch (error) {
    await writer.abort()
    throw storeError(error, file)
  } finally {
    await fs.rm(copy, { recursive: true, force: true }).catch(() => {})
  }
}

/**
 * Writes a backup of a home in which no node runs.
 * @throws NodeError as {@link writeBackup}; ALREADY_RUNNING; CONFLICT for a home without a node
 */
export async function backupHome(options: StartOptions, request: BackupRequest): Promise<BackupInfo> {
  const { home } = options
  const documents = openNodeStore(home.home)
  // Claiming it would make one.
  await stateOf(home, documents)
  const clock = systemClock()
  const unwind = new Unwind(() => {})
  try {
    await claimHome({ options, unwind }, clock.now())
    const state = await stateOf(home, documents)
    const store = await openStore(home.store, { unwind, documents })
    const ledger = await openLedger({ options, unwind }, documents)
    const nodeId = state.chain[0]?.body.nodeKey ?? ''
    const copyDocuments = (dir: string): Promise<boolean> => copyStore(home.documents, dir)
    return await writeBackup({ home, store, copyDocuments, ledger, state, nodeId, createdAt: clock.now() }, request)
  } catch (error) {
    throw storeError(error, home.home)
  } finally {
    await unwind.run()
  }
}

/** The mesh state of a home, which may change until the home is claimed. @throws NodeError CONFLICT */
async function stateOf({ home }: HomePaths, documents: NodeStore): Promise<MeshState> {
  const state = await documents.read<MeshState>('mesh')
  if (state === null) throw new NodeError('CONFLICT', `there is no node in ${home}`, { next: ['a2a-node start'] })
  return state
}

/**
 * Makes a home of a backup, where there is none: all of it or nothing. It keeps the identity and takes a writer core of
 * its own, by chance, so that two homes of one backup never share one.
 * @throws NodeError STORE_DAMAGED (before anything is written), CONFLICT for a home with data, USAGE, NO_PERMISSION,
 * DISK_FULL
 */
export async function restoreHome(home: HomePaths, file: string): Promise<RestoredInfo> {
  const manifest = await checkBackup(file)
  await restoreAlone(home, systemClock().now(), () => restoreTo(home, file))
  return { home: home.home, ...manifest }
}

async function restoreTo(home: HomePaths, file: string): Promise<void> {
  await assertEmpty(home)
  const staged = stagedFor(home)
  try {
    await fs.mkdir(staged, { mode: 0o700 })
    await unpack(file, { staged, isShared: configDir(home) === home.home })
    await renew(staged)
    await renewStreams(staged)
    await place(home)
  } catch (error) {
    await fs.rm(staged, { recursive: true, force: true })
    throw storeError(error, home.home)
  }
}

type Manifest = Omit<RestoredInfo, 'home'> & { readonly software: string }

async function addLedger(writer: BackupWriter, ledger: LedgerOnDisk): Promise<void> {
  let number = 0
  for await (const page of ledger.pages(PAGE)) {
    number++
    const { record: bytes } = encodeCommit({ number, promised: 0, changes: page }, NO_SEAL)
    await writer.add({ name: `ledger/${String(number).padStart(6, '0')}`, bytes, mode: 0o600 })
  }
}

/** Without the file that ties a store to its place: the first start makes one. */
async function addStore(writer: BackupWriter, dir: string, name: 'store' | 'documents'): Promise<void> {
  for (const file of await filesBelow(path.join(dir, 'db'))) {
    if (OF_THE_PROCESS.test(file.name)) continue
    await writer.add({
      name: `home/${name}/db/${file.name}`,
      bytes: await fs.readFile(path.join(dir, 'db', file.name)),
      mode: 0o600
    })
  }
}

/** Reads all of it once before anything is written. */
async function checkBackup(file: string): Promise<Manifest> {
  let manifest: Manifest | null = null
  for await (const { name, bytes } of readBackup(file)) if (name === MANIFEST) manifest = readManifest(bytes)
  if (manifest === null) throw new NodeError('STORE_DAMAGED', `the backup ${file} has no manifest`)
  return manifest
}

function readManifest(bytes: Uint8Array): Manifest | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString())
    // Its checksum fits: this program wrote it.
    return isRecord(value) && isRecord(value['node']) && isRecord(value['mesh']) ? (value as unknown as Manifest) : null
  } catch {
    return null
  }
}

async function assertEmpty(home: HomePaths): Promise<void> {
  const config = [home.configFile, home.policyFile, home.agents]
  const found = [...(await entriesOf(home.home)), ...(await Promise.all(config.map(entriesOf))).flat()]
  const [one] = found
  if (one === undefined) return
  throw new NodeError('CONFLICT', `restore target is not empty: found ${one}`, {
    next: ['a2a-node restore <file> --home <new directory>']
  })
}

/** A file, or the entries of a directory. */
async function entriesOf(where: string): Promise<string[]> {
  const stats = await fs.stat(where).catch(() => null)
  if (stats === null) return []
  return stats.isDirectory() ? (await fs.readdir(where)).map((name) => path.join(where, name)) : [where]
}

async function unpack(file: string, to: { readonly staged: string; readonly isShared: boolean }): Promise<void> {
  const { staged } = to
  const documents = openNodeStore(staged)
  const ledger = await openDurableLedger({
    dir: path.join(staged, 'ledger'),
    durability: 'power',
    mark: ledgerMark(documents)
  })
  try {
    for await (const part of readBackup(file)) {
      if (LEDGER_PART.test(part.name)) await fillLedger(ledger, part)
      else await unpackFile(part, to)
    }
  } finally {
    await ledger.close()
  }
}

async function fillLedger(ledger: LedgerOnDisk, { bytes }: BackupPart): Promise<void> {
  for (const { changes } of readJournal(Buffer.from(bytes), NO_SEAL)) {
    await ledger.commit(
      changes.map(({ key, value }) => ({ key, value: value === null ? null : restoredValue(key, value) }))
    )
  }
}

async function unpackFile(
  { name, bytes, mode }: BackupPart,
  { staged, isShared }: { staged: string; isShared: boolean }
): Promise<void> {
  const [space = '', ...rest] = name.split('/')
  if ((space !== 'home' && space !== 'config') || rest.length === 0) return
  const file = path.join(staged, ...(space === 'home' || isShared ? [] : ['config']), ...rest)
  await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  const handle = await fs.open(file, 'wx', mode)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Copies the streams of a closed store; false: there is no such store. */
async function copyStore(dir: string, to: string): Promise<boolean> {
  if ((await fs.stat(path.join(dir, 'db')).catch(() => null)) === null) return false
  await healStore(dir)
  const store = coreStore(dir)
  try {
    await store.ready()
    await copyStreams(store, to)
  } finally {
    await store.close()
  }
  return true
}

/** A seed of its own for each home: two that are restored of one backup write different streams of documents. */
async function renewStreams(dir: string): Promise<void> {
  const [documents, former] = [path.join(dir, 'documents'), path.join(dir, 'documents.former')]
  if ((await fs.stat(documents).catch(() => null)) === null) return
  await fs.rename(documents, former)
  await copyStore(former, documents)
  await fs.rm(former, { recursive: true })
  // It ties a store to its place; the first start makes one.
  await fs.rm(path.join(documents, 'CORESTORE'), { force: true })
}

/** Another number for the cores of the mesh, and the mark by which this home takes the place of the former one. */
async function renew(dir: string): Promise<void> {
  const documents = openNodeStore(dir)
  const [state, record] = [await documents.read<MeshState>('mesh'), await documents.read<StoredRecord>('node')]
  if (state === null) throw new NodeError('STORE_DAMAGED', 'the backup holds no mesh')
  const epoch = freshEpoch()
  await documents.write('mesh', takeOver(state, epoch))
  await documents.write('node', { ...record, epoch: epoch + 1 })
}
