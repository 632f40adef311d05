import Autobase from 'autobase'
import type Corestore from 'corestore'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import { readEntries } from '../cores/store-scan.js'
import { lengthOf } from './log-marks.js'
import { writerCores } from './log-copy.js'
import { namespaced } from '../network/mesh.js'
import type { MeshState } from '../network/mesh-node.js'

/** The contents of a store, for the log of a mesh. */
export interface LogFacts {
  /** Node that the store's keys make (z32). */
  readonly nodeId: string
  /** Own writer core (z32) and its length. */
  readonly core: string
  readonly length: number
  /** Blocks of each writer core (z32) from its first one on. */
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
  for await (const core of writerCores(store, keyFromText(state.key))) {
    for (let at = 0; at < core.contiguousLength; at++) if ((await core.get(at, { wait: false })) !== null) blocks++
    if (keyToText(core.key) === keyToText(own)) length = core.length
    lengths.set(keyToText(core.key), await lengthOf(core))
    await core.close()
  }
  return { nodeId, core: keyToText(own), length, lengths, blocks }
}
