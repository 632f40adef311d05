import fs from 'node:fs/promises'
import path from 'node:path'
import { BoundedSet } from '../../../kit/bounded.js'
import type { Clock } from '../../../kit/clock.js'
import { writeAll } from '../../../kit/transfer/chunks.js'
import { giveNewName } from '../../../kit/transfer/new-name.js'
import { inDirectory } from '../files/open-place.js'
import { hashOf } from './file-hash.js'
import { Partials, requireSpace, type Upload } from './partials.js'
import { UploadFault } from './upload-fault.js'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants

/** Ended uploads that are remembered. */
const MAX_ENDED = 64

/** State of an upload. */
export interface UploadState {
  /** The real path of the target. */
  readonly path: string
  /** Bytes that this node has. */
  readonly offset: number
  /** Of these bytes, in hex. */
  readonly sha256: string
  /** The file is in its place. */
  readonly done: boolean
}

/** A range of an uploaded file. */
export interface UploadRange {
  readonly offset: number
  readonly bytes: Uint8Array
  readonly signal: AbortSignal
}

/**
 * Writes files in ranges: into a file of {@link Partials}, which gets the target's name once size and SHA-256 fit. Each
 * step may be repeated, and one upload continues after a restart of either node.
 */
export class Uploads {
  readonly #partials: Partials
  /** The last step of each unfinished upload. */
  readonly #steps = new Map<string, Promise<unknown>>()

  /** Uploads that ended a short time ago: their last range may come again, since its answer was lost. */
  readonly #ended = new BoundedSet<string>(MAX_ENDED)

  constructor(clock: Pick<Clock, 'now'>) {
    this.#partials = new Partials(clock)
  }

  /** Removes uploads that nobody continued. Never rejects. */
  async tidy(roots: readonly string[]): Promise<void> {
    for (const root of roots) await this.#partials.tidy(root)
  }

  /** Opens an upload, or finds it again. @throws UploadFault, NodeError FORBIDDEN */
  async open(upload: Upload, signal: AbortSignal): Promise<UploadState> {
    return await this.#step(upload, async () => {
      if (await isInPlace(upload, signal)) return doneState(upload)
      await this.#partials.make(upload)
      const file = await this.#partials.open(upload)
      try {
        return await this.#stateOf(upload, file, signal)
      } finally {
        await file.close()
      }
    })
  }

  /**
   * Adds a range; the last one puts the file in its place. An empty range only asks for the state. It never looks at
   * the target, which a caller without the right to `files.write` may not probe.
   * @throws UploadFault, NodeError FORBIDDEN
   */
  async append(
    upload: Upload,
    { offset, bytes, signal }: UploadRange
  ): Promise<Omit<UploadState, 'sha256'> & { readonly sha256?: string }> {
    return await this.#step(upload, async () => {
      // A question for the state of an ended upload is no repeated range: the target may have changed since.
      const file = await this.#reopen(upload, bytes.length > 0)
      if (file === null) return doneState(upload)
      try {
        if (bytes.length === 0) return await this.#stateOf(upload, file, signal)
        const { size } = await file.stat()
        const end = offset + bytes.length
        if (offset > size) throw new UploadFault('gap', `the upload has ${size} bytes, the range begins at ${offset}`)
        if (end > upload.size) throw new UploadFault('gap', `the range ends behind the announced ${upload.size} bytes`)
        // Others have filled the disk since files.write, or uploads of another granted directory on it.
        await requireSpace(upload.place.root, end - size)
        await writeAll(file, bytes, offset)
        if (end < upload.size) return { path: targetOf(upload), offset: end, done: false }
        const { path: target, done } = await this.#end(upload, file, await hashOf(file, { length: end, signal }))
        return { path: target, offset: end, done }
      } finally {
        await file.close()
      }
    })
  }

  /**
   * The open file of an upload; null when `mayHaveEnded` and it ended a short time ago.
   * @throws UploadFault no-upload
   */
  async #reopen(upload: Upload, mayHaveEnded: boolean): Promise<fs.FileHandle | null> {
    const partial = this.#partials.pathOf(upload)
    try {
      return await this.#partials.open(upload)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      if (mayHaveEnded && this.#ended.has(partial)) return null
      throw new UploadFault('no-upload', 'no upload of this file is open: files.write opens it')
    }
  }

  /** The state of an open upload. A complete one is put in its place: its node stopped before that. */
  async #stateOf(upload: Upload, file: fs.FileHandle, signal: AbortSignal): Promise<UploadState> {
    const { size } = await file.stat()
    const sha256 = await hashOf(file, { length: size, signal })
    if (size < upload.size) return { path: targetOf(upload), offset: size, sha256, done: false }
    return await this.#end(upload, file, sha256)
  }

  /** Puts a complete upload in its place, or removes it when its content is another one. */
  async #end(upload: Upload, file: fs.FileHandle, sha256: string): Promise<UploadState> {
    const partial = this.#partials.pathOf(upload)
    if (sha256 !== upload.sha256) {
      await fs.unlink(partial)
      throw new UploadFault('checksum', 'the bytes have another SHA-256 than announced; nothing was written')
    }
    await file.sync()
    await moveToPlace(partial, upload, file)
    this.#ended.add(partial)
    await this.#partials.tidy(upload.place.root)
    return doneState(upload)
  }

  async #step<T>(upload: Upload, step: () => Promise<T>): Promise<T> {
    const key = this.#partials.pathOf(upload)
    const next = (this.#steps.get(key) ?? Promise.resolve()).then(step, step)
    this.#steps.set(key, next)
    try {
      return await next
    } finally {
      if (this.#steps.get(key) === next) this.#steps.delete(key)
    }
  }
}

