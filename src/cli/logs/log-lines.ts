/** A line of the log of a node. */
export interface LogLine {
  readonly text: string
  /** Unix milliseconds; null for a line without a time, such as one of the banner. */
  readonly at: number | null
  /** It was written at this time or before: its own, that of the next line with one, or of the end of the file. */
  readonly by: number
}

const TIME_OF_DAY = /^(\d{2}):(\d{2}):(\d{2}) (?:debug|info|warn|error) /
const JSON_TIME = /"at":"(\d{4}-\d{2}-\d{2}T[\d:.]+Z)"/
/** A line may be written a little before the one above it. */
const OUT_OF_ORDER_MS = 60_000

/**
 * The lines of a log with their times. Lines of the form `text` have a time of day alone: their days are counted back
 * from `endMs`, when the last line was written (unix milliseconds).
 */
export function logLines(text: string, endMs: number): readonly LogLine[] {
  const lines: LogLine[] = []
  let after = endMs
  for (const line of text.split('\n').reverse()) {
    if (line === '') continue
    const at = timeOf(line, after)
    if (at !== null) after = at
    lines.push({ text: line, at, by: after })
  }
  return lines.reverse()
}

/** The lines from the first one of a time on. */
export function linesSince(lines: readonly LogLine[], sinceMs: number): readonly LogLine[] {
  const first = lines.findIndex(({ by }) => by >= sinceMs)
  return first === -1 ? [] : lines.slice(first)
}

/** The time of a line that was not written after another one. */
function timeOf(line: string, after: number): number | null {
  const iso = line.startsWith('{') ? JSON_TIME.exec(line)?.[1] : undefined
  const time = iso === undefined ? Number.NaN : Date.parse(iso)
  if (!Number.isNaN(time)) return time
  const [, hours, minutes, seconds] = TIME_OF_DAY.exec(line) ?? []
  if (seconds === undefined) return null
  const day = new Date(after)
  day.setHours(Number(hours), Number(minutes), Number(seconds), 0)
  if (day.getTime() > after + OUT_OF_ORDER_MS) day.setDate(day.getDate() - 1)
  return day.getTime()
}
