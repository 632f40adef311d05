import { readFileSync } from 'node:fs'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { formatDuration } from '../../kit/units.js'
import { MAX_APPROVAL_WAIT_MS } from '../../domain/task/approval-wait.js'

const ANSWER_MS = 15_000
/** Calls that a healthy node answers from memory. */
const QUICK_MS = 5000
/** On top of the time that the caller gives the work. */
const MARGIN_MS = 15_000
const QUICK: ReadonlySet<string> = new Set(['node.info', 'node.status', 'node.stop', 'peers.list'])
/** Work whose `timeoutMs` does not pass while a person must approve it. */
const APPROVED: ReadonlySet<string> = new Set(['message.send', 'message.call'])
const UNBOUNDED: ReadonlySet<string> = new Set([...APPROVED, 'peers.ping'])

/** On top of the time that the caller gives the node: its own error, which knows more, comes first. */
const GRACE_MS = 1000
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Milliseconds until the answer to a call must begin. 5,000 for reads from memory, 15,000 for most calls and for every
 * other name. Work with a `timeoutMs` has 15,000 more than that, and the time for an approval; other work has null, no
 * limit. `givenMs`, the time of the caller, replaces the first two.
 */
export function answerMs(name: string, params: unknown, givenMs?: number): number | null {
  const isQuick = QUICK.has(name)
  if (givenMs !== undefined) return Math.min(isQuick ? givenMs : givenMs + GRACE_MS, LONGEST_TIMER_MS)
  if (isQuick) return QUICK_MS
  if (!UNBOUNDED.has(name)) return ANSWER_MS
  const timeoutMs = (params as { readonly timeoutMs?: unknown } | null)?.timeoutMs
  if (typeof timeoutMs !== 'number') return null
  return Math.min(timeoutMs + MARGIN_MS + (APPROVED.has(name) ? MAX_APPROVAL_WAIT_MS : 0), LONGEST_TIMER_MS)
}

/**
 * The error of a call that a node took and did not answer within `limitMs`: TIMEOUT, with the process id that the file
 * beside the socket names. The process still runs and may make the change, so `data.outcome` is `unknown`. A node that
 * does not answer in the time of a call without `--timeout` is to be killed; less (`givenMs`) proves nothing.
 */
export function silentNode(
  socketPath: string,
  { name, limitMs, givenMs }: { readonly name: string; readonly limitMs: number; readonly givenMs?: number | undefined }
): NodeError {
  const pid = pidOfSocket(socketPath, path.dirname(socketPath))
  const late = `does not answer${pid === null ? '' : ` (pid ${pid})`}: no reply to ${name} within ${formatDuration(limitMs)}`
  const isHung = pid !== null && (givenMs === undefined || givenMs >= (answerMs(name, null) ?? ANSWER_MS))
  const next = [...(!isHung || !QUICK.has(name) ? ['a2a-node status'] : []), ...(isHung ? [`kill -9 ${pid}`] : [])]
  return new NodeError('TIMEOUT', `the node at ${socketPath} ${late}; the node still runs, and may still do it`, {
    data: { outcome: 'unknown', timeoutMs: limitMs },
    next
  })
}

/**
 * The process that serves a socket, by the pid file in `run`; null when there is no such file or it names another
 * socket.
 */
export function pidOfSocket(socketPath: string, run: string): number | null {
  try {
    const record = JSON.parse(readFileSync(path.join(run, 'node.pid'), 'utf8')) as Record<string, unknown> | null
    // The file of a node that served another socket must not get anybody killed.
    const pid = record?.['socket'] === socketPath ? record['pid'] : null
    return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 1 ? pid : null
  } catch {
    return null
  }
}
