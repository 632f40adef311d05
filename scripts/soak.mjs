#!/usr/bin/env node
// Keeps two nodes busy and looks for what grows: `npm run soak -- <minutes>`. Calls, queued requests, swarms, and a
// third node that leaves and comes back. Or `npm run soak -- --messages <count>`: so many requests from one node to
// another, as fast as they go. Exit code 1 when memory, descriptors or timers of a node grow. Linux only.
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort, openLab, runProgram } from './bench/lab.mjs'
import { allOnline, inviteFor, localEnv, startNode } from './bench/nodes.mjs'
import { soakMessages } from './soak/messages.mjs'
import { verdicts } from './soak/verdicts.mjs'

const PROBE = fileURLToPath(new URL('soak/probe.mjs', import.meta.url))
const SAMPLE_MS = 2000
/** Callers at once. */
const DRIVERS = 8
async function member(lab, { name, port, join }) {
  const probe = path.join(lab.dir(), 'timers')
  const env = { ...localEnv(port), NODE_OPTIONS: `--import ${PROBE}`, SOAK_PROBE: probe }
  return { ...(await startNode(lab, { home: path.join(lab.dir(), 'h'), name, env, join })), probe }
}

/** Asks `text` of another node until the end: calls whose answer is awaited, and queued ones. */
async function drive(node, { to, until, done }) {
  for (let at = 0; performance.now() < until; at++) {
    const wait = at % 4 !== 3
    const reply = await node.api.call('message.send', { agent: to, text: `round ${at}`, wait }).catch(() => null)
    if (reply?.outcome === 'COMPLETED' || reply?.outcome === 'QUEUED') done.messages++
    else await delay(50)
  }
}

async function swarms(node, { until, done }) {
  while (performance.now() < until) {
    const items = Array.from({ length: 50 }, (_, at) => ({ item: `item-${at}`, input: { text: `item ${at}` } }))
    const started = await node.api
      .call('swarm.start', { goal: 'soak', capability: 'text.stats', strategy: 'map', items })
      .catch((error) => error)
    if (started.id === undefined) throw new Error(`no swarm: ${started.message}`)
    for await (const event of node.api.watch('swarm.watch', { id: started.id })) if (event.type === 'done') break
    done.swarms++
    await delay(1000)
  }
}

async function reconnects(lab, { node, until, done }) {
  for (let last = node; performance.now() < until; done.reconnects++) {
    await delay(5000)
    await last.stop()
    last = await startNode(lab, { home: node.home, name: node.name, env: node.env })
  }
}

async function sample(node) {
  const { pid } = node.process
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8')
  fs.rmSync(node.probe, { force: true })
  node.kill('SIGUSR2')
  while (!fs.existsSync(node.probe)) await delay(10)
  return {
    rssMB: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1000,
    descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
    ...JSON.parse(fs.readFileSync(node.probe, 'utf8'))
  }
}

async function soakMinutes(minutes) {
  const lab = openLab()
  try {
    const port = await freePort()
    const a = await member(lab, { name: 'a', port })
    const join = await inviteFor(a, 2)
    const [b, c] = [await member(lab, { name: 'b', port, join }), await member(lab, { name: 'c', port, join })]
    await allOnline([a, b, c])
    const until = performance.now() + minutes * 60_000
    const done = { messages: 0, swarms: 0, reconnects: 0 }
    const samples = { a: [], b: [] }
    const busy = Promise.all([
      ...Array.from({ length: DRIVERS }, (_, at) =>
        drive(at % 2 === 0 ? a : b, { to: at % 2 === 0 ? 'text@b' : 'text@a', until, done })
      ),
      swarms(a, { until, done }),
      reconnects(lab, { node: c, until, done })
    ])
    while (performance.now() < until) {
      await Promise.race([delay(SAMPLE_MS), busy])
      for (const [name, node] of Object.entries({ a, b })) samples[name].push(await sample(node))
    }
    await busy
    console.log(`${minutes} minutes: ${done.messages} messages, ${done.swarms} swarms, ${done.reconnects} reconnects`)
    return Object.entries(samples).flatMap(([name, of]) => verdicts(name, of))
  } finally {
    await lab.close()
  }
}

function options() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { messages: { type: 'string' } } })
  const messages = Number(values.messages ?? 0)
  const minutes = Number(positionals[0] ?? (values.messages === undefined ? 10 : 0))
  if (!(messages > 0 || minutes > 0)) throw new Error('say for how many minutes, or --messages and how many')
  return { messages, minutes }
}

async function main({ messages, minutes }) {
  const all = messages > 0 ? await soakMessages(messages) : await soakMinutes(minutes)
  for (const { line } of all) console.log(line)
  if (all.some(({ grows }) => grows)) process.exitCode = 1
}

await runProgram('soak', options, main)
