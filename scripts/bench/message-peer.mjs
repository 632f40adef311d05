// One of the two processes between which the bench sends messages back and forth: raw over a DHT stream, and between
// agents of two nodes. Started with an IPC channel; the first message tells the role.
import HyperDHT from 'hyperdht'
// Not the bundle: acknowledgements are timed within a class.
import { loadConfig, resolveHome, startNode } from '../../build/src/index.js'
import { Lanes } from '../../build/src/node/reliable/lanes.js'
import { quantile } from './figures.mjs'

const PAYLOAD_BYTES = 256

/** The two ways to send a text. */
const ways = {}
let number = 0
let waiting = null

/** Only the echo of the last text counts. */
function received(text) {
  if (waiting?.text === text) waiting.resolve()
}

/** Sends a text that was never sent before and resolves when it comes back. */
function roundTrip(send) {
  const text = String(number++).padStart(PAYLOAD_BYTES, '.')
  return new Promise((resolve, reject) => {
    waiting = { text, resolve }
    Promise.resolve(send(text)).catch(reject)
  })
}

async function openNode({ home, name, join }) {
  const paths = resolveHome({ home })
  const { config } = await loadConfig({ file: paths.configFile })
  return startNode({ config, home: paths, name, join: join ?? null, extraAgentDirs: [], log: null })
}

/** The DHT node of the raw stream, as the nodes' own. */
function openDht(port) {
  return new HyperDHT({ bootstrap: [`127.0.0.1:${port}`], host: '127.0.0.1', firewalled: false })
}

const OPERATOR = { kind: 'operator', name: 'operator', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] }

/** Gives back what it is asked with. */
const WORKER = {
  id: 'worker',
  concurrency: 64,
  capabilities: [
    {
      id: 'worker.echo',
      name: 'echo',
      description: 'gives it back',
      inputSchema: {},
      outputSchema: {},
      sideEffect: 'none'
    }
  ],
  run: ({ input }) => input
}

/** Joins and gives back what its agent is asked with. Tells its key and its agent's address. */
async function far({ home, code }) {
  const node = await openNode({ home, name: 'far', join: code })
  const { address } = await node.attach(WORKER)
  return { id: node.info.node.id, worker: address }
}

/** Answers whatever comes. Tells how it is reached. */
async function echo({ port, home }) {
  const node = await openNode({ home, name: 'echo' })
  const server = openDht(port).createServer((stream) => {
    stream.on('error', () => {})
    stream.on('data', (bytes) => stream.write(bytes))
  })
  await server.listen(HyperDHT.keyPair())
  if (node.attach === undefined) return { key: server.publicKey.toString('hex'), agent: null, code: null }
  const agent = await node.attach({ id: 'echo', onMessage: ({ payload }, reply) => void reply(payload) })
  const sink = await node.attach({ id: 'sink', onMessage: () => void taken++ })
  const worker = await node.attach(WORKER)
  const { code } = await node.apiFor(OPERATOR).call('invite.create', { trust: 'mine', uses: 2 })
  return {
    key: server.publicKey.toString('hex'),
    agent: agent.address,
    sink: sink.address,
    worker: worker.address,
    code
  }
}

/** Messages that the sink has got since the last question. */
let taken = 0

function countTaken() {
  const result = { taken }
  taken = 0
  return Promise.resolve(result)
}

/** Sends so many notifications to a sink, as fast as its node takes them. */
async function oneWay({ sink, count }) {
  const payload = '.'.repeat(PAYLOAD_BYTES)
  for (let sent = 0; sent < count; ) {
    if (await succeeds(ways.notify({ recipient: sink, type: 'notification', payload }))) sent++
    // Its node holds it back: as soon as there is room it goes on.
    else await delay(1)
  }
  return {}
}

let flooder = null
let isFlooding = false

