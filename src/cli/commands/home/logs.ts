import { NodeError } from '../../../kit/errors.js'
import { fileReason } from '../../../kit/file-reason.js'
import { shown } from '../../../kit/text.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { type LogLine, linesSince, logLines } from '../../logs/log-lines.js'
import { followLog, type TailPlace, readLogFile } from '../../logs/log-reader.js'
import { countOption, isSet, sinceOption } from '../../options.js'
import { type StopSignals, stopSignals } from '../../signals.js'
import type { Output } from '../../terminal/output.js'

const LINES = 100
const MAX_LINES = 1_000_000
const SHOWN_LINE = 20_000

/** `logs`: the last lines of the log of a background node, or those since a time; with `--follow` also later ones. */
export const logs: Action = async (context, _args, options) => {
  const { output } = context
  const { logFile } = context.paths()
  const since = sinceOption(options, 'since')
  const count = countOption(options, 'lines', [0, MAX_LINES]) ?? (since === undefined ? LINES : MAX_LINES)
  const isFollowed = isSet(options, 'follow')
  // A signal that comes while the first lines are printed ends it in order too.
  const signals = isFollowed ? stopSignals() : null
  const { lines, end } = await recorded(logFile).catch((error: unknown) => Promise.reject(unreadable(logFile, error)))
  if (end === null && lines.length === 0 && !isFollowed) throw noLog(logFile)
  const chosen = since === undefined ? lines : linesSince(lines, since)
  for (const line of count === 0 ? [] : chosen.slice(-count)) printLine(output, line)
  return signals === null ? EXIT.ok : await follow(output, logFile, { from: end, signals })
}

/** The lines of the log and its predecessor, and the place where the log goes on. */
async function recorded(logFile: string): Promise<{ lines: readonly LogLine[]; end: TailPlace | null }> {
  const [former, log] = [await readLogFile(`${logFile}.1`), await readLogFile(logFile)]
  const lines = [former, log].flatMap((part) => (part === null ? [] : logLines(part.text, part.endMs)))
  return { lines, end: log?.end ?? null }
}

interface FollowedLog {
  readonly from: TailPlace | null
  readonly signals: StopSignals
}

async function follow(output: Output, logFile: string, { from, signals }: FollowedLog): Promise<number> {
  const stop = new AbortController()
  const ended = signals.first.then((code) => {
    stop.abort()
    return code
  })
  try {
    for await (const text of followLog(logFile, from, stop.signal)) {
      const [line] = logLines(text, Date.now())
      if (line !== undefined) printLine(output, line)
    }
    return await ended
  } catch (error) {
    throw unreadable(logFile, error)
  } finally {
    signals.release()
  }
}

function printLine(output: Output, { text, at }: LogLine): void {
  if (output.json) output.object('log@1', { at: at === null ? null : new Date(at).toISOString(), text })
  else output.print(shown(text, SHOWN_LINE))
}

function noLog(logFile: string): NodeError {
  const state = `there is no log ${logFile}: a node writes one in the background or as a service`
  return new NodeError('CONFLICT', state, { next: ['a2a-node start --detach', 'a2a-node service install'] })
}

function unreadable(logFile: string, error: unknown): unknown {
  if (error instanceof NodeError || (error as NodeJS.ErrnoException).syscall === undefined) return error
  return new NodeError('NO_PERMISSION', `${logFile}: ${fileReason(error)}`, { cause: error, next: ['a2a-node status'] })
}
