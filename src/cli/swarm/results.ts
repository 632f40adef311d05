import { NodeError } from '../../kit/errors.js'
import { formatDuration } from '../../kit/units.js'
import type { SwarmItemStatus, SwarmResults } from '../../ports/swarm-api.js'
import { isSet, type Options, textOption } from '../options.js'
import { jsonLine, type Output, plainText, type Style } from '../terminal/output.js'
import { type Cell, plural, printTable } from '../terminal/render.js'

/** Rows of the table that `swarm run` prints at its end. */
const ROWS_MAX = 50
/** Characters of the results in the last line of `--json`: 1 Mi. */
const LINE_MAX = 1024 * 1024

const STYLES: Readonly<Record<SwarmItemStatus, Style>> = {
  completed: 'green',
  failed: 'red',
  unknown: 'yellow',
  skipped: 'dim',
  canceled: 'dim'
}

/** The form of the results at the end of a swarm. `directory`: as it was typed. */
export type ResultsForm = { readonly form: 'table' | 'json' } | { readonly form: 'files'; readonly directory: string }

/**
 * `--results table|json|files=DIR` of `swarm run`. Default: a table.
 * @throws NodeError USAGE for any other value, and where no end of one swarm is awaited
 */
export function resultsOption(options: Options): ResultsForm {
  const text = textOption(options, 'results')
  const found = text === undefined ? ({ form: 'table' } as const) : formOf(text)
  if (text === undefined) return found
  for (const name of ['detach', 'dryRun'])
    if (isSet(options, name))
      throw usage(`--results needs the end of the swarm: leave --${name === 'detach' ? name : 'dry-run'} out`)
  if (textOption(options, 'until') !== undefined && found.form !== 'table')
    throw usage(`--until makes a swarm of every round: --results ${found.form} takes the results of one`)
  if (isSet(options, 'json') && found.form !== 'files')
    throw usage('the last line of --json has the results: leave --results out')
  return found
}

function formOf(text: string): ResultsForm {
  if (text === 'table' || text === 'json') return { form: text }
  const directory = text.startsWith('files=') ? text.slice('files='.length) : ''
  if (directory !== '') return { form: 'files', directory }
  if (text === 'files' || text === 'files=') throw usage('--results files needs a directory: --results files DIR')
  throw usage(`--results takes table, json or files DIR, not ${JSON.stringify(text)}`)
}

/** Prints the results of a swarm as a table. `rowsMax`: further rows are counted. */
export async function printResults(
  output: Output,
  results: SwarmResults['results'],
  rowsMax = Number.POSITIVE_INFINITY
): Promise<void> {
  if (results.length === 0) return
  const rows = results
    .slice(0, rowsMax)
    .map((one): Cell[] => [
      one.item,
      one.agent,
      { text: one.status, style: STYLES[one.status] },
      one.durationMs === null ? '-' : formatDuration(one.durationMs),
      one.error === null ? (typeof one.result === 'string' ? one.result : jsonLine(one.result)) : one.error.message
    ])
  await printTable(output, ['ITEM', 'AGENT', 'STATUS', 'TIME', 'RESULT'], rows)
  const more = results.length - rows.length
  if (more > 0) output.print(`and ${plural(more, 'more result')}`)
}

/** Prints completed items at the end of a swarm, at most 50. Its summary has the others. */
export async function printCompleted(output: Output, { results }: SwarmResults): Promise<void> {
  await printResults(
    output,
    results.filter(({ status }) => status === 'completed'),
    ROWS_MAX
  )
}

/** Prints the combined result; nothing where there is none. */
export function printCombined(output: Output, { result }: Pick<SwarmResults, 'result'>): void {
  if (result !== undefined) output.print(`result: ${plainText(typeof result === 'string' ? result : jsonLine(result))}`)
}

/**
 * The results for the last line of `--json`: the first ones, up to 1 Mi characters. `moreResults`: number of the
 * others, absent for none.
 */
export function boundedResults({ results }: SwarmResults): {
  readonly results: SwarmResults['results']
  readonly moreResults?: number
} {
  let left = LINE_MAX
  const kept: SwarmResults['results'][number][] = []
  for (const one of results) {
    left -= jsonLine(one).length
    if (left < 0) break
    kept.push(one)
  }
  const more = results.length - kept.length
  return { results: kept, ...(more === 0 ? {} : { moreResults: more }) }
}

function usage(message: string): NodeError {
  return new NodeError('USAGE', message, { next: ['a2a-node swarm run --help'] })
}
