// Which test files run, in which order, and which of them share a process.
import fs from 'node:fs'
import path from 'node:path'

/**
 * Places in test/ whose files take longest, in the order to start them: a process that starts late runs alone at the
 * end. With each the most files that share a process; each process starts Node, imports the program and compiles its
 * code, which takes a second.
 */
const SLOW = new Map([
  ['e2e', 6],
  ['adapters/mesh', 12],
  ['simulation', 1],
  ['compliance', 30],
  ['compose', 30],
  ['scripts', 30],
  ['conformance', 30],
  ['maintenance', 30],
  ['contracts', 30]
])
/** The same elsewhere, for files of one folder of test/. */
const SHARING = 30
/** Ending of the slow proofs: `npm run prove` runs them, `npm test` does not. Each has a process of its own. */
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
  return groupsByProcess(root, files)
    .map((group) => ({
      group,
      rank: rankOf(root, group[0]),
      size: group.reduce((sum, file) => sum + fs.statSync(file).size, 0)
    }))
    .sort((a, b) => a.rank - b.rank || b.size - a.size)
    .map(({ group }) => group)
}

/** Neighbours of one folder share a process. */
function groupsByProcess(root, files) {
  const groups = []
  const open = new Map()
  for (const file of files) {
    const folder = folderOf(root, file)
    const group = open.get(folder)
    if (!file.endsWith(PROOF) && group !== undefined && group.length < (SLOW.get(folder) ?? SHARING)) {
      group.push(file)
      continue
    }
    groups.push([file])
    if (!file.endsWith(PROOF)) open.set(folder, groups.at(-1))
  }
  return groups
}

/** The slow place that a file is in, else the folder of test/; '' for a file of test/ itself. */
function folderOf(root, file) {
  const folder = path.dirname(path.relative(root, file)).split(path.sep).join('/')
  for (const place of SLOW.keys()) if (`${folder}/`.startsWith(`${place}/`)) return place
  return folder === '.' ? '' : folder.split('/')[0]
}

function rankOf(root, file) {
  const rank = [...SLOW.keys()].indexOf(folderOf(root, file))
  return rank === -1 ? SLOW.size : rank
}
