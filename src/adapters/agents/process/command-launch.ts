import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { ProcessGroups } from './process-groups.js'

/**
 * Gate of the child before it becomes the agent's program: it waits for one line on descriptor 4. The line comes when
 * the process group is recorded and guarded; if the node dies before, the pipe ends and the program never runs. This
 * text is constant: program and arguments are its parameters and are never read as shell. The shell replaces itself
 * (exec), and unsets the variables that it adds.
 */
const GATE = 'IFS= read -r go <&4 || exit 125; exec 4<&-'
const ADDED_BY_SHELL = ['PWD', 'OLDPWD', 'SHLVL'] as const
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

/** A program to start. */
export interface Launch {
  /** Absolute path of the program. */
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** null: it serves several requests. */
  readonly requestId: string | null
}

/** A program that was started, as a process group of its own. */
export interface Launched {
  readonly processGroup: number
  readonly child: ChildProcess
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Descriptor 3 of the program. */
  readonly progress: Readable
  /** Resolves when the first process of the group has ended. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/**
 * Starts a program without a shell's interpretation, recorded and guarded before its first instruction.
 * @throws Error when it cannot be started
 */
export async function launch(groups: ProcessGroups, { program, args, env, cwd, requestId }: Launch): Promise<Launched> {
  const added = ADDED_BY_SHELL.filter((name) => !Object.hasOwn(env, name))
  const script = `${GATE}; ${added.length === 0 ? '' : `unset ${added.join(' ')}; `}exec "$@"`
  const child = spawn('/bin/sh', ['-c', script, 'sh', program, ...args], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    env,
    cwd
  })
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  if (child.pid === undefined) await new Promise((_, reject) => child.once('error', reject))
  const processGroup = child.pid as number
  child.on('error', () => {})
  const gate = child.stdio[4] as Writable
  // A program that has ended, or closed its input, breaks these pipes; that is its right.
  for (const stream of [child.stdin, gate, ...child.stdio.slice(1)]) stream?.on('error', () => {})
  try {
    groups.adopt(processGroup, requestId)
  } catch (error) {
    child.stdio.forEach((stream) => stream?.destroy())
    throw error
  }
  gate.end('go\n')
  const { stdin, stdout, stderr } = child as { stdin: Writable; stdout: Readable; stderr: Readable }
  return { processGroup, child, stdin, stdout, stderr, progress: child.stdio[3] as Readable, exited }
}

/**
 * The absolute path of a program: as written when it holds a slash, else looked up in PATH; null when there is none.
 */
export function findProgram(name: string, env: Readonly<Record<string, string>>, cwd: string): string | null {
  if (name.includes('/')) return isProgram(path.resolve(cwd, name)) ? path.resolve(cwd, name) : null
  for (const dir of (env['PATH'] ?? DEFAULT_PATH).split(':')) {
    const file = path.resolve(cwd, dir, name)
    if (isProgram(file)) return file
  }
  return null
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}
