import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'

/** The sandbox that the node of a home is certified for; null: none, or no mesh that can be read (the start of a node says what is wrong). */
export async function sandboxOfHome(home: string): Promise<string | null> {
  const state = await openNodeStore(home)
    .read<MeshState>('mesh')
    .catch(() => null)
  return state?.chain[0]?.body.sandboxId ?? null
}
