import fs from 'node:fs/promises'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { beginningOf, heldOf, setBeginning } from './core-beginning.js'
import { copyKept } from './kept-bytes.js'

/**
 * Copies what is here of the streams of documents into a new store, the way a peer gets it. That store has a seed of its own, so
 * in it none of the streams can be written, and whatever node has it writes streams that nobody wrote before. Streams with two
 * tales are left out: nothing of them counts. What is kept beside streams goes along: the snapshot that they begin behind, whose
 * core may be one with two tales. @throws Error for what cannot be read
 */
export async function copyStreams(from: Corestore, dir: string): Promise<void> {
  await intoNew(dir, async (to) => {
    for await (const discoveryKey of from.list()) await withCore(from, discoveryKey, (source) => copyCore(source, to))
  })
}

/**
 * The same of a store that is damaged: of each stream what is before the first block that cannot be read. Gives the number of streams of
 * which not all is copied. @throws Error when the store does not say which streams it has, or the new one cannot be written
 */
export async function salvageStreams(from: Corestore, dir: string): Promise<number> {
  let failures = 0
  await intoNew(dir, async (to) => {
    const keys: Uint8Array[] = []
    for await (const discoveryKey of from.list()) keys.push(discoveryKey)
    for (const discoveryKey of keys) await withCore(from, discoveryKey, (source) => copyReadable(source, to)).catch(() => failures++)
  })
  return failures
}

async function intoNew(dir: string, fill: (to: Corestore) => Promise<void>): Promise<void> {
  await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const to = new Corestore(dir)
  try {
    await to.ready()
    await fill(to)
  } finally {
    await to.close()
  }
}

async function withCore(from: Corestore, discoveryKey: Uint8Array, use: (source: Hypercore) => Promise<void>): Promise<void> {
  const source = from.get({ discoveryKey, writable: false })
  try {
    await source.ready()
    await use(source)
  } finally {
    await source.close()
  }
}

async function copyCore(source: Hypercore, to: Corestore): Promise<void> {
  await copyKept(source, to)
  if (source.length > 0 && !source.core.header.frozen) await copyStream(source, to)
}

async function copyReadable(source: Hypercore, to: Corestore): Promise<void> {
  await copyKept(source, to)
  if (source.length === 0 || source.core.header.frozen) return
  const beginning = await beginningOf(source)
  const held = heldOf(source, beginning)
  let readable = beginning.blocks
  let fault: unknown = null
  for (; readable < held && fault === null; readable++)
    await source.get(readable, { wait: false }).catch((error: unknown) => {
      fault = error
    })
  if (fault === null) return await copyStream(source, to)
  await copyStream(source, to, readable - 1)
  throw new Error('a block cannot be read', { cause: fault })
}

async function copyStream(source: Hypercore, to: Corestore, end = Number.POSITIVE_INFINITY): Promise<void> {
  const beginning = await beginningOf(source)
  const held = Math.min(end, heldOf(source, beginning))
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
