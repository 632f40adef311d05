import fs from 'node:fs/promises'
import path from 'node:path'
import { asNodeError, NodeError } from '../kit/errors.js'
import type { HomePaths } from '../config/paths.js'
import { readStartFlags, startFlagsText } from '../config/start-flags.js'
import type { NodeStore } from '../ports/storage.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { replaceFile } from '../adapters/storage/home/atomic-file.js'
import { importsIn, isIdentityMoving, moveFormerNode, movingDir } from '../adapters/storage/home/former-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { isCopied } from '../adapters/storage/home/store-errors.js'
import { nameBeside, type StoredRecord } from '../compose/node-record.js'
import { openStore } from '../compose/open-home.js'
import { Unwind } from '../compose/unwind.js'
import { isThere } from './doctor-documents.js'
import { holdHome, stampOf } from './doctor-stores.js'

/** The intended change of identity of a home. */
export interface IdentityPlan {
  readonly home: string
  /** The node whose home it is or was; nulls where the home does not tell. */
  readonly former: { readonly id: string | null; readonly name: string | null; readonly mesh: string | null }
  /** The name of the new node. */
  readonly name: string
  /** Why the former node lives elsewhere, or no more; null: nothing shows that, so this may be its only home. */
  readonly reason: string | null
  /** Data that stays in the home. */
  readonly kept: readonly string[]
  /** Data of the former node that is moved aside. */
  readonly dropped: readonly string[]
}

/** The changed home. */
export interface NewIdentity extends IdentityPlan {
  /** The directory of the data of the former node, its private key included. */
  readonly movedTo: string
}

/** Options of {@link giveNewIdentity}. */
export interface IdentityOptions {
  /** `--name`; null: see `nameBeside`. */
  readonly name: string | null
  /** `node.name` of the settings. */
  readonly configured: string | null
  /** Also for a home that nothing shows to be a copy. */
  readonly isForced: boolean
  /** The node leaves its mesh: it keeps its name and the flags of `start` about no network. Default: false. */
  readonly isLeaving?: boolean
  /** Unix milliseconds. */
  readonly now: number
  /** Shows the plan to a person; false: nothing is changed. */
  agrees(plan: IdentityPlan): Promise<boolean>
}

/** Entries of a home and their content. Documents of the node that no row names go with its identity. */
const DROPPED: readonly (readonly [string, string])[] = [
  ['seed.json', 'the key of the node, its membership and the mesh log'],
  ['ledger', 'requests, tasks, swarms and messages of the node'],
  ['documents', 'shared documents, which the members of the mesh keep'],
  ['tokens.json', 'access tokens for HTTP'],
  ['oauth-clients.json', 'OAuth clients and their tokens'],
  ['audit', 'the audit log'],
  ['start.flags', 'the flags that start remembers']
]
/** Flags of `start` that hold in any mesh. */
const ANYWHERE: ReadonlySet<string> = new Set(['--agents', '--http'])

/**
 * Makes a home the home of a new node: with a new key, in no mesh. Settings, rules and agent files stay, and so do
 * accepted imports. The rest is moved aside. Another run finishes an interrupted one.
 * @returns null when `agrees` is false.
 * @throws NodeError ALREADY_RUNNING, STORE_LOCKED; CONFLICT for a home without a node, or one that may be the only home
 * of its node; USAGE for the name; NO_PERMISSION, DISK_FULL
 */
export async function giveNewIdentity(home: HomePaths, options: IdentityOptions): Promise<NewIdentity | null> {
  // Before the lock, which needs a directory: nothing is made in a mistyped one.
  if (!(await isHomeOfNode(home))) throw noNode(home)
  const unwind = new Unwind(() => {})
  try {
    await holdHome(home, unwind)
    // Another run may have changed it meanwhile.
    if (!(await isHomeOfNode(home))) throw noNode(home)
    const plan = await planFor(home, options)
    if (plan.reason === null && !options.isForced) throw onlyHome(plan)
    if (!(await options.agrees(plan))) return null
    const flags = options.isLeaving === true ? await flagsOfAnyMesh(home) : ''
    // Its name is that of a new node in no mesh: it has no network yet, and the settings or the invite decide it.
    const rename = async (): Promise<void> => {
      await openNodeStore(home.home).write('node', { name: plan.name } satisfies StoredRecord)
      if (flags !== '') await replaceFile(home.startFlags, flags)
    }
    return { ...plan, movedTo: await moveFormerNode(home.home, stampOf(options.now), rename) }
  } finally {
    await unwind.run()
  }
}

