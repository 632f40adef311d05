import type { ImportStatus } from '../ports/imports.js'
import { EXIT } from './exit-codes.js'
import type { Output } from './terminal/output.js'

const STYLES = { imported: 'green', unchanged: 'dim', skipped: 'dim', refused: 'red' } as const

/** A status for people; a dry run would import. */
export function statusText(output: Output, status: ImportStatus, isDryRun: boolean): string {
  return output.paint(STYLES[status], isDryRun && status === 'imported' ? 'would import' : status)
}

/** The exit code of an import: `refusedAll` when pieces were refused and none is there now. */
export function importExit(statuses: readonly ImportStatus[], refusedAll: number): number {
  if (!statuses.includes('refused')) return EXIT.ok
  return statuses.some((status) => status === 'imported' || status === 'unchanged') ? EXIT.partly : refusedAll
}
