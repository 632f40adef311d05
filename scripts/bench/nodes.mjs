import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'a2a-node/client'
import { BIN, endChild, freePort } from './lab.mjs'

/** No wait of the bench may be longer, in milliseconds. */
const PATIENCE_MS = 60_000

/** Environment of nodes on the local network of a port. */
export function localEnv(port) {
  return { ...process.env, A2A_NODE_NETWORK_KIND: 'local', A2A_NODE_LOCAL_PORT: String(port), NO_COLOR: '1' }
}

/**
 * Starts a node in a process of its own as people do, by the program's own first line. Resolves at its first line with
 * the time from the spawn to that line; fails with what it wrote to stderr when it ends before.
 */
export async function startNode(lab, { home, name, env, join, args = [], through = [] }) {
  const start = [
    '--home',
    home,
    'start',
    '--json',
    '--name',
    name,
    ...(join === undefined ? [] : ['--join', join]),
    ...args
  ]
  const [command, ...rest] = [...through, BIN, ...start]
  const spawnedAt = performance.now()
  const child = lab.spawn(command, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const errors = textOf(child.stderr)
  const ended = new Promise((_resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`node ${name} ended with ${code} before it was ready: ${errors()}`)))
  })
  const info = JSON.parse(await Promise.race([firstLine(child.stdout), ended]))
  const readyAt = performance.now()
  return {
    name,
    home,
    env,
    process: child,
    info,
    errors,
    spawnedAt,
    readyMs: readyAt - spawnedAt,
    api: connect({ home }),
    stop: () => endChild(child),
    kill: (signal) => child.kill(signal)
  }
}

/** A founder `a` and members with the other names on a loopback network of their own, all seeing each other online. */
export async function localMesh(lab, names) {
  const env = localEnv(await freePort())
  const [first, ...others] = names
  const founder = await startNode(lab, { home: path.join(lab.dir(), 'h'), name: first, env })
  const join = await inviteFor(founder, others.length)
  const members = await inTurn(others, (name) => startNode(lab, { home: path.join(lab.dir(), 'h'), name, env, join }))
  const all = [founder, ...members]
  await allOnline(all)
  return all
}

/** An invite code of a node. */
export async function inviteFor(node, uses = 1) {
  const params = { uses: Math.max(1, uses), ttlMs: 3_600_000 }
  // Earlier builds, which are measured too, know no trust.
  const { code } = await node.api
    .call('invite.create', { ...params, trust: 'mine' })
    .catch(() => node.api.call('invite.create', params))
  return code
}

/** Gives every node an agent that does nothing, and waits until the first one sees all of them. */
export async function addModuleAgent(nodes, { id, capability, sideEffect }) {
  const file = `---
name: ${id}
description: Does nothing.
a2a:
  version: 0.1.0
  capabilities:
    - { id: ${capability}, description: nothing, input: { type: object }, idempotent: true, sideEffect: ${sideEffect} }
  runtime: { type: module, path: ./${id}.mjs }
  limits: { concurrency: 32 }
---
`
  for (const { home } of nodes) {
    const dir = path.join(home, 'agents')
    fs.mkdirSync(dir, { recursive: true })
    fs.writeFileSync(path.join(dir, `${id}.mjs`), 'export default { async run() { return null } }\n')
    fs.writeFileSync(path.join(dir, `${id}.md`), file)
  }
  const seen = async () =>
    (await nodes[0].api.call('agents.list', {})).agents.filter((one) => one.id === id && one.status === 'ready')
  await untilTrue(async () => (await seen()).length === nodes.length, `${id} is on all nodes`)
}

/** Waits until every node sees every other online, with its agents. */
export async function allOnline(nodes) {
  const names = (node) => nodes.filter((one) => one !== node).map((one) => one.name)
  await Promise.all(
    nodes.map((node) =>
      untilPeers(node.api, (peers) => names(node).every((name) => peers.some((one) => isUp(one, name))))
    )
  )
  await Promise.all(
    nodes.map((node) => untilTrue(async () => (await remoteNodes(node)) >= nodes.length - 1, 'all cards are there'))
  )
}

function isUp(peer, name) {
  return peer.name === name && peer.status === 'online'
}

async function remoteNodes(node) {
  const { agents } = await node.api.call('agents.list', { origin: 'remote' })
  return new Set(agents.filter((one) => one.status !== 'offline').map((one) => one.node.id)).size
}

/** Waits until `node` sees a peer (by name) in a state; the time (performance.now) when it did. */
export function untilPeer(node, name, status) {
  return untilPeers(node.api, (peers) => peers.some((one) => one.name === name && one.status === status))
}

async function untilPeers(api, fits) {
  const patience = AbortSignal.timeout(PATIENCE_MS)
  for await (const { peers } of api.watch('peers.list', { all: true }, { signal: patience })) {
    if (fits(peers)) return performance.now()
  }
  throw new Error('the peers never came to what was awaited')
}

/** Asks again and again until it is true; the time when it was. */
export async function untilTrue(check, what, everyMs = 20) {
  const end = performance.now() + PATIENCE_MS
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`never came true: ${what}`)
    await delay(everyMs)
  }
  return performance.now()
}

/** Maps one after the other. */
export async function inTurn(values, map) {
  const results = []
  for (const value of values) results.push(await map(value))
  return results
}

/** `times(3, f)`: the results of f(0), f(1), f(2), one after the other. */
export function times(count, run) {
  return inTurn([...Array(count).keys()], run)
}

function textOf(stream) {
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  return () => text
}

function firstLine(stream) {
  return new Promise((resolve) => {
    let text = ''
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
}
