#!/usr/bin/env node
// Measures the way of a newcomer: from the packed file to the first answer of another node, by the commands of the
// README. Two homes on the loopback network of this machine stand for two machines.
// Usage: node scripts/first-answer.mjs [file.tgz]; without a file it packs the built tree.
// Exit code: 0 within 90 s of the file being there, 1 later or without an answer, 130 after Ctrl-C, 143 after SIGTERM.
// Leaves nothing behind.
import { spawn } from 'node:child_process'
import dgram from 'node:dgram'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const GOAL_MS = 90_000
const TEXT = 'The quick brown fox'
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/** The signal that ends the run early, and the command at work. */
const current = { signal: /** @type {string | null} */ (null), child: null }

/**
 * Runs a program to its end; a signal to this process goes on to it. `isCleaning`: it runs after a signal too, and
 * another Ctrl-C does not reach it. @throws Error with its output when it fails
 */
function run(command, { env, cwd, input = '', isCleaning = false } = {}) {
  if (current.signal !== null && !isCleaning) throw new Error(`ended by ${current.signal}`)
  const [program, ...words] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: isCleaning })
    if (!isCleaning) current.child = child
    let [stdout, all] = ['', '']
    child.stdout.on('data', (bytes) => {
      stdout += bytes
      all += bytes
    })
    child.stderr.on('data', (bytes) => {
      all += bytes
    })
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 ? resolve(stdout.trim()) : reject(new Error(`${command.join(' ')} exited with ${code}:\n${all}`))
    )
    child.stdin.end(input)
  })
}

function freePort() {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4').on('error', reject)
    socket.bind(0, '127.0.0.1', () => {
      const { port } = socket.address()
      socket.close(() => resolve(port))
    })
  })
}

async function measure(dir, file) {
  const port = String(await freePort())
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_NODE_'))
  const envOf = (machine) => ({
    ...Object.fromEntries(own),
    HOME: path.join(dir, machine),
    XDG_RUNTIME_DIR: path.join(dir, machine),
    A2A_NODE_NETWORK_KIND: 'local',
    A2A_NODE_LOCAL_PORT: port
  })
  const program = path.join(dir, 'bin', 'a2a-node')
  const node = (machine, words, input) => run([program, ...words], { env: envOf(machine), input })
  const stop = (machine) => run([program, 'stop'], { env: envOf(machine), isCleaning: true })
  const times = []
  const step = async (name, work) => {
    const since = performance.now()
    const result = await work()
    times.push({ name, ms: performance.now() - since })
    return result
  }
  for (const machine of ['laptop', 'desktop']) fs.mkdirSync(path.join(dir, machine))
  try {
    await step('npm install --global a2a-node.tgz', () => run(['npm', 'install', '--global', '--prefix', dir, file]))
    await step('laptop: start --name laptop --detach', () => node('laptop', ['start', '--name', 'laptop', '--detach']))
    const code = await step('laptop: invite --mine', () => node('laptop', ['invite', '--mine']))
    await step('desktop: start --name desktop --join - --detach', () =>
      node('desktop', ['start', '--name', 'desktop', '--join', '-', '--detach'], code)
    )
    const answer = await step(`laptop: send text@desktop '${TEXT}'`, () =>
      node('laptop', ['send', 'text@desktop', TEXT])
    )
    if (!/"?words"?\D+4\b/.test(answer)) throw new Error(`the answer does not count 4 words: ${answer}`)
    return times
  } finally {
    await Promise.allSettled(['laptop', 'desktop'].map(stop))
  }
}

for (const signal of Object.keys(SIGNALS))
  process.on(signal, () => {
    current.signal ??= signal
    current.child?.kill(signal)
  })
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'a2a-first-'))
try {
  const file =
    process.argv[2] === undefined
      ? path.join(dir, await run(['npm', 'pack', '--silent', '--pack-destination', dir], { cwd: ROOT }))
      : path.resolve(process.argv[2])
  const times = await measure(dir, file)
  const total = times.reduce((sum, { ms }) => sum + ms, 0)
  for (const { name, ms } of [...times, { name: 'first answer of another machine', ms: total }])
    console.log(`${(ms / 1000).toFixed(1).padStart(6)} s  ${name}`)
  console.log(`packed file: ${(fs.statSync(file).size / 1e6).toFixed(2)} MB; goal: ${GOAL_MS / 1000} s`)
  process.exitCode = total <= GOAL_MS ? 0 : 1
} catch (error) {
  console.error(String(error.message))
  process.exitCode = SIGNALS[current.signal] ?? 1
} finally {
  fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
}
