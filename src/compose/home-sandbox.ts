import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { openNodeStore } from '../adapters/storage/home/node-store.js'

/** The certified sandbox of a home; null: none, or no readable mesh state (the start of a node reports the fault). */
export async function sandboxOfHome(home: string): Promise<string | null> {
  const state = await openNodeStore(home)
    .read<MeshState>('mesh')
    .catch(() => null)
  return state?.chain[0]?.body.sandboxId ?? null
}
