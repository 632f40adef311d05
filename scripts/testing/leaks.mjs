// Finds what a test file left behind: entries of its private temporary directory, processes that inherited its
// environment.
import fs from 'node:fs'
import path from 'node:path'

/** Milliseconds that children of an ended test file get to end as well. */
const GRACE_MS = 3000
const POLL_MS = 50

/**
 * What is left of a test file that ended. Ends leftover processes and removes leftover files.
 * @param {string} dir the file's own TMPDIR; every process it started carries this path in its environment
 * @returns {Promise<string[]>} one line for each leftover
 */
export async function leaksOf(dir) {
  const deadline = Date.now() + GRACE_MS
  let left = processesOf(dir)
  while (left.length > 0 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    left = processesOf(dir)
  }
  const lines = left.map(({ pid, command }) => `process ${pid} still runs: ${command}`)
  for (const { pid } of left) kill(pid)
  for (const name of fs.readdirSync(dir)) lines.push(`${path.join(dir, name)} was not removed`)
  const fault = removed(dir)
  return fault === null ? lines : [...lines, fault]
}

/**
 * Removes a directory; why it is still there, else null. A file system that a test mounted there stays: the test ended
 * before its teardown.
 * @param {string} dir
 */
export function removed(dir) {
  try {
    fs.rmSync(dir, { recursive: true, force: true })
    return null
  } catch (error) {
    return `${dir} cannot be removed: ${error.message}`
  }
}

/** Processes whose environment names the directory. Empty where there is no /proc. */
function processesOf(dir) {
  if (!fs.existsSync('/proc/self/environ')) return []
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && names(name, dir))
    .map((name) => ({ pid: Number(name), command: read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim() || '?' }))
}

function names(pid, dir) {
  return read(`/proc/${pid}/environ`)
    .split('\0')
    .some((entry) => entry.endsWith(`=${dir}`))
}

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return '' // gone meanwhile, or another user's
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // gone meanwhile
  }
}
