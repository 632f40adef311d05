// The guard: a process of its own that outlives the node by a moment. Its standard input is a pipe whose other end
// only the node holds, so it ends when the node ends, however that happens; then every group still alive is killed.
// Lines: `+<group>` a group has started, `-<group>` it is gone.
import { isGroupAlive, signalGroup } from './process-table.js'

/** How often the groups are killed again while one of them lives, and for how long. */
const AGAIN_MS = 50
const MAX_ROUNDS = 40

const live = new Set<number>()
let unread = ''

// A Ctrl-C or a shutdown script meets every process of the terminal; the guard ends with its node only.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

process.stdin.setEncoding('utf8')
process.stdin.on('data', (text: string) => {
  const lines = (unread + text).split('\n')
  unread = lines.pop() ?? ''
  for (const line of lines) read(line)
})
process.stdin.on('error', () => killAll(0))
process.stdin.on('end', () => killAll(0))

function read(line: string): void {
  const match = /^([+-])(\d{1,10})$/.exec(line)
  const group = Number(match?.[2] ?? 0)
  if (group <= 1) return
  if (match?.[1] === '+') live.add(group)
  else live.delete(group)
}

function killAll(round: number): void {
  for (const group of live) {
    signalGroup(group, 'SIGKILL')
    if (!isGroupAlive(group)) live.delete(group)
  }
  if (live.size === 0 || round >= MAX_ROUNDS) process.exit(0)
  setTimeout(() => killAll(round + 1), AGAIN_MS)
}
