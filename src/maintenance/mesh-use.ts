import type { HomePaths } from '../config/paths.js'
import { readMembership } from '../adapters/mesh/network/mesh.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'
import { systemClock } from '../adapters/system/system-clock.js'
import { MemoryTelemetry } from '../adapters/telemetry/memory-telemetry.js'
import { openStore } from '../compose/open-home.js'
import { Unwind } from '../compose/unwind.js'
import { isActive } from '../domain/membership/view.js'
import type { NodeStore } from '../ports/storage.js'
import { readLedger } from './doctor-stores.js'

/** The mesh of a home in which no node runs, and the data that the home has of it. */
export interface MeshUse {
  readonly mesh: string
  /** The mesh revoked its node, or another home replaced it. */
  readonly isOut: boolean
  /** Its node founded the mesh. */
  readonly isOwner: boolean
  /** Names of the other members; null when the log of the mesh cannot be read. */
  readonly others: readonly string[] | null
  /** Unfinished requests and shared documents, in words; null when they cannot be read. */
  readonly work: readonly string[] | null
}

const UNREADABLE: MeshUse = { mesh: 'unknown', isOut: false, isOwner: false, others: null, work: null }

/** Can a node leave this mesh without a loss for anybody? False also where that cannot be read. */
export function isUnused({ isOut, others, work }: MeshUse): boolean {
  return isOut || (others?.length === 0 && work?.length === 0)
}

/** Reads {@link MeshUse}; hold the lock of the home. Null for a home in no mesh. */
export async function readMeshUse(home: HomePaths): Promise<MeshUse | null> {
  const documents = openNodeStore(home.home)
  const state = await documents.read<MeshState>('mesh').catch(() => undefined)
  if (state === null) return null
  if (state === undefined) return UNREADABLE
  const nodeKey = state.chain[0]?.body.nodeKey
  const facts = await readFacts(home, { documents, state }).catch(() => ({ others: null, work: null }))
  return {
    mesh: state.name,
    isOut: state.isRevoked === true || state.isReplaced === true,
    isOwner: nodeKey === state.owner,
    ...facts
  }
}

async function readFacts(
  home: HomePaths,
  { documents, state }: { readonly documents: NodeStore; readonly state: MeshState }
): Promise<Pick<MeshUse, 'others' | 'work'>> {
  const unwind = new Unwind(() => {})
  try {
    const store = await openStore(home.store, { unwind, documents })
    const clock = systemClock()
    const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
    const keyPair = await store.createKeyPair('a2a-node/node')
    const view = await readMembership({ store, keyPair, clock, telemetry }, state)
    // A founded log has its founder at least.
    if (view.mesh === null) return { others: null, work: null }
    const self = state.chain[0]?.body.nodeKey
    const others = [...view.members].flatMap(([id, { certificate }]) =>
      id !== self && isActive(view, id) ? [certificate.body.name] : []
    )
    const { open } = await readLedger(home, documents)
    return {
      others,
      work: [...counted(open, 'unfinished request'), ...counted(view.documents.size, 'shared document')]
    }
  } finally {
    await unwind.run()
  }
}

function counted(count: number, noun: string): readonly string[] {
  return count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}`]
}
