import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shellWord, shown } from '../../../kit/text.js'
import { syncDir } from './atomic-file.js'
import { codeOf, storeError } from './store-errors.js'

/** The first line of every backup; the number is that of the format. */
const MAGIC = 'a2a-node backup 1\n'
const MAX_LINE = 4096
/** Bytes of the name of a part, and of one segment of it between slashes. */
const MAX_NAME = 2048
const MAX_STEP = 255
const MAX_PART = 1024 * 1024 * 1024
const NEWLINE = 0x0a

/** One thing that a backup holds. */
export interface BackupPart {
  /** Names with slashes between, each part of it 1 to 255 bytes: `home/node.json`. */
  readonly name: string
  readonly bytes: Uint8Array
  readonly mode: number
}

/**
 * Writes a backup file. The first line names the format. Each part is a line of JSON `{part, mode, bytes, sha256}` and
 * its bytes. The last line is `{end, parts, sha256}` with the hash of all those lines. The file is 0600 and appears
 * whole or not at all.
 */
export class BackupWriter {
  readonly #file: string
  readonly #aside: string
  readonly #mayReplace: boolean
  readonly #handle: FileHandle
  readonly #lines = createHash('sha256')
  #parts = 0
  #bytes = 0

  private constructor(parts: {
    readonly file: string
    readonly aside: string
    readonly mayReplace: boolean
    readonly handle: FileHandle
  }) {
    this.#file = parts.file
    this.#aside = parts.aside
    this.#mayReplace = parts.mayReplace
    this.#handle = parts.handle
  }

  /** Begins a backup. @throws NodeError FILE_EXISTS, NO_PERMISSION, DISK_FULL */
  static async create(file: string, { mayReplace }: { readonly mayReplace: boolean }): Promise<BackupWriter> {
    await assertFile(file)
    if (!mayReplace && (await isThere(file))) throw existsError(file)
    const aside = `${file}.${randomBytes(4).toString('hex')}.tmp`
    const handle = await fs.open(aside, 'wx', 0o600).catch((error: unknown) => Promise.reject(placeError(error, file)))
    const writer = new BackupWriter({ file, aside, mayReplace, handle })
    await writer.#write(Buffer.from(MAGIC))
    return writer
  }

  /** Adds a part. @throws NodeError DISK_FULL, NO_PERMISSION; USAGE for one that no restore would take */
  async add({ name, bytes, mode }: BackupPart): Promise<void> {
    assertName(name)
    if (bytes.byteLength > MAX_PART) throw tooLarge(name)
    const line = `${JSON.stringify({ part: name, mode: mode & 0o777, bytes: bytes.byteLength, sha256: hashOf(bytes) })}\n`
    if (Buffer.byteLength(line) > MAX_LINE) throw tooLarge(name)
    this.#lines.update(line)
    this.#parts++
    await this.#write(Buffer.from(line))
    await this.#write(bytes)
  }

