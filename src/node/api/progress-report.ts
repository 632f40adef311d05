import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { ProgressReport } from '../../ports/policy-api.js'
import { previewOf } from '../../kit/preview.js'

/** Longest text of a report of progress, in characters. */
const REPORT_SHOWN = 1024

/**
 * What an agent reports, as those are told who wait for it: `progress`, `total` and `message` as they are meant; all else as
 * text, cut at 1,024 characters.
 */
export function reportOf(data: unknown): ProgressReport {
  if (!isRecord(data)) return { progress: null, total: null, message: textOf(data) }
  const { progress, total, message } = data
  const [at, of] = [numberOf(progress), numberOf(total)]
  const isMeant = at !== null || typeof message === 'string'
  return {
    progress: at,
    total: at === null ? null : of,
    message: isMeant ? (message === undefined ? null : textOf(message)) : textOf(data)
  }
}

function textOf(value: unknown): string {
  return shown(typeof value === 'string' ? value : previewOf(value, REPORT_SHOWN), REPORT_SHOWN)
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
