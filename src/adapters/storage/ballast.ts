import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from './store-errors.js'

/** Bytes of a ballast: enough for how all that is under way ends. */
export const BALLAST_BYTES = 16 * 1024 * 1024
/** The disk has to have so many times as much free, so that making it does not fill the disk. */
const SPARE = 3
/** Bytes of one write. */
const PART_BYTES = 1024 * 1024

/** A file that only takes room, to be freed when a disk is full. */
export interface Ballast {
  /** Gives its room back. Never rejects. */
  free(): Promise<void>
  /** Makes it when the disk has room; is it there now? Never rejects. */
  fill(): Promise<boolean>
}

/** The ballast of a path; nothing is made before {@link Ballast.fill}. */
export function openBallast(file: string, bytes = BALLAST_BYTES): Ballast {
  const free = async (): Promise<void> => await fs.rm(file, { force: true }).catch(() => {})
  return {
    free,
    fill: async () => {
      try {
        if ((await sizeOf(file)) === bytes) return true
        const { bavail, bsize } = await fs.statfs(path.dirname(file))
        if (bavail * bsize < SPARE * bytes) return false
        await write(file, bytes)
        return true
      } catch {
        // It was to keep room for others: none of its own is worth a fault.
        await free()
        return false
      }
    }
  }
}

async function write(file: string, bytes: number): Promise<void> {
  const handle = await fs.open(file, 'w', 0o600)
  try {
    // Not zeros alone, which some file systems keep without room.
    const part = new Uint8Array(PART_BYTES).map((_, at) => (at * 31 + (at >> 8)) & 255)
    for (let at = 0; at < bytes; at += PART_BYTES) await handle.write(part.subarray(0, Math.min(PART_BYTES, bytes - at)))
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await fs.stat(file)).size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0
    throw error
  }
}
