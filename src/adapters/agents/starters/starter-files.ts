import fs from 'node:fs/promises'
import type { Clock } from '../../../kit/clock.js'
import { asNodeError, messageOf } from '../../../kit/errors.js'
import { fileReason } from '../../../kit/file-reason.js'
import { isRecord } from '../../../kit/json.js'
import { MAX_FILE_BYTES, MAX_RANGE_BYTES } from '../../../kit/transfer/limits.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { searchFiles } from '../files/file-search.js'
import { DEFAULT_HITS, DEFAULT_READ_BYTES, MAX_HITS, MAX_PATTERN, MAX_READ_BYTES } from './starter-files-card.js'
import { GrantedPaths } from '../files/granted-paths.js'
import { failure } from '../files/hosted-agent.js'
import { factsOf, listDirectory } from './file-list.js'
import { hashOf } from './file-hash.js'
import type { Upload } from './partials.js'
import { UploadFault } from './upload-fault.js'
import { Uploads } from './uploads.js'

/** Capabilities that need a grant for writing. */
const WRITING: ReadonlySet<string> = new Set(['files.write', 'files.append'])

/** Dependencies of {@link FilesStarter}. */
export interface FilesDeps {
  /** Directories of the config key `agents.grants`. */
  readonly grants: readonly string[]
  /** Directories of the config key `agents.writeGrants`. */
  readonly writeGrants: readonly string[]
  readonly clock: Pick<Clock, 'now'>
}

/** Input of a task. */
type Given = Readonly<Record<string, unknown>>

/**
 * The starter agent `files` under the granted directories. Forbidden and missing files fail with a message that names
 * the config key; without a grant of the kind that a capability needs it is FORBIDDEN.
 */
export class FilesStarter {
  readonly #paths: GrantedPaths
  readonly #targets: GrantedPaths
  readonly #uploads: Uploads
  /** Uploads of an earlier run of the node were looked through. */
  #isTidy = false

  constructor({ grants, writeGrants, clock }: FilesDeps) {
    this.#paths = new GrantedPaths(grants)
    this.#targets = new GrantedPaths(writeGrants, 'agents.writeGrants')
    this.#uploads = new Uploads(clock)
  }

  /** Does one task. Never rejects. */
  async run(
    { capability, input, peer = '' }: Pick<AgentTask, 'capability' | 'input' | 'peer'>,
    signal: AbortSignal
  ): Promise<AgentOutcome> {
    const given = isRecord(input) ? input : {}
    await this.#tidy()
    try {
      await (WRITING.has(capability) ? this.#targets : this.#paths).directories()
    } catch (error) {
      // Without a grant it can do nothing: a broadcast leaves it out, and has not failed.
      return { ...failure('FORBIDDEN', messageOf(error)), data: asNodeError(error).data }
    }
    try {
      return { ok: true, result: await this.#work(capability, { given, peer, signal }) }
    } catch (error) {
      const data = error instanceof UploadFault ? { data: { reason: error.reason } } : {}
      return { ...failure('TASK_FAILED', faultText(error)), ...data }
    }
  }

  async #work(
    capability: string,
    { given, peer, signal }: { given: Given; peer: string; signal: AbortSignal }
  ): Promise<object> {
    switch (capability) {
      case 'files.search':
        return await this.#search(given, signal)
      case 'files.read':
        return given['offset'] === undefined ? await this.#read(given) : await this.#readRange(given)
      case 'files.list':
        return await listDirectory(this.#paths, textOf(given['path']))
      case 'files.write':
        return await this.#uploads.open(await this.#upload(given, peer), signal)
      case 'files.append': {
        const bytes = Buffer.from(textOf(given['bytes']) ?? '', 'base64').subarray(0, MAX_RANGE_BYTES)
        return await this.#uploads.append(await this.#upload(given, peer), {
          offset: Number(given['offset']),
          bytes,
          signal
        })
      }
      default:
        return await this.#stat(given, signal)
    }
  }

