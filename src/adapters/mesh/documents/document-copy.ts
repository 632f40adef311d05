import fs from 'node:fs/promises'
import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { coreStore } from '../cores/core-store.js'
import { beginningOf, contiguousLength, setBeginning } from '../cores/core-beginning.js'
import { copyKept } from './kept-bytes.js'

/**
 * Copies the stored blocks of document streams into a new store, as a peer gets them. That store has its own seed: none
 * of the streams can be written in it, and its node writes new streams. Forked streams are left out: nothing of them
 * counts. Data beside streams is copied too: the snapshot before their beginning, whose core may be forked.
 * @throws Error when a block cannot be read
 */
export async function copyStreams(from: Corestore, dir: string): Promise<void> {
  await intoNew(dir, async (to) => {
    for await (const discoveryKey of from.list()) await withCore(from, discoveryKey, (source) => copyCore(source, to))
  })
}

/**
 * Copies a damaged store: of each stream the blocks before the first unreadable one.
 * @throws Error when the store does not list its streams, and when a readable block is not copied
 */
export async function salvageStreams(from: Corestore, dir: string): Promise<void> {
  await intoNew(dir, async (to) => {
    for await (const discoveryKey of from.list()) {
      const end = await withCore(from, discoveryKey, readableEnd).catch(() => 0)
      if (end > 0) await withCore(from, discoveryKey, (source) => copyCore(source, to, end))
    }
  })
}

async function intoNew(dir: string, fill: (to: Corestore) => Promise<void>): Promise<void> {
  await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const to = coreStore(dir)
  try {
    await to.ready()
    await fill(to)
  } finally {
    await to.close()
  }
}

async function withCore<T>(
  from: Corestore,
  discoveryKey: Uint8Array,
  use: (source: Hypercore) => Promise<T>
): Promise<T> {
  const source = from.get({ discoveryKey, writable: false })
  try {
    await source.ready()
    return await use(source)
  } finally {
    await source.close()
  }
}

async function copyCore(source: Hypercore, to: Corestore, end = Number.POSITIVE_INFINITY): Promise<void> {
  await copyKept(source, to)
  if (source.length > 0 && !source.core.header.frozen) await copyStream(source, to, end)
}

/** End of the blocks that are here and can be read; infinite when all of them can. */
async function readableEnd(source: Hypercore): Promise<number> {
  const beginning = await beginningOf(source)
  const length = contiguousLength(source, beginning)
  for (let at = beginning.blocks; at < length; at++) {
    const isRead = await source.get(at, { wait: false }).then(
      () => true,
      () => false
    )
    if (!isRead) return at
  }
  return Number.POSITIVE_INFINITY
}

async function copyStream(source: Hypercore, to: Corestore, end: number): Promise<void> {
  const beginning = await beginningOf(source)
  const length = Math.min(end, contiguousLength(source, beginning))
  if (length <= beginning.blocks) return
  const target = to.get({ key: source.key, writable: false })
  const streams = [source.replicate(true), target.replicate(false)] as const
  for (const stream of streams) stream.on('error', () => {})
  streams[0].pipe(streams[1]).pipe(streams[0])
  try {
    await target.ready()
    if (beginning.blocks > 0) await setBeginning(target, beginning)
    const isCopied = target.download({ start: beginning.blocks, end: length }).done()
    // A source that cannot prove a block ends its stream: nothing more comes then.
    const isCut = new Promise<never>((_, reject) => {
      for (const stream of streams) stream.on('close', () => reject(new Error('a stream could not be copied')))
    })
    await Promise.race([isCopied, isCut])
  } finally {
    for (const stream of streams) stream.destroy()
    await target.close()
  }
}
