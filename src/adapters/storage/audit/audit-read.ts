import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { AUDIT_CHAINS } from './audit-chains.js'
import { parseLine } from './audit-line.js'
import type { AuditLine } from './audit-line.js'
import { auditError, segmentFiles } from './audit-segments.js'

/** Lines that are put in order at once: more than a chain writes in the time that its repeats wait for their line. */
const IN_ORDER = 2048

/** A line of the log and the chain that it stands in. */
export interface ReadLine extends AuditLine {
  readonly chain: string
}

/** A line that cannot be read: somebody changed it. */
export interface DamagedLine {
  readonly chain: string
  readonly damaged: true
}

/** Which lines are wanted. */
export interface AuditQuery {
  /** Unix milliseconds; lines before it are left out. */
  readonly since?: number
}

/**
 * The lines of all chains in the order of their time, oldest first, read as they are asked for. A running node may go
 * on writing: what it writes meanwhile may or may not be among them. Damaged lines come where they stand.
 * @throws NodeError STORE_DAMAGED (a directory in the place of a file, or the other way round), NO_PERMISSION
 */
export async function* readAudit(
  dir: string,
  query: AuditQuery = {}
): AsyncGenerator<ReadLine | DamagedLine, void, undefined> {
  const readers = AUDIT_CHAINS.map(({ name }) => inOrder(linesOfChain(dir, name, query)))
  try {
    const heads = await Promise.all(readers.map((reader) => reader.next()))
    for (;;) {
      const next = earliest(heads)
      if (next === -1) return
      const head = heads[next]
      if (head?.done === false) yield head.value
      heads[next] = (await readers[next]?.next()) ?? { done: true, value: undefined }
    }
  } catch (error) {
    throw auditError(error, dir)
  } finally {
    for (const reader of readers) await reader.return(undefined)
  }
}

type Head = IteratorResult<ReadLine | DamagedLine, void>

/** The chain whose next line is the oldest; damaged ones go first, so that they hold nothing up. -1: none is left. */
function earliest(heads: readonly Head[]): number {
  let best = -1
  let bestAt = ''
  for (const [index, head] of heads.entries()) {
    if (head.done === true) continue
    const at = 'damaged' in head.value ? '' : head.value.at
    if (best === -1 || at < bestAt) [best, bestAt] = [index, at]
  }
  return best
}

/**
 * Puts lines of one chain in the order of their time: one with a count was written when the last of its events had
 * come.
 */
async function* inOrder(lines: ReturnType<typeof linesOfChain>): ReturnType<typeof linesOfChain> {
  const unread: { readonly at: string; readonly line: ReadLine | DamagedLine }[] = []
  let latest = ''
  for await (const line of lines) {
    // A damaged one stays where it stands.
    const at = 'damaged' in line ? latest : line.at
    if (at > latest) latest = at
    const place = unread.findLastIndex((one) => one.at <= at) + 1
    unread.splice(place, 0, { at, line })
    if (unread.length > IN_ORDER) yield* unread.splice(0, 1).map((one) => one.line)
  }
  for (const { line } of unread) yield line
}

async function* linesOfChain(
  dir: string,
  name: string,
  query: AuditQuery
): AsyncGenerator<ReadLine | DamagedLine, void, undefined> {
  // All are opened first: a running node may rename them.
  const files: FileHandle[] = []
  try {
    for (const file of await segmentFiles({ dir, name })) files.push(await fs.open(file))
    for (const file of files) {
      if (query.since !== undefined && (await file.stat()).mtimeMs < query.since) continue
      for await (const text of file.readLines({ autoClose: false })) {
        const line = parseLine(text)
        if (line === null) yield { chain: name, damaged: true }
        else if (isSince(line, query)) yield { chain: name, ...line }
      }
    }
  } finally {
    for (const file of files) await file.close().catch(() => {})
  }
}

function isSince({ at }: AuditLine, { since }: AuditQuery): boolean {
  return since === undefined || Date.parse(at) >= since
}
