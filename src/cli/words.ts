import type { AgentProvider } from '../kit/names/provider.js'
import { formatDuration } from '../kit/units.js'
import type { TaskInfo } from '../ports/task-api.js'

/** A round trip: `12 ms`, `0.4 ms`; `-` when unknown. */
export function rttText(ms: number | null): string {
  if (ms === null) return '-'
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}

/** The reasons for which a task waits. */
export const WAITING_TEXT: Readonly<Record<NonNullable<TaskInfo['waitingFor']>, string>> = {
  peer: 'waiting for the other node',
  slot: 'waiting for a free slot',
  approval: 'waiting for approval',
  ack: 'waiting for the other node to confirm it'
}

/** An ISO time as `5 min ago`; `never` for null. */
export function agoText(iso: string | null, now: number): string {
  if (iso === null) return 'never'
  const passed = now - Date.parse(iso)
  return Number.isNaN(passed) ? '-' : passed < 1000 ? 'just now' : `${formatDuration(passed)} ago`
}

/** An ISO time as the clock on the wall says it: `2026-01-02 03:04:05`. */
export function timeText(iso: string): string {
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return '-'
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** `~/...` for a path under the home directory of the user. */
export function tildePath(path: string, home: string | undefined): string {
  return home !== undefined && home !== '/' && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}

/** A size as people read it: `900 B`, `12.3 MiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let place = 0
  let value = bytes
  for (; value >= 1024 && place < units.length - 1; place++) value /= 1024
  return `${place === 0 ? value : value.toFixed(1)} ${units[place] ?? ''}`
}

/** The organization that offers an agent, with its website. */
export function providerText({ organization, url }: AgentProvider): string {
  return `${organization} (${url})`
}
