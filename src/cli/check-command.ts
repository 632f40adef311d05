import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'

/** Kept output of a check, in bytes: the last ones. */
export const CHECK_OUTPUT_MAX = 16 * 1024
/** Milliseconds between the signal that ends a check and its kill. */
const GRACE_MS = 2000

/** How a check ended. */
export interface Checked {
  /** Its exit code; null when it was ended by a signal, ran too long, or could not be run. */
  readonly code: number | null
  /** The last {@link CHECK_OUTPUT_MAX} bytes of its stdout and stderr. */
  readonly output: string
  /** Was it ended by Ctrl-C? */
  readonly isInterrupted: boolean
}

/** Dependencies of {@link runCheck}. */
export interface CheckDeps {
  /** Text on its standard input. */
  readonly input: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly timeoutMs: number
}

/**
 * Runs a command by the shell in a process group of its own. Never throws. Ctrl-C and the end of its time end the whole
 * group.
 */
export async function runCheck(command: string, { input, env, timeoutMs }: CheckDeps): Promise<Checked> {
  const child = spawn('/bin/sh', ['-c', command], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    detached: true
  })
  const stated = new Tail(CHECK_OUTPUT_MAX)
  const state = { isInterrupted: false }
  const end = (): void => endGroup(child)
  const interrupt = (): void => {
    state.isInterrupted = true
    end()
  }
  const timer = setTimeout(() => {
    stated.add(Buffer.from('\nit ran too long\n'))
    end()
  }, timeoutMs)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt)
  child.stdout.on('data', (bytes: Buffer) => stated.add(bytes))
  child.stderr.on('data', (bytes: Buffer) => stated.add(bytes))
  // One that does not read its input has not failed.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  try {
    const code = await new Promise<number | null>((resolve) => {
      child.once('error', (error) => {
        stated.add(Buffer.from(error.message))
        resolve(null)
      })
      child.once('close', resolve)
    })
    return { code, output: stated.text(), isInterrupted: state.isInterrupted }
  } finally {
    clearTimeout(timer)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  signalGroup(pid, 'SIGTERM')
  setTimeout(() => signalGroup(pid, 'SIGKILL'), GRACE_MS).unref()
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // All of it has ended.
  }
}

/** The last bytes of a stream. */
class Tail {
  readonly #max: number
  #bytes: Buffer = Buffer.alloc(0)

  constructor(max: number) {
    this.#max = max
  }

  add(bytes: Buffer): void {
    const all = Buffer.concat([this.#bytes, bytes])
    this.#bytes = all.subarray(Math.max(0, all.length - this.#max))
  }

  text(): string {
    return this.#bytes.toString('utf8')
  }
}