function targetOf({ place: { dir, name } }: Upload): string {
  return path.join(dir, name)
}

function doneState(upload: Upload): UploadState {
  return { path: targetOf(upload), offset: upload.size, sha256: upload.sha256, done: true }
}

/**
 * Has the target the announced content already? Then an earlier answer was lost.
 * @throws UploadFault exists, special, other-disk
 */
async function isInPlace(upload: Upload, signal: AbortSignal): Promise<boolean> {
  const { root, dir, name } = upload.place
  return await inDirectory(dir, async (base, handle) => {
    if ((await handle.stat()).dev !== (await fs.stat(root)).dev)
      throw new UploadFault(
        'other-disk',
        'the directory is on another disk than the granted one: agents.writeGrants must name a directory on that disk'
      )
    return await hasContent(path.join(base, name), upload, signal)
  })
}

async function hasContent(target: string, upload: Upload, signal: AbortSignal): Promise<boolean> {
  const stat = await fs.lstat(target).catch(() => null)
  if (stat === null) return false
  if (!stat.isFile()) throw new UploadFault('special', 'the target is no regular file')
  if (stat.size === upload.size) {
    const file = await fs.open(target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    try {
      if ((await hashOf(file, { length: upload.size, signal })) === upload.sha256) return true
    } finally {
      await file.close()
    }
  }
  if (upload.isForced) return false
  throw new UploadFault('exists', 'the target exists, and the caller did not ask to replace it')
}

/** Renames a complete upload. The directory stays open meanwhile, so a link put in its place is not followed. */
async function moveToPlace(
  partial: string,
  { place: { dir, name }, isForced }: Upload,
  file: fs.FileHandle
): Promise<void> {
  try {
    await inDirectory(dir, async (base, handle) => {
      const target = path.join(base, name)
      const before = await fs.lstat(target).catch(() => null)
      if (before !== null && !before.isFile()) throw new UploadFault('special', 'the target is no regular file')
      if (before !== null && isForced) await file.chmod(before.mode & 0o777)
      if (isForced) await fs.rename(partial, target)
      else await giveNewName(partial, target, fs)
      await handle.sync()
    })
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EEXIST'
    throw isTaken ? new UploadFault('exists', 'the target was made meanwhile') : error
  }
}
