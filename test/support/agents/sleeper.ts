import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Assert } from 'brittle'

/** A program of its own process group that never ends by itself. */
export interface Sleeper {
  readonly processGroup: number
  readonly child: ChildProcess
  /** pid of a second process in the group, when there is one. */
  readonly second: number | null
}

/**
 * Starts a shell that waits. `ignoring`: it and its children ignore SIGTERM. `family`: it has a child of its own.
 * Killed when the test ends.
 */
export async function sleeper(t: Assert, { ignoring = false, family = false } = {}): Promise<Sleeper> {
  const trap = ignoring ? "trap '' TERM; " : ''
  const script = family ? `${trap}sleep 600 & echo $!; wait` : `${trap}echo 0; exec sleep 600`
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const processGroup = child.pid ?? 0
  t.teardown(() => {
    try {
      process.kill(-processGroup, 'SIGKILL')
    } catch {
      // gone, as it should be
    }
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const second = Number(String(line).trim())
  return { processGroup, child, second: second === 0 ? null : second }
}
