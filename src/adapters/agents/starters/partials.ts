import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../../../kit/clock.js'
import { type FilePlace, PARTIAL_DIR } from '../files/granted-paths.js'
import { assertInPlace, inDirectory } from '../files/open-place.js'
import { MAX_PARTIALS, PARTIAL_LIFETIME_MS, UPLOAD_RESERVE_BYTES } from './files-limits.js'
import { UploadFault } from './upload-fault.js'

/** A file that a caller uploads: its place, and the content that it announced. */
export interface Upload {
  readonly place: FilePlace
  /** Bytes. */
  readonly size: number
  /** Of the whole file, in hex. */
  readonly sha256: string
  /** May it replace a file? */
  readonly isForced: boolean
  /** The calling node; '' when unknown. */
  readonly peer: string
}

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = fs.constants
const NAME = /^[0-9a-f]{32}-(\d{1,10})$/

/**
 * Unfinished uploads: one file each in {@link PARTIAL_DIR} of the granted directory. Its name is a hash of the caller,
 * the place and the announced content, so another upload has another file, and a restarted node finds each again.
 */
export class Partials {
  readonly #clock: Pick<Clock, 'now'>
  /** The last step of each granted directory that makes, counts or removes files. */
  readonly #steps = new Map<string, Promise<unknown>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Path of the unfinished upload, whether it exists or not. */
  pathOf({ place: { root, dir, name }, size, sha256, isForced, peer }: Upload): string {
    const id = createHash('sha256')
      .update(JSON.stringify([peer, dir, name, size, sha256, isForced]))
      .digest('hex')
    return path.join(root, PARTIAL_DIR, `${id.slice(0, 32)}-${size}`)
  }

  /** Opens the file of an upload; the caller closes it. @throws NodeError FORBIDDEN behind a link, ENOENT */
  async open(upload: Upload, flags = 0): Promise<fs.FileHandle> {
    const partial = this.pathOf(upload)
    const file = await fs.open(partial, flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0o600)
    try {
      await assertInPlace(file, partial)
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /**
   * Makes the file of an upload unless it exists.
   * @throws UploadFault too-many, no-space, special
   */
  async make(upload: Upload): Promise<void> {
    const { root } = upload.place
    await this.#step(root, async () => {
      const others = (await this.#prune(root)).filter(({ file }) => file !== this.pathOf(upload))
      if (others.length >= MAX_PARTIALS)
        throw new UploadFault(
          'too-many',
          `${MAX_PARTIALS} unfinished uploads are open; each ends 24 h after its last byte`
        )
      const there = (await fs.lstat(this.pathOf(upload)).catch(() => null))?.size ?? 0
      const missing = others.reduce((sum, { missing: more }) => sum + more, 0)
      // Before the file is made: that of a refused upload would take bytes of files.append, and count for the others.
      await requireSpace(root, missing + upload.size - there)
      await makeDirectory(path.join(root, PARTIAL_DIR))
      const file = await this.open(upload, O_CREAT)
      try {
        const now = new Date(this.#clock.now())
        await file.utimes(now, now)
      } finally {
        await file.close()
      }
    })
  }

  /** Removes uploads that nobody continued, and the directory once it is empty. Never rejects. */
  async tidy(root: string): Promise<void> {
    await this.#step(root, async () => {
      await this.#prune(root)
      await fs.rmdir(path.join(root, PARTIAL_DIR)).catch(() => {})
    }).catch(() => {})
  }

  /** The unfinished uploads that are left, with their missing bytes. */
  async #prune(root: string): Promise<{ file: string; missing: number }[]> {
    const left: { file: string; missing: number }[] = []
    const dir = path.join(root, PARTIAL_DIR)
    const prune = async (base: string): Promise<void> => {
      for (const name of await fs.readdir(base)) {
        const size = NAME.exec(name)?.[1]
        const file = path.join(base, name)
        const stat = size === undefined ? null : await fs.lstat(file).catch(() => null)
        if (stat === null) continue
        if (this.#clock.now() - stat.mtimeMs > PARTIAL_LIFETIME_MS) await fs.unlink(file).catch(() => {})
        else left.push({ file: path.join(dir, name), missing: Math.max(0, Number(size) - stat.size) })
      }
    }
    await inDirectory(dir, prune).catch(() => {})
    return left
  }

  /** Runs a step after the earlier ones of the same directory. */
  async #step<T>(root: string, step: () => Promise<T>): Promise<T> {
    const next = (this.#steps.get(root) ?? Promise.resolve()).then(step, step)
    this.#steps.set(root, next)
    return await next
  }
}

async function makeDirectory(dir: string): Promise<void> {
  await fs.mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  })
  if (!(await fs.lstat(dir)).isDirectory()) throw new UploadFault('special', `${PARTIAL_DIR} is no directory`)
}

/** Do these bytes fit beside the space that uploads leave free? @throws UploadFault no-space */
export async function requireSpace(root: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await fs.statfs(root)
  if (bavail * bsize < bytes + UPLOAD_RESERVE_BYTES)
    throw new UploadFault('no-space', 'the disk has too little space for this file and the unfinished uploads')
}
