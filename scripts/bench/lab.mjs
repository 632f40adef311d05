import { spawn, spawnSync } from 'node:child_process'
import dgram from 'node:dgram'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')
/** The command that users run. */
export const BIN = path.join(ROOT, 'bin', 'a2a-node.js')

/** A process that was asked to end has this long, in milliseconds. */
const END_MS = 8000

const labs = new Set()

/** Ends at once, without waiting, whatever any lab still holds; for the exit of the bench itself. */
function closeAllNow() {
  for (const lab of labs) lab.closeNow()
}

/**
 * A place to measure in: processes, directories and network namespaces made here are gone after `close()`.
 */
export function openLab() {
  // Short, since unix sockets made below it may have paths of at most 103 bytes.
  const root = fs.mkdtempSync(path.join(fs.existsSync('/tmp') ? '/tmp' : os.tmpdir(), 'a2ab-'))
  const children = new Set()
  const undo = []
  let dirs = 0
  const lab = {
    /** A new empty directory. */
    dir() {
      const dir = path.join(root, String(dirs++))
      fs.mkdirSync(dir)
      return dir
    },
    /** Starts a process that ends with the lab. */
    spawn(command, args, options = {}) {
      const child = spawn(command, args, options)
      children.add(child)
      child.once('exit', () => children.delete(child))
      return child
    },
    /** Runs `command args` when the lab closes, last one first. */
    onClose(command, args) {
      undo.push([command, args])
    },
    async close() {
      await Promise.all([...children].map(endChild))
      lab.closeNow()
    },
    closeNow() {
      labs.delete(lab)
      for (const child of children) child.kill('SIGKILL')
      for (const [command, args] of undo.splice(0).reverse()) spawnSync(command, args, { stdio: 'ignore' })
      fs.rmSync(root, { recursive: true, force: true, maxRetries: 3 })
    }
  }
  labs.add(lab)
  return lab
}

/** SIGTERM, then SIGKILL; resolves when the process is gone. */
export async function endChild(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGCONT')
  child.kill('SIGTERM')
  const limit = setTimeout(() => child.kill('SIGKILL'), END_MS)
  await gone
  clearTimeout(limit)
}

/** A UDP port of loopback that is free now, below those that client sockets get. */
export async function freePort() {
  for (;;) {
    // `fetch` refuses 10080, and no port above it.
    const port = 10_100 + Math.floor(Math.random() * 20_000)
    const socket = dgram.createSocket('udp4')
    const isFree = await new Promise((resolve) => {
      socket.once('error', () => resolve(false))
      socket.bind(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => (isFree ? socket.close(resolve) : resolve()))
    if (isFree) return port
  }
}

/**
 * Runs a program of the options that `optionsOf` reads; wrong ones are told, with exit code 2. Whatever a lab holds
 * ends with it.
 */
export async function runProgram(name, optionsOf, main) {
  process.on('exit', closeAllNow)
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 }))
    process.on(signal, () => process.exit(code))
  let given = null
  try {
    given = optionsOf()
  } catch (error) {
    console.error(`${name}: ${error.message}`)
    process.exitCode = 2
  }
  if (given !== null) await main(given)
}
