#!/usr/bin/env node
// The main job on one machine: three nodes in three processes and three homes find each other on the embedded loopback
// network, joined by a real invite, and count this repository's own sources together. Every step is a command of
// a2a-node, shown as a person would type it; the result is checked against the files.
// Exit code: 0 all went well, 1 something did not, 130 and 143 after Ctrl-C and SIGTERM. Leaves nothing behind.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import dgram from 'node:dgram'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const BIN = path.join(ROOT, 'bin', 'a2a-node.js')
const [FOUNDER, ...NEWCOMERS] = ['laptop', 'desktop', 'server']
const SOURCES = 'src'
const COLUMNS = 80
/** The whole demo may take this long; it takes about 15 seconds. */
const LIMIT_MS = 120_000
/** A node or command that is told to end gets this long before it is killed. */
const END_MS = 8000
/** Progress lines that are shown when stderr is no terminal; the rest is counted. */
const PROGRESS_SHOWN = 6
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

const isColored = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb'

/** Why the demo ends early: a signal, the time limit, or that nobody reads what it prints. */
class Stopped extends Error {
  constructor(reason, exitCode) {
    super(reason)
    this.exitCode = exitCode
  }
}

/** What the three homes share, and the processes that run now. */
class Stage {
  nodes = new Map()
  command = null
  /** @type {Error | null} */
  stopped = null
  #onStop = null

  constructor(dir, port) {
    this.dir = dir
    // A setting of the person's own node must not reach these three.
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_NODE_'))
    this.env = {
      ...Object.fromEntries(own),
      A2A_NODE_LOCAL_PORT: String(port),
      NODE_COMPILE_CACHE: path.join(dir, 'cache')
    }
    this.stop = new Promise((_, reject) => {
      this.#onStop = reject
    })
    this.stop.catch(() => {})
  }

  /** Ends whatever is awaited now. The first reason counts. */
  halt(reason) {
    this.stopped ??= reason
    this.command?.kill('SIGTERM')
    this.#onStop(this.stopped)
  }

  home(name) {
    return path.join(this.dir, name)
  }

  spawn(name, args, options) {
    if (this.stopped !== null) throw this.stopped
    return spawn(process.execPath, [BIN, ...args], {
      cwd: ROOT,
      env: { ...this.env, A2A_NODE_HOME: this.home(name) },
      ...options
    })
  }

  /** Waits for something, but not after the demo was told to end. */
  async wait(step) {
    return await Promise.race([step, this.stop])
  }
}

function say(text = '') {
  process.stdout.write(`${text}\n`)
}

/** The demo's own words, told apart from what a command prints. */
function tell(text) {
  say(isColored ? `\u001b[36m# ${text}\u001b[0m` : `# ${text}`)
}

