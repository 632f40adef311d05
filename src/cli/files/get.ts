import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { eachChunk, writeAll } from '../../kit/transfer/chunks.js'
import { MAX_FILE_BYTES, MAX_RANGE_BYTES } from '../../kit/transfer/limits.js'
import { giveNewName } from '../../kit/transfer/new-name.js'
import { localError } from './local-file.js'
import type { TransferOptions, Transferred } from './put.js'
import type { FileAnswer, RemoteFiles } from './remote-files.js'
import { TransferProgress } from './transfer-progress.js'

/** Bytes of a file's name in that of its part: a file system takes 255 in all. */
const MAX_PART_NAME_BYTES = 200

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = fs.constants

/** The remote file as it was when the transfer began. */
interface Source {
  readonly size: number
  readonly modifiedAt: string
  readonly sha256: string
}

/** Copies a file of a node here, or continues an earlier copy of the same content. @throws NodeError */
export async function getFile(
  remote: RemoteFiles,
  { source, target }: { readonly source: string; readonly target: string },
  options: TransferOptions
): Promise<Transferred & { readonly file: string }> {
  const file = await placeOf(source, target)
  await refuseExisting(file, options)
  const stat = await remote.ask(['files.stat', { path: source, sha256: true }])
  const found = sourceOf(stat, source)
  const part = partOf(file, found)
  try {
    const resumedAt = await fetchInto(part, found, { ...options, remote, source })
    await moveToPlace(part, file, options)
    return { agent: stat.agent, path: stat.text('path'), file, bytes: found.size, resumedAt, sha256: found.sha256 }
  } catch (error) {
    throw localError(file, error)
  }
}

/** The content names the part, so a part of another content is never continued. A long name is cut for its ending. */
function partOf(file: string, { sha256 }: Source): string {
  const name = Buffer.from(path.basename(file)).subarray(0, MAX_PART_NAME_BYTES).toString()
  return path.join(path.dirname(file), `.${name}.${sha256.slice(0, 16)}.part`)
}

/** The local file: a directory gets the name of the source. @throws NodeError USAGE for a source without a name */
async function placeOf(source: string, target: string): Promise<string> {
  const name = path.basename(source)
  if (source.endsWith('/') || ['', '.', '..'].includes(name) || shown(name, Number.POSITIVE_INFINITY) !== name)
    throw new NodeError('USAGE', `${JSON.stringify(source)} names no file`)
  const isDirectory = await fs.stat(target).then(
    (found) => found.isDirectory(),
    () => target.endsWith('/')
  )
  return isDirectory ? path.join(target, name) : target
}

async function refuseExisting(file: string, { output, isForced }: TransferOptions): Promise<void> {
  const stat = await fs.lstat(file).catch(() => null)
  if (stat === null || (stat.isFile() && isForced)) return
  if (!stat.isFile()) throw new NodeError('USAGE', `${shown(file)} is no regular file`)
  const next = output.typed === null ? [] : [`${output.typed} --force`]
  throw new NodeError('FILE_EXISTS', `${shown(file)} exists; --force replaces it`, { next })
}

function sourceOf(stat: FileAnswer, source: string): Source {
  if (stat.text('type') !== 'file')
    throw new NodeError('USAGE', `${shown(source)} is a ${shown(stat.text('type'))}, not a file`)
  const found = { size: stat.bytes('size'), modifiedAt: stat.text('modifiedAt'), sha256: stat.text('sha256') }
  if (!/^[0-9a-f]{64}$/.test(found.sha256) || found.size > MAX_FILE_BYTES)
    throw new NodeError('INVALID_OUTPUT', `${stat.agent} answers with no SHA-256, or more than ${MAX_FILE_BYTES} bytes`)
  return found
}

interface GetOptions extends TransferOptions {
  readonly remote: RemoteFiles
  readonly source: string
}

/** Fetches the missing bytes of a part. Gives the number of bytes that an earlier run left. */
async function fetchInto(part: string, found: Source, fetching: GetOptions): Promise<number> {
  const file = await fs.open(part, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0o666)
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new NodeError('USAGE', `${shown(part)} is no regular file`)
    const there = stat.size <= found.size ? stat.size : 0
    if (await fetchFrom(file, there, { found, fetching })) return there
    // A part may be damaged, by a crash of the machine.
    if (there > 0 && (await fetchFrom(file, 0, { found, fetching }))) return 0
    await fs.unlink(part)
    throw new NodeError(
      'CONFLICT',
      `the received bytes of ${shown(fetching.source)} have another SHA-256; nothing was written`,
      {
        retryable: true
      }
    )
  } finally {
    await file.close()
  }
}

/** Fetches all bytes from an offset on. Has the whole file the SHA-256 of the source? */
async function fetchFrom(
  file: fs.FileHandle,
  from: number,
  { found, fetching }: { readonly found: Source; readonly fetching: GetOptions }
): Promise<boolean> {
  const { output, level, signal, source } = fetching
  await file.truncate(from)
  const hash = createHash('sha256')
  await eachChunk(file, { length: from, signal }, (bytes) => hash.update(bytes))
  const progress = new TransferProgress(output, level, { name: source, size: found.size, bytes: from })
  try {
    for (let offset = from; offset < found.size; ) {
      signal.throwIfAborted()
      const bytes = await rangeAt(offset, found, fetching)
      await writeAll(file, bytes, offset)
      hash.update(bytes)
      offset += bytes.length
      progress.show(offset)
    }
  } finally {
    progress.close()
  }
  await file.sync()
  return hash.digest('hex') === found.sha256
}

async function rangeAt(offset: number, found: Source, { remote, source }: GetOptions): Promise<Buffer> {
  const range = await remote.repeat(['files.read', { path: source, offset, length: MAX_RANGE_BYTES }])
  if (
    range.bytes('offset') !== offset ||
    range.bytes('size') !== found.size ||
    range.text('modifiedAt') !== found.modifiedAt
  )
    throw new NodeError('CONFLICT', `${shown(source)} changed while it was fetched`, { retryable: true })
  const bytes = Buffer.from(range.text('bytes'), 'base64')
  if (bytes.length > 0 && bytes.length <= found.size - offset) return bytes
  throw new NodeError('INVALID_OUTPUT', `${range.agent} sent ${bytes.length} bytes at ${offset} of ${found.size}`)
}

/** Gives a complete part its name. Without --force it replaces no file. */
async function moveToPlace(part: string, file: string, { isForced }: TransferOptions): Promise<void> {
  if (isForced) await fs.rename(part, file)
  else await giveNewName(part, file, fs)
}
