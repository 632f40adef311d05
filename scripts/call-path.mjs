#!/usr/bin/env node
// Counts the files of src that one remote call runs through at the callee: `node scripts/call-path.mjs [--list]` prints
// the number of files and of moves between them; with --list also the path. Exit code 1 when a figure is over its cap.
// The caps may only shrink.
//
// The call is a `message.call` to an in-process agent of another node. Caller and callee are two processes on loopback;
// calls before it have loaded and linked all. The measure begins when a frame with the request arrives, and ends when a
// frame with the answer is written. `Recorder` in call-path/recorder.mjs defines a move. Timers of the node may run in
// between, so the call with the fewest files counts. The goals are 65 files and 300 moves.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, openLab } from './bench/lab.mjs'
import { localEnv } from './bench/nodes.mjs'
import { instrument } from './call-path/instrument.mjs'
import { askChild } from './bench/peers.mjs'
import { transpile } from './testing/compile.mjs'

const CAPS = { files: 98, moves: 465 }
const [WARM_UPS, CALLS] = [5, 20]
const NODE = fileURLToPath(new URL('call-path/node.mjs', import.meta.url))

/** Compiles src into a directory, instrumented. @returns the files by the numbers that their functions enter with. */
function build(dir) {
  const files = fs
    .readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .toSorted()
  for (const [number, file] of files.entries()) {
    const output = path.join(dir, 'src', file.replace(/\.ts$/, '.js'))
    fs.mkdirSync(path.dirname(output), { recursive: true })
    const source = path.join('src', file)
    fs.writeFileSync(output, instrument(transpile(source, fs.readFileSync(source, 'utf8')).text, number))
  }
  for (const name of ['node_modules', 'package.json']) fs.symlinkSync(path.resolve(name), path.join(dir, name))
  return files
}

/** What `Recorder.end` gives for each of some calls. */
async function record(lab, modules) {
  const env = localEnv(await freePort())
  const open = () =>
    askChild(lab.spawn(process.execPath, [NODE, modules], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }))
  const [callee, caller] = [open(), open()]
  const { address, code } = await callee({ command: 'callee', home: lab.dir() })
  await caller({ command: 'caller', home: lab.dir(), code })
  const paths = []
  for (let at = 0; at < WARM_UPS + CALLS; at++) {
    const request = `request-${String(at).padStart(4, '0')}`
    await callee({ command: 'record', request, answer: [...request].toReversed().join('') })
    const { outcome } = await caller({ command: 'call', address, text: request })
    if (outcome !== 'COMPLETED') throw new Error(`a call ended as ${outcome}`)
    const { path: recorded } = await callee({ command: 'recorded' })
    if (recorded === null) throw new Error('no frame had the request, or none the answer')
    if (at >= WARM_UPS) paths.push(recorded)
  }
  return paths
}

async function main() {
  const lab = openLab()
  try {
    const dir = lab.dir()
    const files = build(dir)
    const paths = await record(lab, path.join(dir, 'src'))
    report(
      paths.toSorted((a, b) => filesOf(a) - filesOf(b) || movesOf(a) - movesOf(b)),
      files
    )
  } finally {
    await lab.close()
  }
}

function filesOf(changes) {
  return new Set(changes.map(({ file }) => file)).size
}

/** The first file is where the call arrives. */
function movesOf(changes) {
  return changes.slice(1).filter(({ isMove }) => isMove).length
}

function report(paths, files) {
  const [shortest] = paths
  const figures = { files: filesOf(shortest), moves: movesOf(shortest) }
  for (const [name, value] of Object.entries(figures)) {
    const isOver = value > CAPS[name]
    if (isOver) process.exitCode = 1
    console.log(`${String(value).padStart(6)}  ${name} at the callee (at most ${CAPS[name]})${isOver ? '  OVER' : ''}`)
  }
  console.log(`${String(shortest.length - 1).padStart(6)}  moves with the ways back`)
  console.log(`${String(Math.max(...paths.map(movesOf))).padStart(6)}  moves of the longest of ${paths.length} calls`)
  if (process.argv.includes('--list'))
    for (const { file, isMove } of shortest) console.log(`        ${isMove ? '->' : '<-'} src/${files[file]}`)
}

await main()
