import path from 'node:path'
import v8 from 'node:v8'
import vm from 'node:vm'
import { openAudit } from '../../../build/src/adapters/storage/audit/audit-log.js'
import { MemoryTelemetry } from '../../../build/src/adapters/telemetry/memory-telemetry.js'
import { addressText } from '../../../build/src/domain/card/card.js'
import { decodeEnvelope, encodeEnvelope } from '../../../build/src/domain/envelope/codec.js'
import { SCHEMA_VERSION } from '../../../build/src/domain/envelope/envelope.js'
import { DEFAULT_TIER_RULES } from '../../../build/src/domain/routing/tier-rules.js'
import { AgentRegistry, loadConfig, resolveHome, startNode, systemClock } from '../../../build/src/index.js'
import { keyToText } from '../../../build/src/kit/ids.js'
import { Directory } from '../../../build/src/node/cards/directory.js'
import { NodeEvents } from '../../../build/src/node/observe/events.js'
import { A2AObservability } from '../../../build/src/node/observe/observability.js'
import { AccessControl } from '../../../build/src/node/policy/access-control.js'
import { Traffic } from '../../../build/src/node/observe/traffic.js'
import { median } from '../figures.mjs'
import { freePort, openLab } from '../lab.mjs'
import { localEnv, times } from '../nodes.mjs'

const NODES = 64
const CARDS = 10_000
const CAPABILITIES = 1000
const DECISIONS = 200_000
const LOOKUPS = 20_000
/** Of one node, which may have 1,023. */
const AGENTS = 1000

/**
 * Streams of envelopes that reach a node, by the tiers of their ends; agents are numbered, and their tier is the
 * number's rest by four. `mixed`: every fourth crosses tiers, every fiftieth is refused.
 */
const STREAMS = {
  same: (index) => [index, index + 4],
  across: (index) => [4 * index, 4 * index + 1 + (index % 3)],
  mixed: (index) =>
    index % 50 === 0
      ? [4 * index + 1, 4 * index + 3]
      : index % 4 === 0
        ? [4 * index, 4 * index + 1]
        : [index, index + 4]
}

/**
 * What the rules cost: a decision with its look-ups, a capability in a full registry, a broadcast to many agents here.
 */
export async function figures({ runs, say }) {
  const lab = openLab()
  const scene = await rulesScene(lab.dir())
  const broadcast = await openBroadcast(lab, say)
  const samples = { same: [], across: [], mixed: [], alone: [], p99: [], broadcast: [], broadcastCpu: [] }
  try {
    for (const name of Object.keys(STREAMS)) await decisionsPerSecond(scene, name)
    // In turn, so that a busy moment of the machine meets them all.
    await times(runs, async () => {
      for (const name of Object.keys(STREAMS)) samples[name].push(await decisionsPerSecond(scene, name))
      samples.alone.push(await decisionsPerSecond(scene, 'mixed', true))
      samples.p99.push(lookupP99(scene.registry))
      const from = process.cpuUsage()
      samples.broadcast.push(median(await times(10, broadcast.send)))
      const { user, system } = process.cpuUsage(from)
      samples.broadcastCpu.push((user + system) / 1000 / 10)
    })
  } finally {
    await scene.audit.close()
    broadcast.close()
    await lab.close()
  }
  return rowsOf(samples, scene)
}

function rowsOf(samples, { registryMb }) {
  const rate = { unit: '/s', goal: 1_000_000, bound: 'min' }
  const cards = `${CARDS} cards of ${NODES} nodes; both ends looked up and weakened; per second of the processor, all threads`
  return [
    { name: 'router decisions with look-ups', ...rate, samples: samples.alone, note: `counted and timed; ${cards}` },
    {
      name: 'the same on record, one tier',
      ...rate,
      samples: samples.same,
      note: 'counted, timed, told of; the audit has no line of such'
    },
    {
      name: 'the same on record, across tiers',
      ...rate,
      samples: samples.across,
      note: 'and in the audit log on disk, repeats as one line'
    },
    {
      name: 'the same on record, mixed',
      ...rate,
      samples: samples.mixed,
      note: 'a quarter across tiers, every fiftieth refused'
    },
    ...registryRows(samples, registryMb)
  ]
}