  /** The upload that a checked input names. */
  async #upload(given: Given, peer: string): Promise<Upload> {
    const place = await this.#targets.place(textOf(given['path']) ?? '')
    const [size, sha256] = [Number(given['size']), String(given['sha256'])]
    return { place, size, sha256, isForced: given['force'] === true, peer }
  }

  async #tidy(): Promise<void> {
    if (this.#isTidy) return
    this.#isTidy = true
    await this.#uploads.tidy(await this.#targets.directories().catch(() => []))
  }

  async #search(given: Given, signal: AbortSignal): Promise<object> {
    const pattern = textOf(given['pattern'])
    const text = textOf(given['text'])
    if (pattern === null && text === null) throw new Error('the input has neither pattern nor text')
    if ((pattern ?? '').length > MAX_PATTERN || (text ?? '').length > MAX_PATTERN)
      throw new Error(`pattern and text have at most ${MAX_PATTERN} characters`)
    const limit = numberOf(given['limit'], DEFAULT_HITS, MAX_HITS)
    return await searchFiles(this.#paths, { pattern, text, limit, signal })
  }

  async #read(given: Given): Promise<object> {
    const maxBytes = numberOf(given['maxBytes'], DEFAULT_READ_BYTES, MAX_READ_BYTES)
    const { file, path, size } = await this.#paths.open(textOf(given['path']) ?? '')
    try {
      const { buffer, bytesRead } = await file.read(
        Buffer.alloc(Math.min(maxBytes, size)),
        0,
        Math.min(maxBytes, size),
        0
      )
      const isTruncated = size > bytesRead
      return { path, size, truncated: isTruncated, ...contentOf(buffer.subarray(0, bytesRead), isTruncated) }
    } finally {
      await file.close()
    }
  }

  /** A range of a file's bytes. */
  async #readRange(given: Given): Promise<object> {
    const length = numberOf(given['length'], MAX_RANGE_BYTES, MAX_RANGE_BYTES)
    const offset = Number(given['offset'])
    const { file, path, size } = await this.#paths.open(textOf(given['path']) ?? '')
    try {
      const wanted = Math.max(0, Math.min(length, size - offset))
      const { buffer, bytesRead } = await file.read(Buffer.alloc(wanted), 0, wanted, offset)
      const modifiedAt = (await file.stat()).mtime.toISOString()
      const bytes = buffer.subarray(0, bytesRead).toString('base64')
      return { path, size, truncated: offset + bytesRead < size, offset, modifiedAt, bytes }
    } finally {
      await file.close()
    }
  }

  async #stat(given: Given, signal: AbortSignal): Promise<object> {
    const path = await this.#paths.resolve(textOf(given['path']) ?? '')
    const found = { path, ...factsOf(await fs.lstat(path)) }
    if (given['sha256'] !== true || found.type !== 'file') return found
    const { file, size } = await this.#paths.open(path)
    try {
      if (size > MAX_FILE_BYTES) throw new Error(`the file has more than ${MAX_FILE_BYTES} bytes`)
      const { mtime, mtimeMs } = await file.stat()
      const sha256 = await hashOf(file, { length: size, signal })
      const after = await file.stat()
      if (after.size !== size || after.mtimeMs !== mtimeMs) throw new Error('the file changed meanwhile')
      return { path, type: 'file', size, modifiedAt: mtime.toISOString(), sha256 }
    } finally {
      await file.close()
    }
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** The reason without the path that the file system adds, which the caller may not know. */
function faultText(error: unknown): string {
  return (error as NodeJS.ErrnoException).code === undefined ? messageOf(error) : fileReason(error)
}

function numberOf(value: unknown, fallback: number, max: number): number {
  return typeof value === 'number' && value >= 1 ? Math.min(Math.floor(value), max) : fallback
}

/**
 * Text when the bytes are UTF-8, else base64. The cut may have gone through a character: up to three bytes are let go
 * for it.
 */
function contentOf(bytes: Buffer, isTruncated: boolean): { text: string } | { bytes: string } {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  for (let cut = 0; cut <= (isTruncated ? 3 : 0); cut++) {
    try {
      return { text: decoder.decode(bytes.subarray(0, Math.max(0, bytes.length - cut))) }
    } catch {
      // Not text up to here.
    }
  }
  return { bytes: bytes.toString('base64') }
}
