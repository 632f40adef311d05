// The process of test files: `node main.mjs FILE DIR [FILE DIR]...` runs each file with its directory as TMPDIR and
// HOME.
// Prints a line `@file CPU_MS WALL_MS` before the tests of each file, and `@end CPU_MS WALL_MS` at its end.
import fs from 'node:fs'
import { pathToFileURL } from 'node:url'
import { configure, hook } from 'brittle'

/** Milliseconds of a clock tick of /proc: `getconf CLK_TCK` is 100 on every Linux. */
const TICK_MS = 10

/** CPU milliseconds of this process and, on Linux, of the children that it waited for. */
function cpuMs() {
  const { user, system } = process.cpuUsage()
  return Math.round((user + system) / 1000) + childrenMs()
}

function childrenMs() {
  if (!fs.existsSync('/proc/self/stat')) return 0
  const fields = fs.readFileSync('/proc/self/stat', 'utf8').split(') ').pop().split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS
}

function tell(mark) {
  console.log(`\n${mark} ${cpuMs()} ${Math.round(process.uptime() * 1000)}`)
}

/**
 * Milliseconds of a test that sets no limit of its own: many, since other processes may take the cores. Files have
 * budgets.
 */
const TEST_LIMIT_MS = 120_000

configure({ timeout: TEST_LIMIT_MS })
process.on('exit', () => tell('@end'))
for (let at = 2; at < process.argv.length; at += 2) {
  const [file, dir] = process.argv.slice(at)
  // Runs after the tests of the file before.
  await hook('@file', () => {
    Object.assign(process.env, { TMPDIR: dir, HOME: dir, A2A_NODE_TEST_RUN: dir })
    tell('@file')
  })
  await import(pathToFileURL(file).href)
}
