import fs from 'node:fs/promises'
import { asNodeError, CHOICE_OF_COPY, COPY_STEPS, NodeError } from '../kit/errors.js'
import type { HomePaths } from '../config/paths.js'
import type { NodeStore } from '../ports/storage.js'
import { refusedJoin } from '../adapters/mesh/pairing/join.js'
import { type LogFacts, readLog } from '../adapters/mesh/log/log-check.js'
import { CORE_CARE } from '../adapters/mesh/log/core-care.js'
import { isShort, LOG_MARKS, readLogMarks } from '../adapters/mesh/log/log-marks.js'
import { type MeshState, takeOver } from '../adapters/mesh/network/mesh-node.js'
import { hash } from '../adapters/mesh/network/sodium.js'
import { LOG_NOT_HERE } from '../adapters/mesh/log/missing-log.js'
import { openDurableLedger } from '../adapters/storage/ledger/durable-ledger.js'
import { assertIdentityWhole, isIdentityMoving } from '../adapters/storage/home/former-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { codeOf, damageError, storeError } from '../adapters/storage/home/store-errors.js'
import { bad, type DoctorCheck, doubtful, good } from './doctor-check.js'
import { coresChecks, repairCores } from './doctor-cores.js'
import { type Aside, beyondRepair, isThere, type Repair, repairDocuments } from './doctor-documents.js'
import { lostText, readDocuments, repairStreams } from './doctor-streams.js'
import { RequestStore } from '../node/requests/store.js'
import { freshEpoch, type StoredRecord } from '../compose/node-record.js'
import { coreMark, ledgerMark, openStore, takeHomeLock } from '../compose/open-home.js'
import { Unwind } from '../compose/unwind.js'

const ROLLED_BACK = 'this home was put back to an older copy: others have more of its log than it has'

/** The user of a home: this process alone, another one, or none for a reason. */
export type HomeUse =
  | { readonly by: 'this process' }
  | { readonly by: 'another process' /** When the pid file tells. */; readonly pid: number | null }
  | { readonly by: 'nobody'; readonly reason: NodeError }

/** Takes the home for this process until `unwind` runs, unless another one has it. Never rejects. */
export async function useHome(home: HomePaths, unwind: Unwind): Promise<HomeUse> {
  try {
    await holdHome(home, unwind)
    return { by: 'this process' }
  } catch (error) {
    const reason = asNodeError(error)
    if (reason.code !== 'ALREADY_RUNNING' && reason.code !== 'STORE_LOCKED') return { by: 'nobody', reason }
    const { pid } = (reason.data ?? {}) as { readonly pid?: unknown }
    return { by: 'another process', pid: typeof pid === 'number' ? pid : null }
  }
}

/** Looks at ledger and store: by opening and reading all of them, when this process has the home. */
export async function diagnoseStores(home: HomePaths, use: HomeUse): Promise<readonly DoctorCheck[]> {
  if (use.by === 'nobody') throw use.reason
  if (use.by !== 'this process')
    return ['mesh', 'ledger', 'streams', 'store', 'cores'].map((name) =>
      good(name, 'in use by the node that runs; stop it to have it read')
    )
  // The rest of its stores is not checked.
  if (await isIdentityMoving(home.home))
    return [failed('mesh', await assertIdentityWhole(home.home).catch((error: unknown) => error))]
  const documents = openNodeStore(home.home)
  const state = await documents.read<MeshState>('mesh').catch(() => undefined)
  // A damaged document has its own check.
  const checks = [
    ...(state === undefined ? [] : [meshCheck(state)]),
    ...(await ledgerChecks(home, documents)),
    await streamsCheck(home, documents)
  ]
  if (state === null || state === undefined) return checks
  return [...checks, await storeCheck(home, documents, state), ...(await coresChecks(documents, state))]
}

