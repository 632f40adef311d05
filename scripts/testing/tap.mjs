// Reads the TAP that one test file prints.

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
    result[fateOf(test, asserted)].push(titleOf(test[2]))
    result.assertions += asserted
    asserted = 0
  }
  return result
}

function fateOf([, not, rest], asserted) {
  if (/ # (SKIP|TODO)$/.test(rest)) return 'skipped'
  return not === undefined && asserted > 0 ? 'passed' : 'failed'
}

function titleOf(rest) {
  return rest.replace(/ # (time = \S+|SKIP|TODO)$/, '')
}

/**
 * The part of the output worth reading when a file failed: without the assertions that held.
 * @param {string} output
 */
export function withoutPassing(output) {
  return output
    .split('\n')
    .filter((line) => !/^ {4}ok \d+/.test(line) && !/^ok \d+ - .* # time = /.test(line))
    .join('\n')
}
