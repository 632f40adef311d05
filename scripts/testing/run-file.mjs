// Runs compiled test files in a process, one after the other, each with an empty TMPDIR and HOME of its own.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { leaksOf } from './leaks.mjs'
import { readTap, sectionsOf } from './tap.mjs'

/** Milliseconds one file may take. */
const FILE_LIMIT_MS = 900_000
/** Characters of output that are kept of one process. */
const MAX_OUTPUT = 4_000_000
/**
 * V8 optimizes a function after nine times as many bytes of code as by default. Tests run most functions for a short
 * time: their optimization took more processor time than it saved.
 */
const V8_OPTIONS = ['--interrupt-budget=600000']
const MAIN = fileURLToPath(new URL('main.mjs', import.meta.url))

/** Process groups that run now. */
const running = new Set()

/** Ends every test file that runs now. */
export function killAll() {
  for (const pid of running) killGroup(pid)
}

/**
 * Runs one file in a process of its own.
 * @param {{ file: string, dir: string }} job the compiled file and the directory to make for it
 */
export async function runFile(job) {
  const [result] = await runFiles([job])
  return result
}

/**
 * Runs files in one process. After a crash the files that did not run get another process.
 * @param {readonly { file: string, dir: string }[]} jobs
 * @returns {Promise<{ file: string, tap: ReturnType<typeof readTap>, faults: string[], output: string, ms: number,
 * cpuMs: number }[]>} one result for each job; `faults` says what went wrong beside failed tests: a crash, the time
 * limit, no test, a leak; `cpuMs` counts the processes that the file started and waited for as well
 */
export async function runFiles(jobs) {
  for (const { dir } of jobs) fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  const start = performance.now()
  const end = await run(jobs)
  const sections = sectionsOf(end.stdout)
  const hasFailed = sections.some(({ text }) => readTap(text).failed.length > 0)
  const done = Math.max(1, sections.length)
  const results = []
  for (const [at, job] of jobs.slice(0, done).entries()) {
    const section = sections[at] ?? { text: '', ms: performance.now() - start, cpuMs: 0 }
    const isLast = at === done - 1
    results.push(
      await resultOf(job, {
        ...section,
        end: isLast ? { ...end, hasFailed } : null,
        isEnded: !isLast || done === jobs.length
      })
    )
  }
  return done === jobs.length ? results : [...results, ...(await runFiles(jobs.slice(done)))]
}

/** What one file of a process did. `end` is the end of the process where the file was its last one. */
async function resultOf({ file, dir }, { text, ms, cpuMs, end, isEnded }) {
  const tap = readTap(end === null ? `${text}\n1..0` : text)
  const faults = end === null ? [] : faultsOf(end, tap)
  if (end !== null && !isEnded && faults.length === 0) faults.push('ended before the next file of its process began')
  if (tap.complete && tap.passed.length + tap.failed.length + tap.skipped.length === 0) faults.push('ran no test')
  dropCompiled(dir)
  faults.push(...(await leaksOf(dir)))
  return { file, tap, faults, output: end === null ? text : `${text}\n${end.errors}`, ms, cpuMs }
}

function faultsOf({ timedOut, signal, code, hasFailed }, tap) {
  if (timedOut) return [`took longer than ${FILE_LIMIT_MS / 1000} s`]
  if (signal !== null) return [`ended by ${signal}`]
  if (!tap.complete) return [`ended in the middle, exit code ${code}`]
  return code !== 0 && !hasFailed ? [`exit code ${code}`] : []
}

/**
 * The code that `a2a-node` keeps compiled is no leak: a client or an agent may start it without the variable that
 * disables it.
 */
function dropCompiled(home) {
  const cache = path.join(home, '.cache')
  const own = path.join(cache, 'a2a-node')
  fs.rmSync(path.join(own, 'compiled'), { recursive: true, force: true })
  for (const directory of [own, cache])
    if (fs.existsSync(directory) && fs.readdirSync(directory).length === 0) fs.rmdirSync(directory)
}

function run(jobs) {
  return new Promise((resolve) => {
    const names = jobs.flatMap(({ file, dir }) => [path.resolve(file), dir])
    const child = spawn(process.execPath, [...V8_OPTIONS, MAIN, ...names], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment(jobs[0].dir)
    })
    const result = { code: null, signal: null, timedOut: false, stdout: '', errors: '' }
    const expire = () => {
      result.timedOut = true
      killGroup(child.pid)
    }
    let limit = setTimeout(expire, FILE_LIMIT_MS)
    running.add(child.pid)
    child.stdout.setEncoding('utf8').on('data', (text) => {
      if (result.stdout.length < MAX_OUTPUT) result.stdout += text
      if (!text.includes('\n@file ')) return
      clearTimeout(limit)
      limit = setTimeout(expire, FILE_LIMIT_MS)
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      if (result.errors.length < MAX_OUTPUT) result.errors += text
    })
    // A grandchild may hold the pipes open after the file itself has ended: it is a leak, not a reason to wait.
    child.on('exit', (code, signal) => {
      clearTimeout(limit)
      running.delete(child.pid)
      const closed = new Promise((done) => child.on('close', done))
      const drained = new Promise((done) => setTimeout(done, 500).unref())
      void Promise.race([closed, drained]).then(() => resolve({ ...result, code, signal }))
    })
  })
}

/** The environment of a test: without the settings and the directories of the developer's own node. */
function environment(dir) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(A2A_NODE_|XDG_|FORCE_COLOR$)/.test(name))
  // Programs that a test starts run with the Node of the tests.
  const PATH = [path.dirname(process.execPath), process.env['PATH']].join(path.delimiter)
  const own = { NO_COLOR: '1', NODE_DISABLE_COMPILE_CACHE: '1', TMPDIR: dir, HOME: dir, A2A_NODE_TEST_RUN: dir }
  return { ...Object.fromEntries(kept), PATH, ...own }
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // gone meanwhile
  }
}
