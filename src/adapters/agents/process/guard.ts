import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/**
 * The node's end of its guard process (guard-main): reports the live process groups to it. One guard serves all groups
 * of a node, so a task costs two short lines, not the start of a process. It starts with the first group and again when
 * it dies while groups live.
 */
export class Guard {
  readonly #live = new Set<number>()
  #child: ChildProcess | null = null
  #closed = false

  /**
   * From now on the group dies with this process. Returns when the guard's pipe holds the news.
   * @throws Error when no guard can be started
   */
  watch(processGroup: number): void {
    this.#live.add(processGroup)
    if (this.#child === null) this.#start()
    else this.#child.stdin?.write(`+${processGroup}\n`)
  }

  /** The group is gone. */
  release(processGroup: number): void {
    if (this.#live.delete(processGroup)) this.#child?.stdin?.write(`-${processGroup}\n`)
  }

  /** Ends the guard, which kills the live groups. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    child.ref()
    const exited = once(child, 'exit')
    child.stdin?.end()
    await exited
  }

  /** pid of the guard process; null while there is none. */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  #start(): void {
    const main = fileURLToPath(new URL('./guard-main.js', import.meta.url))
    // A session of its own: a signal to the node's group must not take the guard away first.
    const child = spawn(process.execPath, ['--max-old-space-size=32', '--max-semi-space-size=1', main], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: {},
      cwd: '/'
    })
    child.on('error', () => {})
    child.stdin.on('error', () => {})
    if (child.pid === undefined) throw new Error('the guard of agent processes could not be started')
    this.#child = child
    child.unref()
    ;(child.stdin as typeof child.stdin & { unref?(): void }).unref?.()
    child.on('exit', () => this.#onExit(child))
    for (const group of this.#live) child.stdin.write(`+${group}\n`)
  }

  #onExit(child: ChildProcess): void {
    if (this.#child !== child) return
    this.#child = null
    if (this.#closed || this.#live.size === 0) return
    try {
      this.#start()
    } catch {
      // The next group tries again; until then the run records stand in.
    }
  }
}
