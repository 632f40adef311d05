import { setTimeout as delay } from 'node:timers/promises'
import { connectControl } from '../adapters/control/client.js'
import { NodeError } from '../kit/errors.js'
import { formatDuration } from '../kit/units.js'
import type { NodeInfo } from '../ports/node-api.js'

/** Milliseconds that a node that holds its home may take to answer, without `--timeout`. */
export const ANSWER_MS = 2000
const LOOK_MS = 50

/**
 * The node that serves a control socket; null when none does.
 * @throws NodeError ALREADY_RUNNING when one holds the socket but does not answer in `waitMs` (2 s by default)
 */
export async function runningNode(socket: string, waitMs = ANSWER_MS): Promise<NodeInfo | null> {
  try {
    return await connectControl(socket).call('node.info', {}, { signal: AbortSignal.timeout(Math.ceil(waitMs)) })
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    if (error.code === 'NODE_NOT_RUNNING') return null
    if (error.code === 'CANCELED')
      throw new NodeError(
        'ALREADY_RUNNING',
        `a node holds ${socket} but has not answered in ${formatDuration(Math.ceil(waitMs))}`,
        { cause: error }
      )
    throw error
  }
}

/**
 * Waits until a node that is just starting answers, at most `waitMs` (2 s by default).
 * @throws the given error when none does
 */
export async function awaitRunning(socket: string, otherwise: unknown, waitMs = ANSWER_MS): Promise<NodeInfo> {
  const until = performance.now() + waitMs
  while (performance.now() < until) {
    const info = await runningNode(socket, Math.max(100, until - performance.now()))
    if (info !== null) return info
    await delay(LOOK_MS)
  }
  throw otherwise
}
