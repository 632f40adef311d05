import fs from 'node:fs/promises'
import path from 'node:path'
import type { HomePaths } from '../config/paths.js'
import { syncDir } from '../adapters/storage/home/atomic-file.js'
import { entriesOfHome } from '../adapters/storage/home/former-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { storeError } from '../adapters/storage/home/store-errors.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import type { StoredRecord } from '../compose/node-record.js'
import { Unwind } from '../compose/unwind.js'
import { NodeError } from '../kit/errors.js'
import { isThere } from './doctor-documents.js'
import { holdHome } from './doctor-stores.js'

/** The intended removal of the data of a home. */
export interface ResetPlan {
  readonly home: string
  /** Its node; nulls where the home does not tell. */
  readonly node: { readonly name: string | null; readonly mesh: string | null }
  /** Absolute paths of the files and directories to remove. */
  readonly removed: readonly string[]
  /** Absolute paths of settings, rules and agent files, which stay. */
  readonly kept: readonly string[]
}

/**
 * Removes the data that nodes made in a home: stores, keys, logs, data of former nodes. Settings, rules, agent files
 * and unknown files stay. Another run finishes an interrupted one.
 * @param agrees shows the plan to a person; false: nothing is removed
 * @returns the plan; null when `agrees` is false
 * @throws NodeError CONFLICT for a home without a node; ALREADY_RUNNING, STORE_LOCKED, NO_PERMISSION
 */
export async function resetHome(
  home: HomePaths,
  agrees: (plan: ResetPlan) => Promise<boolean>
): Promise<ResetPlan | null> {
  // Before the lock, which needs a directory: nothing is made in a mistyped one.
  if ((await entriesOfHome(home.home)).length === 0) throw noNode(home)
  const unwind = new Unwind(() => {})
  let plan: ResetPlan
  try {
    await holdHome(home, unwind)
    plan = await planOf(home)
    if (!(await agrees(plan))) return null
    for (const place of plan.removed) await fs.rm(place, { recursive: true, force: true })
    await syncDir(home.home)
  } catch (error) {
    throw storeError(error, home.home)
  } finally {
    await unwind.run()
  }
  // Only empty ones go.
  for (const dir of [home.run, home.agents, home.home]) await fs.rmdir(dir).catch(() => {})
  return plan
}

async function planOf(home: HomePaths): Promise<ResetPlan> {
  const documents = openNodeStore(home.home)
  const state = await documents.read<MeshState>('mesh').catch(() => null)
  const stored = await documents.read<StoredRecord>('node').catch(() => null)
  const removed = (await entriesOfHome(home.home)).map((name) => path.join(home.home, name))
  const files = await fs.readdir(home.agents).catch(() => [])
  const kept = [home.configFile, home.policyFile, ...(files.length > 0 ? [home.agents] : [])]
  const isKept = await Promise.all(kept.map(async (place) => await isThere(place)))
  return {
    home: home.home,
    node: { name: state?.chain[0]?.body.name ?? stored?.name ?? null, mesh: state?.name ?? null },
    removed,
    kept: kept.filter((_, i) => isKept[i])
  }
}

function noNode({ home }: HomePaths): NodeError {
  return new NodeError('CONFLICT', `there is no data of a node in ${home}`, { next: ['a2a-node config path'] })
}
