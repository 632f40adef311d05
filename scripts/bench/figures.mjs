/**
 * One line of the table: a quantity with its samples.
 * @typedef {object} Figure
 * @property {string} name
 * @property {string} unit `ms`, `s`, `MB`, `x`, `appends`, ...
 * @property {readonly number[]} samples Raw, in the unit.
 * @property {number | null} goal The value asked for; null: only told.
 * @property {'max' | 'min'} [bound] Is the goal the most (default) or the least that is good?
 * @property {'median' | 'worst'} [statistic] Which number the goal binds. Default: the median.
 * @property {string} [note] How to read it, or why there is no number.
 */

/** The value below which the share `q` (0..1) of the samples lies, interpolated; NaN for none. */
export function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b)
  if (sorted.length === 0) return Number.NaN
  const at = (sorted.length - 1) * q
  const low = sorted[Math.floor(at)]
  return low + (sorted[Math.ceil(at)] - low) * (at % 1)
}

/** The middle sample. */
export function median(samples) {
  return quantile(samples, 0.5)
}

/**
 * A figure with its median, extremes, bound value and verdict: `ok`, `over`, or `-` without a goal, `skipped` without
 * samples.
 */
export function summary(figure) {
  const { goal, bound = 'max', statistic = 'median' } = figure
  // One that was not measured is NaN, or null once another process sent it.
  const samples = figure.samples.filter((sample) => Number.isFinite(sample))
  const value = { median: median(samples), min: Math.min(...samples), max: Math.max(...samples) }
  const worst = bound === 'max' ? value.max : value.min
  const bindsOn = statistic === 'worst' ? worst : value.median
  const isGood = bound === 'max' ? bindsOn <= goal : bindsOn >= goal
  const verdict = samples.length === 0 ? 'skipped' : goal === null ? '-' : isGood ? 'ok' : 'over'
  return { ...figure, samples, bound, statistic, ...value, verdict }
}

/** A number as people read it: three significant digits, at most three decimals. */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return '-'
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3
  return String(Number(value.toFixed(digits)))
}

/** The table of some figures, as lines. */
export function tableLines(figures) {
  const rows = [['FIGURE', 'GOAL', 'MEDIAN', 'MIN..MAX', 'N', ''], ...figures.map(rowOf)]
  const widths = rows[0].map((_cell, column) => Math.max(...rows.map((row) => row[column].length)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd()
  )
  return figures.reduce(
    (all, { note }, index) => [...all, lines[index + 1], ...(note ? [`    ${note}`] : [])],
    [lines[0]]
  )
}

function rowOf(figure) {
  const { name, unit, goal, bound, statistic, samples, verdict } = figure
  const sign = bound === 'max' ? '<=' : '>='
  const which = statistic === 'worst' ? `${bound} ` : ''
  const isEmpty = samples.length === 0
  return [
    name,
    goal === null ? '-' : `${which}${sign} ${shortNumber(goal)} ${unit}`,
    isEmpty ? '-' : `${shortNumber(figure.median)} ${unit}`,
    isEmpty ? '-' : `${shortNumber(figure.min)}..${shortNumber(figure.max)}`,
    String(samples.length),
    verdict
  ]
}
