import type fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import type { Output } from '../terminal/output.js'
import type { ProgressLevel } from '../terminal/message-progress.js'
import { hashOfFile, openRegular, RANGE_BYTES } from './local-file.js'
import type { RemoteFiles } from './remote-files.js'
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

interface Sending extends TransferOptions {
  readonly file: fs.FileHandle
  readonly source: string
  /** The members that name the upload in each step. */
  readonly upload: { readonly path: string; readonly size: number; readonly sha256: string; readonly force?: true }
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
    const begun = await remote.ask(['files.write', upload])
    const there = begun.bytes('offset')
    const isSame = begun.text('sha256') === (await hashOfFile(file, Math.min(there, size), options.signal))
    const resumedAt = isSame ? there : 0
    if (!begun.is('done')) await sendRanges(remote, { ...options, file, source, upload }, resumedAt)
    return { agent: begun.agent, path: begun.text('path'), bytes: size, resumedAt, sha256 }
  } finally {
    await file.close()
  }
}

async function sendRanges(
  remote: RemoteFiles,
  { file, source, upload, output, level, signal }: Sending,
  from: number
): Promise<void> {
  const progress = new TransferProgress(output, level, { name: source, size: upload.size, bytes: from })
  try {
    for (let offset = from; ; ) {
      signal.throwIfAborted()
      const buffer = Buffer.alloc(Math.min(RANGE_BYTES, upload.size - offset))
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
    const isOther = error instanceof NodeError && isRecord(error.data) && error.data['reason'] === 'checksum'
    throw isOther ? changed(source) : error
  } finally {
    progress.close()
  }
}

function changed(source: string): NodeError {
  return new NodeError('CONFLICT', `${source} changed while it was sent; nothing was written`, { retryable: true })
}
