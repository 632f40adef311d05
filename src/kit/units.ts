const DURATION_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_BYTES: Readonly<Record<string, number>> = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 }

/** Units of a duration as people type them, with their milliseconds, the longest first. */
export const LONGEST_UNIT_FIRST = Object.entries(DURATION_MS).toSorted(([, a], [, b]) => b - a)

/** `10s`, `5m`, `2h`, `1.5s`, `250ms`, `1d` as whole milliseconds; null for anything else. */
export function parseDuration(text: string): number | null {
  return parseUnit(text, DURATION_MS)
}

/** `64KiB`, `1MiB`, `512B` as whole bytes (case does not matter); null for anything else. */
export function parseSize(text: string): number | null {
  return parseUnit(text, SIZE_BYTES)
}

function parseUnit(text: string, units: Readonly<Record<string, number>>): number | null {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)\s?([a-z]{1,3})$/i.exec(text.trim())
  const factor = Object.hasOwn(units, match?.[2]?.toLowerCase() ?? '')
    ? units[match?.[2]?.toLowerCase() ?? '']
    : undefined
  if (match === null || factor === undefined) return null
  const value = Math.round(Number(match[1]) * factor)
  return Number.isSafeInteger(value) ? value : null
}

/** Milliseconds for people: `12 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${trimZero((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return pair([Math.floor(seconds / 60), 'min'], [seconds % 60, 's'])
  const minutes = Math.round(seconds / 60)
  if (minutes < 1440) return pair([Math.floor(minutes / 60), 'h'], [minutes % 60, 'min'])
  const hours = Math.round(minutes / 60)
  return pair([Math.floor(hours / 24), 'd'], [hours % 24, 'h'])
}

function pair([big, bigUnit]: readonly [number, string], [small, smallUnit]: readonly [number, string]): string {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`
}

function trimZero(text: string): string {
  return text.endsWith('.0') ? text.slice(0, -2) : text
}
