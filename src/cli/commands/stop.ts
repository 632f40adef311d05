import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { NodeError } from '../../kit/errors.js'
import type { Action } from '../context.js'
import { formatDuration } from '../../kit/units.js'
import { EXIT } from '../exit-codes.js'
import { durationOption } from '../options.js'

/** Without `--timeout`: the longest shutdown that a node may be configured to, and a little more. */
const GONE_MS = 13_000
const LOOK_MS = 25

/** `stop`: asks the node to end and waits until its process is gone. */
export const stop: Action = async ({ output, api }, _args, options) => {
  const timeoutMs = durationOption(options, 'timeout') ?? GONE_MS
  const { pid } = await api().call('node.stop', {})
  if (!output.json) output.note(`stopping (pid ${pid}) ...`)
  const until = performance.now() + timeoutMs
  while (isAlive(pid)) {
    if (performance.now() > until) {
      throw new NodeError(
        'TIMEOUT',
        `the node (pid ${pid}) has not ended within ${formatDuration(timeoutMs)}; it still runs, and is closing`,
        {
          data: { timeoutMs },
          // In less time no node has to end.
          next: ['a2a-node status', ...(timeoutMs < GONE_MS ? [] : [`kill -9 ${pid}`])]
        }
      )
    }
    await delay(LOOK_MS)
  }
  if (output.json) output.object('stop@1', { pid, stopped: true })
  else output.print('stopped')
  return EXIT.ok
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !isZombie(pid)
}

/** An ended process whose parent has not looked is gone for us; only Linux tells. */
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}
