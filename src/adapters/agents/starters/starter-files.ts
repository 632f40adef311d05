import fs from 'node:fs/promises'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import { searchFiles } from '../files/file-search.js'
import { DEFAULT_HITS, DEFAULT_READ_BYTES, MAX_HITS, MAX_PATTERN, MAX_READ_BYTES } from './starter-files-card.js'
import { GrantedPaths } from '../files/granted-paths.js'
import { failure } from '../files/hosted-agent.js'

/**
 * The starter agent `files`: `files.search`, `files.read` and `files.stat` under the granted directories. Forbidden and
 * missing files fail with a message that names the config key; without a grant everything is FORBIDDEN.
 */
export class FilesStarter {
  readonly #paths: GrantedPaths

  /** `grants`: directories of the config key `agents.grants`. */
  constructor(grants: readonly string[]) {
    this.#paths = new GrantedPaths(grants)
  }

  /** Does one task. Never rejects. */
  async run({ capability, input }: AgentTask, signal: AbortSignal): Promise<AgentOutcome> {
    const given = isRecord(input) ? input : {}
    try {
      await this.#paths.directories()
    } catch (error) {
      // Without a grant it can do nothing: a broadcast leaves it out, and has not failed.
      return failure('FORBIDDEN', messageOf(error))
    }
    try {
      if (capability === 'files.search') return await this.#search(given, signal)
      if (capability === 'files.read') return await this.#read(given)
      return await this.#stat(given)
    } catch (error) {
      return failure('TASK_FAILED', messageOf(error))
    }
  }

  async #search(given: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<AgentOutcome> {
    const pattern = textOf(given['pattern'])
    const text = textOf(given['text'])
    if (pattern === null && text === null) return failure('TASK_FAILED', 'the input has neither pattern nor text')
    if ((pattern ?? '').length > MAX_PATTERN || (text ?? '').length > MAX_PATTERN)
      return failure('TASK_FAILED', `pattern and text have at most ${MAX_PATTERN} characters`)
    const limit = numberOf(given['limit'], DEFAULT_HITS, MAX_HITS)
    return { ok: true, result: await searchFiles(this.#paths, { pattern, text, limit, signal }) }
  }

  async #read(given: Readonly<Record<string, unknown>>): Promise<AgentOutcome> {
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
      return {
        ok: true,
        result: { path, size, truncated: isTruncated, ...contentOf(buffer.subarray(0, bytesRead), isTruncated) }
      }
    } finally {
      await file.close()
    }
  }

  async #stat(given: Readonly<Record<string, unknown>>): Promise<AgentOutcome> {
    const path = await this.#paths.resolve(textOf(given['path']) ?? '')
    const stat = await fs.lstat(path)
    const type = stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : 'other'
    return { ok: true, result: { path, type, size: stat.size, modifiedAt: stat.mtime.toISOString() } }
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
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