  /**
   * Puts the file in its place; gives its size.
   * @throws NodeError FILE_EXISTS when another came first; DISK_FULL, NO_PERMISSION
   */
  async finish(): Promise<{ readonly parts: number; readonly bytes: number }> {
    await this.#write(
      Buffer.from(`${JSON.stringify({ end: true, parts: this.#parts, sha256: this.#lines.digest('hex') })}\n`)
    )
    try {
      await this.#handle.sync()
      await this.#handle.close()
      // A link takes no name that is taken.
      if (this.#mayReplace) await fs.rename(this.#aside, this.#file)
      else await fs.link(this.#aside, this.#file).then(() => fs.rm(this.#aside))
      await syncDir(path.dirname(this.#file))
    } catch (error) {
      throw codeOf(error) === 'EEXIST' ? existsError(this.#file) : placeError(error, this.#file)
    }
    return { parts: this.#parts, bytes: this.#bytes }
  }

  /** Leaves nothing behind. Never rejects. */
  async abort(): Promise<void> {
    await this.#handle.close().catch(() => {})
    await fs.rm(this.#aside, { force: true }).catch(() => {})
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.byteLength
    await this.#handle.writeFile(bytes).catch((error: unknown) => Promise.reject(placeError(error, this.#file)))
  }
}

/**
 * The parts of a backup in order, each checked first. The last step proves that no part was missing.
 * @throws NodeError STORE_DAMAGED for a file that is no whole backup; NO_PERMISSION; USAGE when there is no such file
 */
export async function* readBackup(file: string): AsyncGenerator<BackupPart> {
  await assertFile(file)
  const handle = await fs.open(file, 'r').catch((error: unknown) => Promise.reject(placeError(error, file)))
  try {
    yield* new BackupReader(file, handle).parts()
  } catch (error) {
    throw storeError(error, file)
  } finally {
    await handle.close()
  }
}

class BackupReader {
  readonly #file: string
  readonly #handle: FileHandle
  #at = 0

  constructor(file: string, handle: FileHandle) {
    this.#file = file
    this.#handle = handle
  }

  async *parts(): AsyncGenerator<BackupPart> {
    const magic = await this.#read(MAGIC.length)
    if (Buffer.from(magic).toString() !== MAGIC)
      throw this.#damaged('it is no backup of a2a-node, or one of another version')
    const lines = createHash('sha256')
    for (let count = 0; ; count++) {
      const line = await this.#line()
      const head = readHead(line)
      if (head === null) return await this.#end(line, { parts: count, sha256: lines.digest('hex') })
      lines.update(line)
      const bytes = await this.#read(head.bytes)
      if (hashOf(bytes) !== head.sha256) throw this.#damaged(`its part ${head.part} is damaged`)
      yield { name: head.part, mode: head.mode, bytes }
    }
  }

  async #end(line: string, expected: { readonly parts: number; readonly sha256: string }): Promise<void> {
    if (line !== `${JSON.stringify({ end: true, ...expected })}\n`) throw this.#damaged('it has lost parts')
    const { size } = await this.#handle.stat()
    if (size !== this.#at) throw this.#damaged('there are bytes behind its end')
  }

  async #read(length: number): Promise<Uint8Array> {
    const { size } = await this.#handle.stat()
    if (this.#at + length > size) throw this.#damaged('it ends too early')
    const bytes = Buffer.alloc(length)
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#handle.read(bytes, done, length - done, this.#at + done)
      if (bytesRead === 0) throw this.#damaged('it ends too early')
      done += bytesRead
    }
    this.#at += length
    return bytes
  }

  async #line(): Promise<string> {
    const bytes = Buffer.alloc(MAX_LINE)
    const { bytesRead } = await this.#handle.read(bytes, 0, MAX_LINE, this.#at)
    const end = bytes.subarray(0, bytesRead).indexOf(NEWLINE)
    if (end === -1) throw this.#damaged('it ends too early')
    this.#at += end + 1
    return bytes.subarray(0, end + 1).toString()
  }

  #damaged(reason: string): NodeError {
    return new NodeError('STORE_DAMAGED', `the backup ${this.#file} cannot be used: ${reason}`, {
      next: ['a2a-node restore <another backup> --home <new directory>']
    })
  }
}

interface PartHead {
  readonly part: string
  readonly mode: number
  readonly bytes: number
  readonly sha256: string
}

function readHead(line: string): PartHead | null {
  try {
    const value: unknown = JSON.parse(line)
    if (!isRecord(value)) return null
    const { part, mode, bytes, sha256 } = value
    if (typeof part !== 'string' || typeof sha256 !== 'string' || !isCount(mode, 0o777) || !isCount(bytes, MAX_PART))
      return null
    assertName(part)
    return { part, mode, bytes, sha256 }
  } catch {
    return null
  }
}

function isCount(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max
}

/** A name never leads out of the directory in which it is restored. @throws NodeError INTERNAL */
function assertName(name: string): void {
  const isGood = name
    .split('/')
    .every((one) => one !== '' && one !== '.' && one !== '..' && Buffer.byteLength(one) <= MAX_STEP)
  if (!isGood || name.includes('\0') || Buffer.byteLength(name) > MAX_NAME)
    throw new NodeError('INTERNAL', 'not a name of a part of a backup')
}

function tooLarge(name: string): NodeError {
  return new NodeError('USAGE', `${shown(name)} is too large for a backup, or its name is too long`, {
    next: ['du -ah <home>']
  })
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function isThere(file: string): Promise<boolean> {
  return await fs.lstat(file).then(
    () => true,
    () => false
  )
}

function existsError(file: string): NodeError {
  return new NodeError('FILE_EXISTS', `${file} is there already`, {
    next: ['a2a-node backup <file> --force', 'a2a-node backup <another file>']
  })
}

/** Only a regular file can be read twice and replaced. */
async function assertFile(file: string): Promise<void> {
  const stats = await fs.stat(file).catch(() => null)
  if (stats === null || stats.isFile()) return
  throw new NodeError(
    'USAGE',
    `${file} is ${stats.isDirectory() ? 'a directory' : 'no regular file'}; a backup is one file`,
    {
      next: [`ls -ld ${shellWord(file)}`]
    }
  )
}

function placeError(error: unknown, file: string): NodeError {
  if (codeOf(error) === 'ENOENT')
    return new NodeError('USAGE', `there is no ${file}`, { next: [`ls -l ${path.dirname(file)}`], cause: error })
  const { code, message, next } = storeError(error, file)
  const look = `ls -ld ${shellWord(path.dirname(file))}`
  return new NodeError(code, message, { next: code === 'CONFIG_INVALID' ? [look] : next, cause: error })
}
