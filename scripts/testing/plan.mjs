// Which test files run, in which order, and which of them share a process.
import fs from 'node:fs'
import path from 'node:path'

/** Folders of test/ whose files take longest, in the order to start them. */
const SLOW = ['e2e', 'simulation', 'contracts']
/** Folders of test/ whose files share a process for each folder: most of a unit file's time is the start of Node and its imports. */
const SHARED = ['kit', 'domain', 'node', 'config', 'adapters', 'maintenance', 'compose', 'cli']
/** Ending of the slow proofs: `npm run prove` runs them, `npm test` does not. */
const PROOF = '.prove.test.js'

/**
 * The compiled test files of one tier that the filters name (all without filters), grouped by process, slowest first.
 * A filter finds the files of both tiers.
 * @param {string} root the compiled test/
 * @param {{ filters: readonly string[], isProof: boolean }} chosen
 * @returns {string[][]}
 */
export function groupsOf(root, { filters, isProof }) {
  const files = fs
    .readdirSync(root, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .filter((name) => (filters.length === 0 ? name.endsWith(PROOF) === isProof : true))
    .map((name) => path.join(root, name))
    .filter((file) => filters.length === 0 || filters.some((part) => file.includes(part)))
    .sort()
  const groups = new Map()
  for (const file of files) groups.set(keyOf(root, file), [...(groups.get(keyOf(root, file)) ?? []), file])
  return [...groups.values()]
    .map((group) => ({ group, rank: rankOf(root, group[0]), size: group.reduce((sum, file) => sum + fs.statSync(file).size, 0) }))
    .sort((a, b) => a.rank - b.rank || b.size - a.size)
    .map(({ group }) => group)
}

/** Files with one key share a process: at most two levels of folders. */
function keyOf(root, file) {
  const folders = path.dirname(path.relative(root, file)).split(path.sep)
  return SHARED.includes(folders[0]) && !file.endsWith(PROOF) ? folders.slice(0, 2).join('/') : file
}

function rankOf(root, file) {
  const rank = SLOW.indexOf(path.relative(root, file).split(path.sep)[0])
  return rank === -1 ? SLOW.length : rank
}
