import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from './store-errors.js'

/** Bytes of a ballast: enough to record the end of all work under way. */
export const BALLAST_BYTES = 16 * 1024 * 1024
/** Bytes of the smallest one, for a disk with little room; it is halved down to that. */
export const LEAST_BALLAST_BYTES = 2 * 1024 * 1024
/** The disk needs this many times the size of a ballast free, so that making one does not fill the disk. */
const SPARE = 3
/** Bytes that a disk that was full must have free beside the ballast before anything new is taken. */
export const MIN_FREE_BYTES = 4 * 1024 * 1024
const PART_BYTES = 1024 * 1024

/** A file that only takes room, to be freed when a disk is full. */
export interface Ballast {
  /** Bytes that the disk must have free for {@link Ballast.fill} to make it. */
  readonly neededBytes: number
  /** Gives its room back. Never rejects. */
  free(): Promise<void>
  /**
   * Makes one as large as the disk has room for, after it was freed one as large as before; is it there now? Never
   * rejects.
   */
  fill(): Promise<boolean>
}

/** The ballast of a path; nothing is made before {@link Ballast.fill}. */
export function openBallast(file: string): Ballast {
  return new BallastFile(file)
}

class BallastFile implements Ballast {
  readonly #file: string
  /** Bytes of the one that was freed: its room is no reason to take something new. */
  #freed = 0

  constructor(file: string) {
    this.#file = file
  }

  get neededBytes(): number {
    return this.#freed > 0 ? this.#freed + MIN_FREE_BYTES : SPARE * LEAST_BALLAST_BYTES
  }

  async free(): Promise<void> {
    this.#freed = (await sizeOf(this.#file).catch(() => 0)) || this.#freed
    await fs.rm(this.#file, { force: true }).catch(() => {})
  }

  async fill(): Promise<boolean> {
    try {
      const there = await sizeOf(this.#file)
      const { bavail, bsize } = await fs.statfs(path.dirname(this.#file))
      const bytes = this.#fitting(bavail * bsize + there)
      if (there >= bytes) return there >= LEAST_BALLAST_BYTES
      await write(this.#file, bytes)
      return true
    } catch {
      // It was to keep room for others: none of its own is worth a fault.
      await fs.rm(this.#file, { force: true }).catch(() => {})
      return false
    }
  }

  /** Bytes of the one that a disk with so much room may have; 0 for none. */
  #fitting(free: number): number {
    if (this.#freed > 0) return free >= this.neededBytes ? this.#freed : 0
    for (let bytes = BALLAST_BYTES; bytes >= LEAST_BALLAST_BYTES; bytes /= 2) if (free >= SPARE * bytes) return bytes
    return 0
  }
}

async function write(file: string, bytes: number): Promise<void> {
  const handle = await fs.open(file, 'w', 0o600)
  try {
    // Some file systems compress.
    const part = randomBytes(PART_BYTES)
    for (let at = 0; at < bytes; at += PART_BYTES)
      await handle.write(part.subarray(0, Math.min(PART_BYTES, bytes - at)))
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
