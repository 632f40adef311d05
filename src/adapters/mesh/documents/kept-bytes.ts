import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { fromUtf8, utf8 } from '../../../kit/ids.js'

/** Keys of a document's kept data and of its name: a copy of the store has other keys for the same names. */
const KEPT = 'kept'
const NAME = 'kept-as'

/** A core without blocks that no peer knows; kept data lies beside it, in the database of the streams. */
async function keeperOf(store: Corestore, name: string): Promise<Hypercore> {
  const core = store.get({ name: `kept/${name}`, active: false })
  await core.ready()
  return core
}

/** Data that a store keeps under a name; null: none. */
export async function readKept(store: Corestore, name: string): Promise<Uint8Array | null> {
  const core = await keeperOf(store, name)
  try {
    return await keptBeside(core)
  } finally {
    await core.close()
  }
}

/** Keeps data in a store under a name, in the place of earlier data; null removes it. */
export async function writeKept(store: Corestore, name: string, bytes: Uint8Array | null): Promise<void> {
  const core = await keeperOf(store, name)
  try {
    await core.setUserData(NAME, utf8(name))
    await core.setUserData(KEPT, bytes ?? new Uint8Array())
  } finally {
    await core.close()
  }
}

/** Copies the data kept beside a core, if there is any, into another store. */
export async function copyKept(source: Hypercore, to: Corestore): Promise<void> {
  const [name, bytes] = [await source.getUserData(NAME), await keptBeside(source)]
  if (name !== null && bytes !== null) await writeKept(to, fromUtf8(name), bytes)
}

async function keptBeside(core: Hypercore): Promise<Uint8Array | null> {
  const bytes = await core.getUserData(KEPT)
  return bytes === null || bytes.byteLength === 0 ? null : bytes
}
