import fs from 'node:fs/promises'
import b4a from 'b4a'
import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { coreStore } from '../cores/core-store.js'
import { passingConflict } from '../../../kit/errors.js'
import { giveBack, isGivenBack } from '../cores/given-back.js'

/** Rounds that also fetch blocks appended meanwhile. */
const MAX_ROUNDS = 20

/**
 * Copies the writer cores of a mesh into a new store of the same seed, as a peer gets them: in the copy none of them
 * can be appended to. The copy holds the blocks of one moment. Views are not copied; they are rebuilt from the cores.
 * @throws NodeError CONFLICT when the log does not stand still
 */
export async function copyLog(from: Corestore, meshKey: Uint8Array, dir: string): Promise<void> {
  await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const to = coreStore(dir, { primaryKey: from.primaryKey, unsafe: true })
  const opened: Hypercore[] = []
  try {
    await to.ready()
    const streams = [from.replicate(true), to.replicate(false)] as const
    for (const stream of streams) stream.on('error', () => {})
    streams[0].pipe(streams[1]).pipe(streams[0])
    try {
      for (let round = 0; !(await copyRound({ from, to, meshKey, opened })); round++) {
        if (round === MAX_ROUNDS)
          throw passingConflict('the mesh log kept changing during the copy', ['a2a-node backup <file>'])
      }
    } finally {
      for (const stream of streams) stream.destroy()
    }
  } finally {
    for (const core of opened) await core.close()
    await to.close()
  }
}

interface Round {
  readonly from: Corestore
  readonly to: Corestore
  readonly meshKey: Uint8Array
  readonly opened: Hypercore[]
}

/** True: nothing was appended while this was copied. */
async function copyRound({ from, to, meshKey, opened }: Round): Promise<boolean> {
  const pairs: (readonly [Hypercore, Hypercore])[] = []
  for await (const source of writerCores(from, meshKey)) {
    opened.push(source)
    const target = to.get({ key: source.key })
    opened.push(target)
    await target.ready()
    // The node reads the core's mesh when it opens the copy.
    await target.setUserData('referrer', meshKey)
    if (await isGivenBack(source)) await giveBack(target, source.contiguousLength)
    // Blocks that this node has not fetched yet come from peers later.
    await target.download({ start: 0, end: source.contiguousLength }).done()
    pairs.push([source, target])
  }
  return pairs.every(([source, target]) => target.contiguousLength >= source.contiguousLength)
}

/** The cores of a store that writers of a mesh appended to, opened; close each. */
export async function* writerCores(store: Corestore, meshKey: Uint8Array): AsyncGenerator<Hypercore> {
  for await (const { core, isView } of logCores(store, meshKey)) {
    if (isView) await core.close()
    else yield core
  }
}

/** A core of the log of a mesh: of a writer, or a view. */
export interface LogCore {
  readonly core: Hypercore
  readonly isView: boolean
}

/**
 * The cores of the log of a mesh in a store, opened; close each. The engine names a new view a core of the log before
 * it names it a view: for a moment it looks like that of a writer.
 */
export async function* logCores(store: Corestore, meshKey: Uint8Array): AsyncGenerator<LogCore> {
  for await (const discoveryKey of store.list()) {
    const core = store.get({ discoveryKey })
    await core.ready()
    const [referrer, view] = await Promise.all([core.getUserData('referrer'), core.getUserData('autobase/view')])
    if (core.length > 0 && referrer !== null && b4a.equals(referrer, meshKey)) yield { core, isView: view !== null }
    else await core.close()
  }
}