/** Files that only a node makes, one of which each home of a node has. A directory `store` may be anybody's. */
async function isHomeOfNode({ home, store }: HomePaths): Promise<boolean> {
  const documents = ['seed', 'mesh'].flatMap((name) => [`${name}.json`, `${name}.json.copy`])
  for (const place of [...documents.map((file) => path.join(home, file)), markerOf(store)])
    if (await isThere(place)) return true
  return await isIdentityMoving(home)
}

/** The file by which the engine of a store knows that it was copied. */
function markerOf(store: string): string {
  return path.join(store, 'CORESTORE')
}

/** The remembered flags that a node keeps when it leaves its mesh, as their file has them; '' for none. */
async function flagsOfAnyMesh({ home, startFlags }: HomePaths): Promise<string> {
  const places = [startFlags, path.join(movingDir(home), path.basename(startFlags))]
  for (const file of places) {
    const kept = Object.entries((await readStartFlags(file)).texts).filter(([flag]) => ANYWHERE.has(flag))
    if (kept.length > 0) return startFlagsText(Object.fromEntries(kept))
  }
  return ''
}

async function planFor(
  home: HomePaths,
  { name, configured, isLeaving = false }: IdentityOptions
): Promise<IdentityPlan> {
  const documents = openNodeStore(home.home)
  const isMoving = await isIdentityMoving(home.home)
  const moved = isMoving ? openNodeStore(movingDir(home.home)) : documents
  // A damaged document ends with the former node.
  const read = async <T>(document: string): Promise<T | null> =>
    (await moved.read<T>(document).catch(() => null)) ?? (await documents.read<T>(document).catch(() => null))
  const [state, stored] = [await read<MeshState>('mesh'), await read<StoredRecord>('node')]
  const leaf = state?.chain[0]?.body
  const former = { id: leaf?.nodeKey ?? null, name: leaf?.name ?? stored?.name ?? null, mesh: state?.name ?? null }
  return {
    home: home.home,
    former,
    name: isLeaving && former.name !== null ? former.name : nameBeside(former.name, name, configured),
    reason: isMoving ? 'an earlier change of identity was interrupted' : await reasonFor(home, documents, state),
    kept: [
      ...(await keptParts(home)),
      ...(isLeaving && (await flagsOfAnyMesh(home)) !== '' ? [`flags of start: ${[...ANYWHERE].join(', ')}`] : [])
    ],
    dropped: await droppedParts(home, isLeaving)
  }
}

async function reasonFor(home: HomePaths, documents: NodeStore, state: MeshState | null): Promise<string | null> {
  if (await isStoreCopied(home, documents)) return 'its store was copied or moved from elsewhere'
  if (state?.isRevoked === true) return 'the mesh revoked its node'
  if (state?.isReplaced === true) return 'another home of its node replaced it'
  return state?.isRolledBack === true ? 'other members have more of its log than it has' : null
}

async function isStoreCopied(home: HomePaths, documents: NodeStore): Promise<boolean> {
  // Without it the engine would make a store of the directory.
  if (!(await isThere(markerOf(home.store)))) return false
  const unwind = new Unwind(() => {})
  try {
    await openStore(home.store, { unwind, documents })
    return false
  } catch (error) {
    return isCopied(asNodeError(error))
  } finally {
    await unwind.run()
  }
}

async function keptParts({ configFile, policyFile, agents, home }: HomePaths): Promise<readonly string[]> {
  const files = await fs.readdir(agents).catch(() => [])
  const imports = await importsIn(home)
  return [
    ...((await isThere(configFile)) ? [`settings: ${configFile}`] : []),
    ...((await isThere(policyFile)) ? [`rules: ${policyFile}`] : []),
    ...(files.length > 0 ? [`agent files: ${agents} (${files.length})`] : []),
    ...(imports.length > 0 ? [`accepted definitions of imported tool servers and agents (${imports.length})`] : [])
  ]
}

async function droppedParts({ home }: HomePaths, isLeaving: boolean): Promise<readonly string[]> {
  const names = new Set(await fs.readdir(home))
  const found = DROPPED.filter(([name]) => names.has(name))
  return found.map(([name, text]) => (isLeaving && name === 'start.flags' ? 'flags of start about the network' : text))
}

function noNode({ home }: HomePaths): NodeError {
  return new NodeError('CONFLICT', `there is no node in ${home}, so it has no identity to change`, {
    next: ['a2a-node start']
  })
}

/** A mistaken directory would cost a node its membership. */
function onlyHome({ home, former }: IdentityPlan): NodeError {
  const state = `nothing shows that ${home} is a copy: it may be the only home of the node${former.name === null ? '' : ` ${former.name}`}`
  return new NodeError('CONFLICT', `${state}. A cloned disk or machine looks the same: then add --force`, {
    next: ['a2a-node doctor', 'a2a-node doctor --new-identity --force']
  })
}
