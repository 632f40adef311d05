import type fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { MAX_RANGE_BYTES } from '../../kit/transfer/limits.js'
import type { Output } from '../terminal/output.js'
import type { ProgressLevel } from '../terminal/message-progress.js'
import { hashOfFile, openRegular } from './local-file.js'
import type { FileAnswer, RemoteFiles } from './remote-files.js'
import { TransferProgress } from './transfer-progress.js'

/** A finished transfer. */
export interface Transferred {
  readonly agent: string
  /** Real path on the node. */
  readonly path: string
  readonly bytes: number
  /** Bytes that were there from an earlier run. */
  readonly resumedAt: number
  readonly sha256: string
}

/** How a transfer is done. */
export interface TransferOptions {
  readonly output: Output
  readonly level: ProgressLevel
  readonly signal: AbortSignal
  readonly isForced: boolean
}

/** The members that name an upload in each step. */
interface UploadName {
  readonly path: string
  readonly size: number
  readonly sha256: string
  readonly force?: true
}

interface RangesOptions extends TransferOptions {
  readonly file: fs.FileHandle
  readonly source: string
  readonly upload: UploadName
}

/** Copies a local file to a node, or continues an earlier copy of the same content. @throws NodeError */
export async function putFile(
  remote: RemoteFiles,
  { source, target }: { readonly source: string; readonly target: string },
  options: TransferOptions
): Promise<Transferred> {
  const { file, size } = await openRegular(source)
  try {
    const sha256 = await hashOfFile(file, size, options.signal)
    const wanted = target === '' || target.endsWith('/') ? `${target}${path.basename(source)}` : target
    const upload = { path: wanted, size, sha256, ...(options.isForced ? { force: true as const } : {}) }
    const begun = (await openUpload(remote, upload)) ?? (await remote.ask(['files.write', upload]))
    const there = begun.bytes('offset')
    const isSame = begun.text('sha256') === (await hashOfFile(file, Math.min(there, size), options.signal))
    const resumedAt = isSame ? there : 0
    if (!begun.is('done')) await sendRanges(remote, { ...options, file, source, upload }, resumedAt)
    return { agent: begun.agent, path: begun.text('path'), bytes: size, resumedAt, sha256 }
  } finally {
    await file.close()
  }
}

/** The state of an upload that an earlier run left, which needs no further approval; null when there is none. */
async function openUpload(remote: RemoteFiles, upload: UploadName): Promise<FileAnswer | null> {
  try {
    return await remote.repeat(['files.append', { ...upload, offset: 0, bytes: '' }])
  } catch (error) {
    if (['no-upload', 'checksum'].includes(reasonOf(error) ?? '')) return null
    throw error
  }
}

/** Why the node refused an upload; null for any other error. */
function reasonOf(error: unknown): string | null {
  const data = error instanceof NodeError ? error.data : null
  return isRecord(data) && typeof data['reason'] === 'string' ? data['reason'] : null
}

async function sendRanges(
  remote: RemoteFiles,
  { file, source, upload, output, level, signal }: RangesOptions,
  from: number
): Promise<void> {
  const progress = new TransferProgress(output, level, { name: source, size: upload.size, bytes: from })
  try {
    for (let offset = from; ; ) {
      signal.throwIfAborted()
      const buffer = Buffer.alloc(Math.min(MAX_RANGE_BYTES, upload.size - offset))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
      if (bytesRead === 0) throw changed(source)
      const bytes = buffer.subarray(0, bytesRead).toString('base64')
      const step = await remote.repeat(['files.append', { ...upload, offset, bytes }])
      offset += bytesRead
      progress.show(offset)
      if (step.is('done')) return
      if (offset >= upload.size) throw changed(source)
    }
  } catch (error) {
    throw reasonOf(error) === 'checksum' ? changed(source) : error
  } finally {
    progress.close()
  }
}

function changed(source: string): NodeError {
  return new NodeError('CONFLICT', `${source} changed while it was sent; nothing was written`, { retryable: true })
}
