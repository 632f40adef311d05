import Autobase from 'autobase'
import type Corestore from 'corestore'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import { readEntries } from '../cores/store-scan.js'
import { lengthOf } from './log-marks.js'
import { logCores } from './log-copy.js'
import { namespaced } from '../network/mesh.js'
import type { MeshState } from '../network/mesh-node.js'

/** The contents of a store, for the log of a mesh. */
export interface LogFacts {
  /** Node that the store's keys make (z32). */
  readonly nodeId: string
  /** Own writer core (z32) and its length. */
  readonly core: string
  readonly length: number
  /** Of each core of the log (z32): see {@link lengthOf}. */
  readonly lengths: ReadonlyMap<string, number>
  /** Blocks of all writer cores that could be read. */
  readonly blocks: number
}

/** Reads every block of the writer cores of a mesh that is here. @throws the store's error when one cannot be read */
export async function readLog(store: Corestore, state: Pick<MeshState, 'key' | 'epoch'>): Promise<LogFacts> {
  await readEntries(store)
  const own = await Autobase.getLocalKey(namespaced(store, state.epoch))
  const nodeId = keyToText((await store.createKeyPair('a2a-node/node')).publicKey)
  const lengths = new Map<string, number>()
  let [blocks, length] = [0, 0]
  for await (const found of logCores(store, keyFromText(state.key))) {
    const { core, isView } = found
    lengths.set(keyToText(core.key), await lengthOf(found))
    for (let at = 0; !isView && at < core.contiguousLength; at++)
      if ((await core.get(at, { wait: false })) !== null) blocks++
    if (keyToText(core.key) === keyToText(own)) length = core.length
    await core.close()
  }
  return { nodeId, core: keyToText(own), length, lengths, blocks }
}
