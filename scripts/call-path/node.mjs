// One node in a process of its own, of instrumented modules: `node node.mjs <directory of the modules>`, with an IPC
// channel.
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Recorder } from './recorder.mjs'

const OPERATOR = { kind: 'operator', name: 'operator', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] }
const recorder = new Recorder()
globalThis.$recorder = recorder

const { loadConfig, resolveHome, startNode } = await import(
  pathToFileURL(path.resolve(process.argv[2], 'index.js')).href
)
let node = null

async function open({ home, name, join = null }) {
  const paths = resolveHome({ home })
  const { config } = await loadConfig({ file: paths.configFile })
  node = await startNode({ config, home: paths, name, join, extraAgentDirs: [], log: null })
}

/**
 * Founds a mesh and attaches an agent. It answers with its input, reversed, so that the answer does not contain the
 * request.
 */
async function callee({ home }) {
  await open({ home, name: 'callee' })
  const capability = {
    id: 'reverse',
    name: 'reverse',
    description: 'Reverses a text.',
    inputSchema: {},
    outputSchema: {},
    sideEffect: 'none'
  }
  const run = ({ input }) => [...input].toReversed().join('')
  const { address } = await node.attach({ id: 'reverser', concurrency: 1, capabilities: [capability], run })
  const { code } = await node.apiFor(OPERATOR).call('invite.create', { trust: 'mine' })
  return { address, code }
}

async function caller({ home, code }) {
  await open({ home, name: 'caller', join: code })
  return {}
}

async function call({ address, text }) {
  const { outcome } = await node
    .apiFor(OPERATOR)
    .call('message.call', { agent: address, capability: 'reverse', input: text })
  return { outcome }
}

const waits = { request: null, answer: null, path: null }

/** Records the next call: from the arrival of a frame with `request` until a frame with `answer` is written. */
function record({ request, answer }) {
  Object.assign(waits, { request, answer, path: null })
  return {}
}

/** What `Recorder.end` gave for the recorded call; null when it has not ended. */
function recorded() {
  return { path: waits.path }
}

/** Frames are plain below the encryption of a stream: `push` takes each that arrives, `write` each that leaves. */
function watchStreams() {
  const ofHyperdht = createRequire(createRequire(import.meta.url).resolve('hyperdht'))
  const { prototype } = ofHyperdht('@hyperswarm/secret-stream')
  const { push, write } = prototype
  prototype.push = function (frame) {
    if (has(frame, waits.request)) begin()
    return push.call(this, frame)
  }
  prototype.write = function (frame) {
    if (has(frame, waits.answer)) end()
    return write.call(this, frame)
  }
}

function begin() {
  waits.request = null
  recorder.begin()
}

function end() {
  waits.answer = null
  waits.path = recorder.end()
}

function has(frame, text) {
  return text !== null && frame !== null && Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).includes(text)
}

watchStreams()
const COMMANDS = { callee, caller, call, record, recorded }
process.on('message', ({ command, ...params }) => {
  Promise.resolve(params)
    .then(COMMANDS[command])
    .then(
      (answer) => process.send(answer),
      (error) => process.send({ error: String(error.stack ?? error) })
    )
})
process.on('disconnect', () => process.exit())