/** Shows a command as it is typed on the machine of that name, wrapped for a terminal of 80 columns. */
function show(name, args, end = '') {
  let line = `${name} $ a2a-node`
  const lines = []
  for (const word of [...args.map(quoted), ...(end === '' ? [] : [end])]) {
    if (line.length + word.length + 3 > COLUMNS) {
      lines.push(`${line} \\`)
      line = '   '
    }
    line += ` ${word}`
  }
  for (const one of ['', ...lines, line]) say(isColored && one !== '' ? `\u001b[1m${one}\u001b[0m` : one)
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`
}

/** Runs a command to its end, shows what it prints unless it is `quiet`, and gives its stdout. */
async function run({ stage, name, quiet = false }, ...args) {
  show(name, args)
  const isLive = process.stderr.isTTY
  const color = isColored && !quiet ? ['--color', 'always'] : []
  const child = stage.spawn(name, [...args, ...color], { stdio: ['ignore', 'pipe', isLive ? 'inherit' : 'pipe'] })
  stage.command = child
  const output = textOf(child.stdout)
  if (!isLive) await stage.wait(showProgress(child.stderr))
  const code = await stage.wait(ended(child))
  stage.command = null
  const text = await output
  if (!quiet) process.stdout.write(text)
  if (code !== 0) throw new Error(`a2a-node ${args[0]} ended with exit code ${code}`)
  return text
}

async function textOf(stream) {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk
  return text
}

/** Passes stderr on; of the many lines of a swarm's progress only the first, and how many there were. */
async function showProgress(stream) {
  let lines = 0
  for await (const line of readline.createInterface({ input: stream })) {
    const isProgress = /^(lease|done|back) {2,}/.test(line)
    if (!isProgress || ++lines <= PROGRESS_SHOWN) say(line)
  }
  if (lines > PROGRESS_SHOWN) say(`... and ${lines - PROGRESS_SHOWN} further lines of progress`)
}

/** The exit code of a process, or the signal that ended it. */
function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode ?? child.signalCode)
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal))
    child.once('error', (error) => resolve(error.message))
  })
}

/** Starts a node in the background and shows what it says until it is up. Its log goes to its home. */
async function startNode(stage, name, args) {
  const shown = args.map((word) => (word.length > 40 ? `${word.slice(0, 8)}...${word.slice(-4)}` : word))
  show(name, ['start', '--name', name, ...shown], '&')
  fs.mkdirSync(stage.home(name), { mode: 0o700 })
  const log = fs.openSync(path.join(stage.home(name), 'node.log'), 'a', 0o600)
  // A process group of its own: Ctrl-C is for the demo, which then stops its nodes.
  const child = stage.spawn(name, ['start', '--name', name, ...args], {
    stdio: ['ignore', 'pipe', log],
    detached: true
  })
  fs.closeSync(log)
  stage.nodes.set(name, child)
  const up = new Promise((resolve, reject) => {
    readline.createInterface({ input: child.stdout }).on('line', (line) => {
      say(line)
      if (line.startsWith('Ctrl-C stops the node')) resolve()
    })
    child.once('close', (code) => reject(new Error(`the node ${name} ended with exit code ${code}`)))
  })
  await stage.wait(up)
}

/** Waits until a node is linked to all the others and knows their agents. */
async function awaitPeers(stage, name, others) {
  const child = stage.spawn(name, ['peers', '--watch', '--json'], { stdio: ['ignore', 'pipe', 'ignore'] })
  stage.command = child
  const seen = new Promise((resolve, reject) => {
    readline.createInterface({ input: child.stdout }).on('line', (line) => {
      const ready = JSON.parse(line).peers.filter((peer) => peer.status === 'online' && peer.agents.includes('text'))
      if (ready.length === others) resolve()
    })
    child.once('close', () => reject(new Error(`${name} did not see its peers`)))
  })
  await stage.wait(seen)
  child.kill()
  await stage.wait(ended(child))
  stage.command = null
}

/** Lines, bytes and hash of every source file, counted here. */
function countFiles() {
  const names = fs.readdirSync(path.join(ROOT, SOURCES), { recursive: true }).filter((name) => name.endsWith('.ts'))
  return new Map(
    names.map((name) => [
      path.posix.join(SOURCES, name.split(path.sep).join('/')),
      count(path.join(ROOT, SOURCES, name))
    ])
  )
}

function count(file) {
  const raw = fs.readFileSync(file)
  const parts = raw.toString('utf8').split('\n')
  return {
    lines: parts.at(-1) === '' ? parts.length - 1 : parts.length,
    bytes: raw.length,
    sha256: createHash('sha256').update(raw).digest('hex')
  }
}

/** Compares the swarm's results with the files, one by one and in sum. Throws at the first difference. */
function check({ status, results }, files) {
  if (status !== 'completed') throw new Error(`the swarm is ${status}, not completed`)
  const names = new Set(results.map((one) => one.item))
  if (results.length !== files.size || names.size !== files.size)
    throw new Error(`${results.length} results of ${names.size} items for ${files.size} files`)
  for (const { item, result } of results) {
    const own = files.get(item)
    if (own === undefined) throw new Error(`a result for ${item}, which is no source file`)
    for (const key of ['lines', 'bytes', 'sha256'])
      if (result[key] !== own[key])
        throw new Error(`${item}: ${key} ${result[key]} in the result, ${own[key]} in the file`)
  }
  const nodes = new Set(results.map((one) => one.agent.split('@')[1]))
  if (nodes.size !== 1 + NEWCOMERS.length) throw new Error(`only ${[...nodes].join(', ')} took part`)
  tell(
    `${results.length} results for ${files.size} files, each once, from ${nodes.size} nodes; checked against the files:`
  )
  for (const key of ['lines', 'bytes']) {
    const sums = [results.map((one) => one.result), [...files.values()]].map((rows) =>
      rows.reduce((sum, row) => sum + row[key], 0)
    )
    if (sums[0] !== sums[1]) throw new Error(`${sums[0]} ${key} in the results, ${sums[1]} in the files`)
    tell(`  ${key}  ${sums[0]} in the results, ${sums[1]} in the files`)
  }
}

/** The story, step by step. */
async function play(stage) {
  tell(`Three nodes on this machine, each with a home of its own under ${stage.dir}.`)
  await startNode(stage, FOUNDER, ['--network', 'local'])
  const code = (await run({ stage, name: FOUNDER }, 'invite', '--mine', '--uses', String(NEWCOMERS.length))).trim()
  for (const name of NEWCOMERS) await startNode(stage, name, ['--join', code])
  for (const name of [FOUNDER, ...NEWCOMERS]) await awaitPeers(stage, name, NEWCOMERS.length)
  await run({ stage, name: FOUNDER }, 'peers')
  const goal = 'count lines, words and bytes'
  const map = ['--strategy', 'map', '--capability', 'text.stats', '--items', `${SOURCES}/**/*.ts`, '--attach']
  const summary = await run({ stage, name: FOUNDER }, 'swarm', 'run', goal, ...map)
  const id = /swarm results (\S+)/.exec(summary)?.[1] ?? ''
  const results = await run({ stage, name: FOUNDER, quiet: true }, 'swarm', 'results', id, '--json')
  check(JSON.parse(results), countFiles())
  for (const name of [...NEWCOMERS, FOUNDER]) {
    await run({ stage, name }, 'stop')
    const exit = await stage.wait(ended(stage.nodes.get(name)))
    if (exit !== 0) throw new Error(`the node ${name} ended with ${exit}`)
  }
}

/** Ends what still runs and removes the homes. */
async function clear(stage) {
  const running = [stage.command, ...stage.nodes.values()].filter((child) => child !== null && isRunning(child))
  for (const child of running) child.kill('SIGTERM')
  const timer = setTimeout(() => killAll(stage), END_MS)
  await Promise.all(running.map(ended))
  clearTimeout(timer)
  fs.rmSync(stage.dir, { recursive: true, force: true })
}

function isRunning(child) {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

function killAll(stage) {
  for (const child of [stage.command, ...stage.nodes.values()])
    if (child !== null && isRunning(child)) child.kill('SIGKILL')
}

function tellFailure(stage, error) {
  process.stderr.write(`demo: ${error.message}\n`)
  if (error instanceof Stopped) return
  for (const name of stage.nodes.keys()) {
    const lines = fs
      .readFileSync(path.join(stage.home(name), 'node.log'), 'utf8')
      .trim()
      .split('\n')
      .slice(-5)
    process.stderr.write(`demo: the last words of ${name}:\n${lines.map((line) => `  ${line}\n`).join('')}`)
  }
}

/** A UDP port that is free on loopback, below those that systems give to random sockets. */
async function freePort() {
  for (let tries = 0; tries < 50; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const socket = dgram.createSocket('udp4')
    const isFree = await new Promise((resolve) => {
      socket.once('error', () => resolve(false))
      socket.bind(port, '127.0.0.1', () => resolve(true))
    })
    socket.close()
    if (isFree) return port
  }
  throw new Error('no free UDP port from 20000 to 31999')
}

/** A short directory: unix sockets have paths of at most 103 bytes. */
function tempDir() {
  const base = os.tmpdir().length <= 50 || !fs.existsSync('/tmp') ? os.tmpdir() : '/tmp'
  return fs.mkdtempSync(path.join(base, 'a2a-node-demo-'))
}

async function main() {
  const start = performance.now()
  const stage = new Stage(tempDir(), await freePort())
  process.on('exit', () => {
    killAll(stage)
    fs.rmSync(stage.dir, { recursive: true, force: true })
  })
  for (const [signal, code] of Object.entries(SIGNALS))
    process.on(signal, () => stage.halt(new Stopped(`stopped by ${signal}`, code)))
  process.stdout.on('error', () => stage.halt(new Stopped('nobody reads on', 1)))
  const limit = setTimeout(() => stage.halt(new Error(`not done within ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  try {
    await play(stage)
  } catch (error) {
    process.exitCode = error instanceof Stopped ? error.exitCode : 1
    tellFailure(stage, error)
  }
  clearTimeout(limit)
  await clear(stage)
  if (process.exitCode === undefined)
    tell(`Done in ${((performance.now() - start) / 1000).toFixed(1)} s. Nothing is left running.`)
}

await main()
