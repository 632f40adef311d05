import type { HomePaths } from '../config/paths.js'
import { readInviteCode } from '../adapters/mesh/pairing/join.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { formerDir, isIdentityMoving } from '../adapters/storage/home/former-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { NodeError } from '../kit/errors.js'
import { stampOf } from './doctor-stores.js'
import { isUnused, type MeshUse, readMeshUse } from './mesh-use.js'
import { type IdentityPlan, giveNewIdentity, type NewIdentity } from './new-identity.js'

/** The intended end of the membership of a home. */
export interface LeavePlan extends Pick<IdentityPlan, 'home' | 'former' | 'name' | 'kept' | 'dropped'> {
  /** null: an earlier run was interrupted, so only its rest is left. */
  readonly use: MeshUse | null
  /** Nobody loses anything by it: see `isUnused`. */
  readonly isUnused: boolean
  /** Directory in the home that gets the data of the former node. */
  readonly into: string
}

/** The home after its node left: the plan and the directory with the data of the former node. */
export type LeftMesh = Pick<NewIdentity, 'home' | 'former' | 'name' | 'kept' | 'dropped' | 'movedTo'>

/** Options of {@link leaveMesh}. */
export interface LeaveOptions {
  /** Unix milliseconds. */
  readonly now: number
  /** Shows the plan to a person; false: nothing is changed. */
  agrees(plan: LeavePlan): Promise<boolean>
}

/**
 * Takes a home out of its mesh: its node gets a new key and keeps its name. Settings, rules, agent files and accepted
 * imports stay; the data of the former node is moved aside, into the home. Nothing is deleted. Another run finishes an
 * interrupted one.
 * @returns null when `agrees` is false.
 * @throws NodeError CONFLICT for a home in no mesh; ALREADY_RUNNING, STORE_LOCKED, NO_PERMISSION, DISK_FULL
 */
export async function leaveMesh(home: HomePaths, { now, agrees }: LeaveOptions): Promise<LeftMesh | null> {
  const isMoving = await isIdentityMoving(home.home)
  if (!isMoving && (await meshOf(home)) === null)
    throw new NodeError('CONFLICT', `the home ${home.home} is in no mesh`, { next: ['a2a-node start --join -'] })
  return await giveNewIdentity(home, {
    name: null,
    configured: null,
    isForced: true,
    isLeaving: true,
    now,
    agrees: async (plan) => {
      const use = isMoving ? null : await readMeshUse(home)
      const into = formerDir(home.home, stampOf(now))
      return await agrees({ ...plan, use, isUnused: use === null || isUnused(use), into })
    }
  })
}

/**
 * The same before a join by a code, which is read first: a mistyped one changes nothing.
 * @returns null for a home in no mesh, and when `agrees` is false
 * @throws NodeError as {@link leaveMesh}; INVITE_INVALID for the code
 */
export async function leaveForJoin(home: HomePaths, code: string, options: LeaveOptions): Promise<LeftMesh | null> {
  if ((await meshOf(home)) === null && !(await isIdentityMoving(home.home))) return null
  readInviteCode(code)
  return await leaveMesh(home, options)
}

/** The record of the mesh of a home; a damaged one is no reason to stay. */
async function meshOf({ home }: HomePaths): Promise<MeshState | 'damaged' | null> {
  return await openNodeStore(home)
    .read<MeshState>('mesh')
    .catch(() => 'damaged' as const)
}
