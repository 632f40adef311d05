import { type ChildProcess, spawn } from 'node:child_process'
import { open, readdir, rm, rmdir } from 'node:fs/promises'
import path from 'node:path'
import { makePrivateDirectory } from '../adapters/control/private-directory.js'
import type { HomePaths } from '../config/paths.js'
import { type ErrorBody, NodeError } from '../kit/errors.js'
import { fileReason } from '../kit/file-reason.js'
import { shellWord } from '../kit/text.js'
import type { NodeInfo } from '../ports/node-api.js'
import type { CommandContext } from './context.js'
import { noFlag } from './start/memory.js'
import type { StartFlags } from './start-settings.js'

/** Last message of a background node to the process that started it. */
export type ReadyReport = { readonly ready: NodeInfo } | { readonly error: ErrorBody }
/** A line about its start, for people; earlier than the last message. */
interface ProgressLine {
  readonly progress: string
}

/**
 * Starts the node in a process of its own that outlives this one, its output in the log file of the home. Resolves when
 * its control API answers. `more`: further words of its command line.
 * @throws NodeError what the node failed with; NO_PERMISSION, DISK_FULL, CONFIG_INVALID for the log file
 */
export async function startDetached(
  context: CommandContext,
  flags: StartFlags,
  more: readonly string[] = []
): Promise<NodeInfo> {
  const paths = context.paths()
  const before = await namesIn(paths.home)
  const log = await openLog(paths)
  try {
    const child = spawn(
      process.execPath,
      [...process.execArgv, process.argv[1] ?? '', ...childArguments(flags, context), ...more],
      {
        detached: true,
        cwd: paths.home,
        // The directory may be relative to this process's own.
        env: {
          ...process.env,
          ...(context.env['A2A_NODE_HOME'] ? { A2A_NODE_HOME: path.resolve(context.env['A2A_NODE_HOME']) } : {})
        },
        stdio: ['pipe', log.fd, log.fd, 'ipc']
      }
    )
    // The code goes by the pipe: arguments of a long-lived process are for everybody to see.
    child.stdin?.on('error', () => {})
    child.stdin?.end(flags.join ?? '')
    return await untilReady(child, paths.logFile, (line) => context.output.note(line))
  } catch (error) {
    await removeNewLog(paths, before)
    throw error
  } finally {
    await log.close()
  }
}

/** Names in a directory; null: there is none. */
async function namesIn(dir: string): Promise<readonly string[] | null> {
  return await readdir(dir).catch(() => null)
}

/** Removes the log of a refused start from a home without anything else, and a home that was not there before. */
async function removeNewLog({ home, logFile }: HomePaths, before: readonly string[] | null): Promise<void> {
  const now = await namesIn(home)
  if ((before ?? []).length > 0 || now?.length !== 1 || now[0] !== path.basename(logFile)) return
  await rm(logFile, { force: true })
  if (before === null) await rmdir(home).catch(() => {})
}

async function openLog(paths: HomePaths): ReturnType<typeof open> {
  try {
    await makePrivateDirectory(paths.home)
    return await open(paths.logFile, 'a', 0o600)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? ''
    if (reason === 'EEXIST' || reason === 'ENOTDIR')
      throw new NodeError('CONFIG_INVALID', `${paths.home} is not a directory`, {
        cause: error,
        next: ['a2a-node start --home <directory>']
      })
    const code = reason === 'ENOSPC' ? 'DISK_FULL' : 'NO_PERMISSION'
    const next = code === 'DISK_FULL' ? [] : ['a2a-node start --home <directory you may write>']
    throw new NodeError(code, `cannot write ${paths.logFile}: ${fileReason(error)}`, { cause: error, next })
  }
}

function childArguments(flags: StartFlags, context: CommandContext): string[] {
  const value = (name: string, text: string | null | undefined): string[] =>
    text === null || text === undefined ? [] : [`--${name}=${text}`]
  return [
    'start',
    '--report-ready',
    ...value('home', context.home === null ? null : path.resolve(context.home)),
    ...value('name', flags.name),
    ...value('join', flags.join === null ? null : '-'),
    ...(flags.joinsOnce ? ['--join-once'] : []),
    ...value('timeout', flags.timeout),
    ...flags.forgotten.map(noFlag),
    ...Object.entries(flags.typed).flatMap(([flag, texts]) => texts.map((text) => `${flag}=${text}`))
  ]
}

/** Waits for the report of the child, then lets go of it. A signal to this process goes on to the child. */
function untilReady(child: ChildProcess, logFile: string, onProgress: (line: string) => void): Promise<NodeInfo> {
  return new Promise((resolve, reject) => {
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal)
    const done = (): void => {
      process.off('SIGINT', forward).off('SIGTERM', forward)
      if (child.connected) child.disconnect()
      child.unref()
    }
    process.on('SIGINT', forward).on('SIGTERM', forward)
    child.on('message', (report: ReadyReport | ProgressLine) => {
      if ('progress' in report) return onProgress(report.progress)
      if ('ready' in report) {
        done()
        return resolve(report.ready)
      }
      const { error } = report
      // It takes back what it made of the home before it ends.
      child.removeAllListeners('exit').once('exit', () => {
        done()
        reject(NodeError.fromBody(error))
      })
    })
    child.once('error', (error) => {
      done()
      reject(new NodeError('INTERNAL', `cannot start a process: ${fileReason(error)}`, { cause: error }))
    })
    child.once('exit', (code, signal) => {
      done()
      reject(
        new NodeError(
          'INTERNAL',
          `the node ended before it was ready (${signal ?? `exit code ${code}`}); see ${logFile}`,
          {
            next: [`tail ${shellWord(logFile)}`]
          }
        )
      )
    })
  })
}

/** Sends a line about the start to the parent, if one listens. */
export function reportProgress(progress: string): void {
  if (process.connected) process.send?.({ progress } satisfies ProgressLine)
}

/** Tells the parent, if one listens, and lets go of its channel. */
export async function reportReady(report: ReadyReport): Promise<void> {
  if (process.send === undefined) return
  await new Promise<void>((resolve) => process.send?.(report, undefined, {}, () => resolve()))
  if (process.connected) process.disconnect()
}
