import { spawnSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'

/** Resolves when the condition holds. What never holds is ended by the time limit of the test. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(10)
}

/** Does the process run? A zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim()
  return state !== '' && !state.startsWith('Z')
}

/** Resolves when the process has ended. */
export function ended(pid: number): Promise<void> {
  return eventually(() => !isRunning(pid))
}
