// Reads the TAP that test files print.

/**
 * Splits the output of a process of test files (main.mjs) into the sections of its files.
 * @param {string} output standard output of the process
 * @returns {{ text: string, ms: number, cpuMs: number }[]} for each file that began: its TAP, wall and CPU milliseconds
 */
export function sectionsOf(output) {
  const [, ...parts] = output.split(/^@(?=(?:file|end) \d+ \d+$)/m)
  return parts.flatMap((part, at) => {
    const [mark, cpuMs, ms] = part.split(/\s/, 3)
    const next = parts[at + 1]?.split(/\s/, 3) ?? [null, cpuMs, ms]
    if (mark === 'end') return []
    const text = part.slice(part.indexOf('\n') + 1).replaceAll(/^(# @file|ok \d+ - @file # time = .*)$\n?/gm, '')
    // The first file also counts the start of the process.
    return [{ text, ms: next[2] - (at === 0 ? 0 : ms), cpuMs: next[1] - (at === 0 ? 0 : cpuMs) }]
  })
}

/**
 * Counts the tests of one file's output.
 * A test passes only when its line says `ok` without a directive and at least one assertion stood under it.
 * @param {string} output standard output of the file
 * @returns {{ passed: string[], failed: string[], skipped: string[], assertions: number, complete: boolean }}
 *   titles by fate; `complete` when the closing plan was printed
 */
export function readTap(output) {
  const result = { passed: [], failed: [], skipped: [], assertions: 0, complete: false }
  let asserted = 0
  for (const line of output.split('\n')) {
    if (/^ {4}(not )?ok \d+/.test(line)) asserted++
    else if (/^1\.\.\d+$/.test(line)) result.complete = true
    const test = /^(not )?ok \d+ - (.*)$/.exec(line)
    if (test === null) continue
    const fate = fateOf(test)
    if (fate === 'passed' && asserted === 0) result.failed.push(`${titleOf(test[2])} (it asserts nothing)`)
    else result[fate].push(titleOf(test[2]))
    result.assertions += asserted
    asserted = 0
  }
  return result
}

function fateOf([, not, rest]) {
  if (/ # (SKIP|TODO)$/.test(rest)) return 'skipped'
  return not === undefined ? 'passed' : 'failed'
}

function titleOf(rest) {
  return rest.replace(/ # (time = \S+|SKIP|TODO)$/, '')
}

/**
 * The part of the output worth reading when a file failed: without what held, without titles that nothing is said
 * under.
 * @param {string} output
 */
export function withoutPassing(output) {
  const kept = []
  let title = null
  for (const line of output.split('\n')) {
    if (line.trim() === '' || /^ *ok \d+/.test(line) || /^(TAP version|1\.\.\d+$)/.test(line)) continue
    if (line.startsWith('# ')) {
      title = line
      continue
    }
    if (title !== null) kept.push(title)
    title = null
    kept.push(line)
  }
  return kept.join('\n')
}

/** Characters of {@link gist}. */
const GIST = 1500

/**
 * The failed assertions of such a part, at most 1,500 characters; without one, its end.
 * @param {string} shown
 */
export function gist(shown) {
  const failed = shown.match(/^ +not ok[^]*?^ +\.\.\.$/gm)
  return failed === null ? shown.slice(-GIST) : failed.join('\n').slice(0, GIST)
}
