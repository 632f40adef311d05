import fs from 'node:fs/promises'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { beginningOf, heldOf, setBeginning } from './core-beginning.js'
import { copyKept } from './kept-bytes.js'

/**
 * Copies what is here of the streams of documents into a new store, the way a peer gets it. That store has a seed of its own, so
 * in it none of the streams can be written, and whatever node has it writes streams that nobody wrote before. Streams with two
 * tales are left out: nothing of them counts. What is kept beside streams goes along: the snapshot that they begin behind, whose
 * core may be one with two tales.
 */
export async function copyStreams(from: Corestore, dir: string): Promise<void> {
  await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const to = new Corestore(dir)
  try {
    await to.ready()
    for await (const discoveryKey of from.list()) {
      const source = from.get({ discoveryKey, writable: false })
      try {
        await source.ready()
        await copyKept(source, to)
        if (source.length > 0 && !source.core.header.frozen) await copyStream(source, to)
      } finally {
        await source.close()
      }
    }
  } finally {
    await to.close()
  }
}

async function copyStream(source: Hypercore, to: Corestore): Promise<void> {
  const beginning = await beginningOf(source)
  const held = heldOf(source, beginning)
  if (held <= beginning.blocks) return
  const target = to.get({ key: source.key, writable: false })
  const streams = [source.replicate(true), target.replicate(false)] as const
  for (const stream of streams) stream.on('error', () => {})
  streams[0].pipe(streams[1]).pipe(streams[0])
  try {
    await target.ready()
    if (beginning.blocks > 0) await setBeginning(target, beginning)
    await target.download({ start: beginning.blocks, end: held }).done()
  } finally {
    for (const stream of streams) stream.destroy()
    await target.close()
  }
}