/** A member that sends to an agent as fast as its own node lets it, from one call to the next. */
async function flood({ home, sink, code, on }) {
  isFlooding = on
  if (!on) return {}
  flooder ??= await (await openNode({ home, name: 'flood', join: code })).attach({ id: 'flood', onMessage: () => {} })
  const payload = '.'.repeat(PAYLOAD_BYTES)
  const pour = async () => {
    while (isFlooding) {
      const isTaken = await succeeds(flooder.send({ recipient: sink, type: 'notification', payload }))
      // Its own node holds it back: as soon as there is room it goes on.
      if (!isTaken) await delay(1)
    }
  }
  void pour()
  return {}
}

/** Opens both ways to the echo. */
async function open({ port, home, key, agent, worker, code }) {
  const stream = openDht(port).connect(Buffer.from(key, 'hex'))
  stream.on('data', (bytes) => received(bytes.toString('latin1')))
  await new Promise((resolve, reject) => stream.once('open', resolve).once('error', reject))
  ways.raw = (text) => void stream.write(Buffer.from(text, 'latin1'))
  if (code === null) return {}
  timeAcks()
  const node = await openNode({ home, name: 'ping', join: code })
  const attached = await node.attach({ id: 'ping', onMessage: ({ payload }) => received(payload) })
  ways.ours = (payload) => attached.send({ recipient: agent, type: 'notification', payload })
  ways.notify = (message) => attached.send(message)
  await untilReached()
  const api = node.apiFor(OPERATOR)
  const input = { text: '.'.repeat(PAYLOAD_BYTES) }
  linked = async () =>
    (await api.call('peers.list', {})).peers.filter(({ status }) => status === 'online').map(({ id }) => id)
  ask = (asked = worker) => api.call('message.call', { agent: asked, capability: 'worker.echo', input })
  return {}
}

/** The first messages are lost until both nodes know both cards. */
async function untilReached() {
  for (let tries = 0; tries < 100; tries++) {
    const isBack = await Promise.race([succeeds(roundTrip(ways.ours)), delay(200).then(() => false)])
    if (isBack) return
    await delay(50)
  }
  throw new Error('no message came back')
}

function succeeds(promise) {
  return promise.then(
    () => true,
    () => false
  )
}

function delay(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Resolves with the ids of nodes that the one that asks has a link with. */
let linked = null

async function links() {
  return { ids: await linked() }
}

/** Asks a worker; default: that of the echo. */
let ask = null

/** Milliseconds from a message that is to be recorded until its node has acknowledged it; true with one in flight. */
const acks = []

function timeAcks() {
  const { record, onAck } = Lanes.prototype
  let since = null
  Lanes.prototype.record = function (...args) {
    since = performance.now()
    return record.apply(this, args)
  }
  Lanes.prototype.onAck = function (...args) {
    if (since !== null) acks.push(performance.now() - since)
    since = null
    return onAck.apply(this, args)
  }
}

/**
 * So many requests to a worker, always `inFlight` of them at once; how many are answered in a second, and the p50 of
 * the time that one takes, in milliseconds.
 */
async function requests({ count, inFlight, worker }) {
  let left = count
  const waits = []
  acks.length = 0
  const askOn = async () => {
    while (left-- > 0) {
      const asked = performance.now()
      const { outcome } = await ask(worker)
      waits.push(performance.now() - asked)
      if (outcome !== 'COMPLETED') throw new Error(`a request ended as ${outcome}`)
    }
  }
  const from = performance.now()
  await Promise.all(Array.from({ length: inFlight }, askOn))
  return {
    perSecond: count / ((performance.now() - from) / 1000),
    p50: quantile(waits, 0.5),
    ackP50: quantile(acks, 0.5)
  }
}

/** So many round trips one after the other; the milliseconds of each. */
async function measure({ way, count }) {
  const send = ways[way]
  const samples = []
  for (let sent = 0; sent < count; sent++) {
    const from = performance.now()
    await roundTrip(send)
    samples.push(performance.now() - from)
  }
  return { samples }
}

const COMMANDS = { echo, far, open, links, measure, requests, oneWay, flood, count: countTaken }

process.on('message', ({ command, ...params }) => {
  COMMANDS[command](params).then(
    (result) => process.send(result),
    (error) => process.send({ error: String(error.stack ?? error) })
  )
})
// Without its bench it has nothing to live for.
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