function registryRows(samples, registryMb) {
  return [
    {
      name: 'look-up by capability, p99',
      unit: 'us',
      goal: 50,
      samples: samples.p99,
      note: `${LOOKUPS} look-ups a sample`
    },
    { name: `memory of a registry of ${CARDS} cards`, unit: 'MB', goal: 40, samples: [registryMb] },
    {
      name: `broadcast to ${AGENTS} agents of a node`,
      unit: 'ms',
      goal: 5,
      samples: samples.broadcast,
      note: 'until the last has it'
    },
    {
      name: 'the same, of the processor',
      unit: 'ms',
      goal: 5,
      samples: samples.broadcastCpu,
      note: 'all threads, until the sender has its reply'
    }
  ]
}

/** Bytes on the heap once all garbage is gone. */
function heldBytes() {
  v8.setFlagsFromString('--expose-gc')
  vm.runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function cardOf(index) {
  const capability = (id) => ({
    id,
    name: id,
    description: 'does it',
    inputSchema: { type: 'object' },
    outputSchema: {}
  })
  return {
    id: `agent${index}`,
    name: `agent ${index}`,
    version: '1.0.0',
    description: 'An agent of the bench.',
    tier: index % 4,
    protocols: ['a2a/1.0'],
    endpoints: [],
    capabilities: [capability(`group${index % CAPABILITIES}.do`), capability(`agent${index}.do`)],
    revision: 1
  }
}

/** A registry, a directory, a router and its records as a node has them, over a hundred connected members. */
async function rulesScene(dir) {
  const ids = Array.from({ length: NODES }, (_, index) => keyToText(new Uint8Array(32).fill(index + 1)))
  const before = heldBytes()
  const registry = new AgentRegistry()
  for (let index = 0; index < CARDS; index++) registry.merge(cardOf(index), ids[index % NODES], 1)
  const registryMb = (heldBytes() - before) / 1024 ** 2
  const certificate = { maxTier: 0, name: 'bench' }
  const certificates = new Map(ids.map((id) => [id, certificate]))
  const clock = systemClock()
  // As a node has them unless its config says otherwise; what it would write to the terminal goes nowhere.
  const telemetry = new MemoryTelemetry({ clock, level: 'info', format: 'text', write: () => {} })
  const audit = await openAudit({ dir, clock, onError: (error) => void Promise.reject(error) })
  const events = new NodeEvents(clock, telemetry)
  const traffic = new Traffic({ clock, telemetry, audit, observability: new A2AObservability() })
  const directory = new Directory({
    self: ids[0],
    registry,
    log: { view: () => ({ members: new Map() }) },
    peers: { certificate: (id) => certificates.get(id) ?? null, online: () => [], link: () => null },
    ownCertificate: () => certificate
  })
  const rules = {
    tierRules: DEFAULT_TIER_RULES,
    sandbox: { enforced: true, crossSandboxAllowList: [] },
    replies: 'exchange'
  }
  const router = new AccessControl({ clock, telemetry, directory, audit, events, traffic, rules: () => rules })
  const addresses = Array.from({ length: CARDS }, (_, index) => ({
    agentId: `agent${index}`,
    nodeId: ids[index % NODES]
  }))
  const streams = Object.fromEntries(Object.entries(STREAMS).map(([name, ends]) => [name, headersOf(ends, addresses)]))
  return { registry, registryMb, clock, directory, router, traffic, audit, streams }
}

/**
 * The headers of a stream, each read from the bytes of its message as the road in reads it: texts of its own, of which
 * no map holds any.
 */
function headersOf(ends, addresses) {
  return addresses.map((_, index) => {
    const [sender, recipient] = ends(index).map((number) => addressText(addresses[number % CARDS]))
    const about = {
      id: `msg_${index}`,
      schemaVersion: SCHEMA_VERSION,
      type: 'request',
      timestamp: Date.now(),
      metadata: { tier: 0 }
    }
    return decodeEnvelope(encodeEnvelope({ ...about, sender, recipient, payload: {} })).header
  })
}

/** Decides on a stream of envelopes and, unless `isAlone`, puts it on record where the road in does. */
async function decisionsPerSecond(scene, name, isAlone = false) {
  const { audit, streams } = scene
  const messages = streams[name]
  let allowed = 0
  const from = process.cpuUsage()
  for (let index = 0; index < DECISIONS; index++) {
    if (decideOne(scene, messages[index % CARDS], isAlone)) allowed++
    // The audit writes in between, as it does between the messages of a stream.
    if (index % 1000 === 999) await new Promise(setImmediate)
  }
  await audit.flush()
  const { user, system } = process.cpuUsage(from)
  const wanted = name === 'mixed' ? DECISIONS - DECISIONS / 50 : DECISIONS
  if (allowed !== wanted) throw new Error(`the rules let ${allowed} messages pass, not ${wanted}`)
  return DECISIONS / ((user + system) / 1e6)
}

function decideOne({ clock, directory, router, traffic }, header, isAlone) {
  const since = clock.monotonic()
  const from = directory.named(header.sender)
  const to = directory.named(header.recipient)
  const question = {
    sender: from.party,
    target: to.party,
    type: header.type,
    justification: null,
    isReply: false,
    isArriving: true,
    capability: 'agent.do',
    sideEffect: 'none'
  }
  const { verdict, at } = router.decide(question, since)
  if (isAlone) return verdict.allowed
  const peer = from.address.nodeId
  if (verdict.allowed)
    traffic.delivered({ peer, header, from: from.party.tier, to: to.party.tier, rule: verdict.rule, since, at })
  else router.record('refusal', verdict, { peer, header })
  return verdict.allowed
}

function lookupP99(registry) {
  const took = new Float64Array(LOOKUPS)
  let found = 0
  for (let index = 0; index < LOOKUPS; index++) {
    const from = performance.now()
    found += registry.findByCapability(`group${index % CAPABILITIES}.do`).length
    took[index] = performance.now() - from
  }
  if (found !== (LOOKUPS * CARDS) / CAPABILITIES) throw new Error('a look-up did not find its cards')
  return took.sort()[Math.floor(LOOKUPS * 0.99)] * 1000
}

/** A node of this process with many attached agents; `send` gives the milliseconds until each had its notifications. */
async function openBroadcast(lab, say) {
  Object.assign(process.env, localEnv(await freePort()))
  const home = resolveHome({ home: path.join(lab.dir(), 'h') })
  const { config: shipped } = await loadConfig({ file: home.configFile })
  // Nobody but the attached agents: the starters would do work with each broadcast.
  const config = { ...shipped, agents: { ...shipped.agents, starters: false } }
  const node = await startNode({ config, home, name: 'bench', join: null, extraAgentDirs: [] })
  let left = 0
  let done = () => {}
  const onMessage = () => {
    if (--left === 0) done()
  }
  await Promise.all(Array.from({ length: AGENTS }, (_, index) => node.attach({ id: `agent${index}`, onMessage })))
  say(`${AGENTS} agents attached`)
  const api = node.apiFor({
    kind: 'operator',
    name: 'bench',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send', 'admin']
  })
  const send = async () => {
    left = AGENTS
    const all = new Promise((resolve) => {
      done = resolve
    })
    const from = performance.now()
    const reply = api.call('message.send', { agent: '*', text: 'hello', type: 'notification', all: true })
    await all
    const took = performance.now() - from
    await reply
    return took
  }
  await times(20, send)
  return { send, close: () => node.close() }
}
