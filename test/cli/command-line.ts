import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Assert } from 'brittle'
import { startControlServer } from '../../src/adapters/control/server.js'
import { FakeNodeApi, type FakeState } from '../contracts/node-api-fake.js'
import { ranHere } from '../support/command-line.js'
import { needsProcess } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

/** The repository, from build/test/cli. */
export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
const BIN = path.join(REPOSITORY, 'bin', 'a2a-node.js')

/** What a command line did. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How a command line is run. */
export interface RunOptions {
  readonly home?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | Uint8Array
  readonly cwd?: string
  /** Called with each piece of stderr and the way to send a signal. */
  onStderr?(text: string, kill: (signal: NodeJS.Signals) => void): void
  /** The same of stdout. */
  onStdout?(text: string, kill: (signal: NodeJS.Signals) => void): void
}

/**
 * Runs a command line in this process; in its own ({@link spawned}) where it needs standard input, a directory or
 * signals.
 */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { stdin, cwd, onStderr, onStdout } = options
  const isOfProcess = [stdin, cwd, onStderr, onStdout].some((one) => one !== undefined)
  if (isOfProcess || needsProcess(args, options.env)) return await spawned(args, options)
  return await ranHere(args, environmentOf(options))
}

/** Runs `a2a-node` as a person would: its own process, no inherited settings. */
export function spawned(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const env = environmentOf(options)
  const child = spawn(process.execPath, [BIN, ...args], {
    env,
    cwd: options.cwd ?? REPOSITORY,
    stdio: ['pipe', 'pipe', 'pipe']
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    options.onStdout?.(stdout, (signal) => child.kill(signal))
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    options.onStderr?.(stderr, (signal) => child.kill(signal))
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.stdin ?? '')
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

function environmentOf(options: RunOptions): Record<string, string> {
  const { HOME = '/', PATH = '', TMPDIR } = process.env
  return {
    HOME,
    PATH,
    NODE_DISABLE_COMPILE_CACHE: '1',
    ...(TMPDIR === undefined ? {} : { TMPDIR }),
    ...(options.home === undefined ? {} : { A2A_NODE_HOME: options.home }),
    ...options.env
  }
}

/** A home whose control socket is served by a fake. */
export interface FakeHome {
  readonly home: string
  readonly socket: string
  readonly fake: FakeNodeApi
  /** Runs a command line against it. */
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  close(): Promise<void>
}

/** Serves a fake in a fresh home until the test ends. */
export async function fakeHome(t: Pick<Assert, 'teardown'>, state: FakeState = {}): Promise<FakeHome> {
  const home = await tempDir(t)
  await mkdir(path.join(home, 'run'), { mode: 0o700 })
  const socket = path.join(home, 'run', 'control.sock')
  const fake = new FakeNodeApi({ socket, ...state })
  const server = await startControlServer({ path: socket, tier: () => 0, apiFor: () => fake })
  t.teardown(() => server.close())
  return {
    home,
    socket,
    fake,
    run: async (args, options) => await run(args, { home, ...options }),
    close: () => server.close()
  }
}