function meshCheck(state: MeshState | null): DoctorCheck {
  if (state === null) return doubtful('mesh', 'this home is in no mesh', ['a2a-node start'])
  if (state.isRolledBack === true) return bad('mesh', `${ROLLED_BACK}. ${CHOICE_OF_COPY}`, COPY_STEPS)
  if (state.isRevoked !== true && state.isReplaced !== true) return good('mesh', state.name)
  const { message, next } = refusedJoin(state.isRevoked === true ? 'REVOKED' : 'CONFLICT')
  return bad('mesh', message, next)
}

async function ledgerChecks(home: HomePaths, documents: NodeStore): Promise<readonly DoctorCheck[]> {
  try {
    const { entries, open } = await readLedger(home, documents)
    // A starting node sends each of them again, or asks for its outcome, so each has an owner.
    const requests = open === 0 ? 'all have an outcome' : `${open} without an outcome; the next start goes on with them`
    return [good('ledger', `${entries} entries`), good('requests', requests)]
  } catch (error) {
    return [failed('ledger', error)]
  }
}

async function streamsCheck(home: HomePaths, documents: NodeStore): Promise<DoctorCheck> {
  try {
    const state = await readDocuments(home, documents)
    const lost = lostText(state)
    if (lost === null) return good('streams', `${state.blocks} blocks of shared documents`)
    const text = `${lost}; a node that runs gets them from other members that have them, and a repair goes on without them`
    return bad('streams', text, ['a2a-node start', 'a2a-node doctor --repair'])
  } catch (error) {
    return failed('streams', error)
  }
}

async function storeCheck(home: HomePaths, documents: NodeStore, state: MeshState): Promise<DoctorCheck> {
  try {
    const { blocks } = await readStore(home, documents, state)
    return blocks === 0
      ? doubtful('store', LOG_NOT_HERE.message, [LOG_NOT_HERE.next])
      : good('store', `${blocks} blocks of the mesh log`)
  } catch (error) {
    return failed('store', error)
  }
}

function failed(name: string, error: unknown): DoctorCheck {
  const { message, next } = asNodeError(error)
  // The doctor is at work already.
  return bad(
    name,
    message,
    next.filter((one) => one !== 'a2a-node doctor')
  )
}

/**
 * Repairs a home in which no node runs. A mesh store that is damaged or was replaced is moved aside. The log comes back
 * from other members, the keys stay, and the node writes on a new core. A damaged ledger is moved aside and a new one
 * begins. So is a damaged store of documents; its losses are accepted. Nothing is deleted.
 * @throws NodeError ALREADY_RUNNING, STORE_LOCKED; STORE_DAMAGED when the identity is lost: then a backup helps
 */
export async function repairHome(home: HomePaths, now: number): Promise<readonly Repair[]> {
  const unwind = new Unwind(() => {})
  try {
    await holdHome(home, unwind)
    await assertIdentityWhole(home.home)
    const documents = openNodeStore(home.home)
    const aside = (file: string): Promise<void> =>
      fs.rename(file, `${file}.damaged-${stampOf(now)}`).catch((error: unknown) => {
        if (codeOf(error) !== 'ENOENT') throw error
      })
    const repairs = await repairDocuments(home, documents, aside)
    const state = await documents.read<MeshState>('mesh')
    if (state !== null) repairs.push(...(await repairStore(home, { documents, state, aside })))
    if (state !== null) repairs.push(...(await repairCores(documents, state)))
    repairs.push(...(await repairLedger(home, documents, aside)))
    repairs.push(...(await repairStreams(home, documents, aside)))
    return repairs
  } finally {
    await unwind.run()
  }
}

async function repairStore(
  home: HomePaths,
  { documents, state, aside }: { readonly documents: NodeStore; readonly state: MeshState; readonly aside: Aside }
): Promise<Repair[]> {
  const fault = await readStore(home, documents, state).then(
    () => null,
    (error: unknown) => asNodeError(error)
  )
  if (fault === null && state.isReplaced !== true && state.isRolledBack !== true) return []
  if (fault !== null && fault.code !== 'STORE_DAMAGED') throw fault
  if (fault !== null && (await documents.read('seed')) === null) throw beyondRepair(fault)
  const epoch = freshEpoch()
  // First what keeps the former core from being written again.
  await documents.write('mesh', takeOver(state, epoch))
  await documents.write('node', { ...(await documents.read<StoredRecord>('node')), epoch: epoch + 1 })
  for (const name of ['core', LOG_MARKS, CORE_CARE]) await documents.remove(name)
  // A store keeps to its core as long as it is there, whatever the epoch.
  await aside(home.store)
  const why = fault?.message ?? (state.isRolledBack === true ? ROLLED_BACK : 'another home replaced it')
  const then =
    'it is moved aside and fetched again from other members; the next start replaces every other home of this node'
  const lost = 'entries of the mesh log that no other member has; the rest is fetched from members'
  return [{ name: 'store', text: `${why}; ${then}`, lost }]
}

async function repairLedger(home: HomePaths, documents: NodeStore, aside: Aside): Promise<Repair[]> {
  const fault = await readLedger(home, documents).then(
    () => null,
    (error: unknown) => asNodeError(error)
  )
  if (fault === null) return []
  if (fault.code !== 'STORE_DAMAGED') throw fault
  await aside(home.ledger)
  await documents.remove('ledger')
  const lost =
    'unfinished requests and swarms, messages for peers, and the records of ended ones: callers may repeat those'
  return [{ name: 'ledger', text: `${fault.message}; it is moved aside, and a new one begins`, lost }]
}

/**
 * How many entries the ledger has, all read, and how many requests of this node without an outcome.
 * @throws NodeError STORE_DAMAGED
 */
export async function readLedger(
  home: HomePaths,
  documents: NodeStore
): Promise<{ readonly entries: number; readonly open: number }> {
  const ledger = await openDurableLedger({ dir: home.ledger, durability: 'power', mark: ledgerMark(documents) })
  try {
    const count = { entries: 0, open: 0 }
    for await (const page of ledger.pages(500)) count.entries += page.length
    for await (const { role } of new RequestStore(ledger, hash).pending()) if (role === 'caller') count.open++
    return count
  } finally {
    await ledger.close()
  }
}

/** Reads the store and compares it with the records of the home. @throws NodeError STORE_DAMAGED */
async function readStore(home: HomePaths, documents: NodeStore, state: MeshState): Promise<LogFacts> {
  // Opening it would make one.
  const hasStore = await isThere(home.store)
  // A repair moved it aside: the next start makes a new one.
  if (!hasStore && state.takesOver === true) return { nodeId: '', core: '', length: 0, lengths: new Map(), blocks: 0 }
  if (!hasStore) throw new NodeError('STORE_DAMAGED', `the store ${home.store} is gone`)
  const unwind = new Unwind(() => {})
  try {
    const store = await openStore(home.store, { unwind, documents })
    const facts = await readLog(store, state)
    const nodeId = state.chain[0]?.body.nodeKey ?? facts.nodeId
    const isWhole = facts.nodeId === nodeId && facts.length >= (await coreMark(documents).read(facts.core))
    if (!isWhole || isShort(await readLogMarks(documents, state.key), facts.lengths))
      throw new NodeError('STORE_DAMAGED', `the store ${home.store} has lost data: it is damaged, or an older copy`)
    return facts
  } catch (error) {
    throw damageError(error, home.store)
  } finally {
    await unwind.run()
  }
}

/** Takes the home as a start does, and makes no more of it than the directory that the lock needs. */
export async function holdHome(home: HomePaths, unwind: Unwind): Promise<void> {
  await fs
    .mkdir(home.run, { recursive: true, mode: 0o700 })
    .catch((error: unknown) => Promise.reject(storeError(error, home.run)))
  const lock = await takeHomeLock(home, Date.now())
  unwind.add('lock of the home', () => lock.release())
}

/** A time (unix milliseconds) as part of a file name. */
export function stampOf(now: number): string {
  return new Date(now)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '')
}
