import path from 'node:path'
import v8 from 'node:v8'
import vm from 'node:vm'
import { MemoryTelemetry } from '../../../dist/adapters/telemetry/memory-telemetry.js'
import { DEFAULT_TIER_RULES } from '../../../dist/domain/routing/tier-rules.js'
import { AgentRegistry, loadConfig, resolveHome, startNode, systemClock } from '../../../dist/index.js'
import { keyToText } from '../../../dist/kit/ids.js'
import { Directory } from '../../../dist/node/directory.js'
import { Router } from '../../../dist/node/router.js'
import { median } from '../figures.mjs'
import { freePort, openLab } from '../lab.mjs'
import { localEnv, times } from '../nodes.mjs'

const NODES = 100
const CARDS = 10_000
const CAPABILITIES = 1000
const DECISIONS = 200_000
const LOOKUPS = 20_000
const AGENTS = 1000

/** What the rules cost: a decision with its look-ups, a capability in a full registry, a broadcast to many agents here. */
export async function figures({ runs, say }) {
  const scene = rulesScene()
  const broadcast = await openBroadcast(say)
  const samples = { decisions: [], p99: [], broadcast: [] }
  try {
    decisionsPerSecond(scene)
    // In turn, so that a busy moment of the machine meets all three.
    await times(runs, async () => {
      samples.decisions.push(decisionsPerSecond(scene))
      samples.p99.push(lookupP99(scene.registry))
      samples.broadcast.push(median(await times(10, broadcast.send)))
    })
  } finally {
    await broadcast.close()
  }
  const note = `${CARDS} cards of ${NODES} nodes; both ends looked up and weakened, counted and timed, as on every message; per second of the processor`
  return [
    { name: 'router decisions with look-ups', unit: '/s', goal: 1_000_000, bound: 'min', samples: samples.decisions, note },
    { name: 'look-up by capability, p99', unit: 'us', goal: 50, samples: samples.p99, note: `${LOOKUPS} look-ups a sample` },
    { name: `memory of a registry of ${CARDS} cards`, unit: 'MB', goal: 40, samples: [scene.registryMb] },
    { name: `broadcast to ${AGENTS} agents of a node`, unit: 'ms', goal: 5, samples: samples.broadcast, note: 'until the last has it' }
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
  const capability = (id) => ({ id, name: id, description: 'does it', inputSchema: { type: 'object' }, outputSchema: {} })
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

/** A registry, a directory and a router as a node has them, over a hundred connected members. */
function rulesScene() {
  const ids = Array.from({ length: NODES }, (_, index) => keyToText(new Uint8Array(32).fill(index + 1)))
  const before = heldBytes()
  const registry = new AgentRegistry()
  for (let index = 0; index < CARDS; index++) registry.merge(cardOf(index), ids[index % NODES], 1)
  const registryMb = (heldBytes() - before) / 1024 ** 2
  const certificate = { maxTier: 0, name: 'bench' }
  const certificates = new Map(ids.map((id) => [id, certificate]))
  const clock = systemClock()
  const telemetry = new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} })
  const directory = new Directory({
    self: ids[0],
    registry,
    log: { view: () => ({ members: new Map() }) },
    peers: { certificate: (id) => certificates.get(id) ?? null, online: () => [] },
    ownCertificate: () => certificate
  })
  const rules = { tierRules: DEFAULT_TIER_RULES, sandbox: { enforced: true, crossSandboxAllowList: [] }, replies: 'exchange' }
  const router = new Router({ clock, telemetry, directory, audit: { append() {} }, events: { add() {} }, rules: () => rules })
  const addresses = Array.from({ length: CARDS }, (_, index) => ({ agentId: `agent${index}`, nodeId: ids[index % NODES] }))
  return { registry, registryMb, directory, router, addresses }
}

function decisionsPerSecond({ directory, router, addresses }) {
  let allowed = 0
  const from = process.cpuUsage()
  for (let index = 0; index < DECISIONS; index++) {
    const sender = directory.party(addresses[index % CARDS])
    const target = directory.party(addresses[(index * 7 + 1) % CARDS])
    const question = {
      sender,
      target,
      type: 'request',
      justification: 'bench',
      isReply: false,
      isArriving: true,
      capability: 'agent.do',
      sideEffect: 'none'
    }
    if (router.decide(question).allowed) allowed++
  }
  const { user, system } = process.cpuUsage(from)
  const seconds = (user + system) / 1e6
  // By the table 13 of the 16 pairs of tiers pass (with a justification): a router that says yes to all is no router.
  if (allowed === 0 || allowed === DECISIONS) throw new Error('the rules of the bench decide nothing')
  return DECISIONS / seconds
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

/** A node of this process with a thousand attached agents; `send` gives the milliseconds until the last had a notification. */
async function openBroadcast(say) {
  const lab = openLab()
  Object.assign(process.env, localEnv(await freePort()))
  const home = resolveHome({ home: path.join(lab.dir(), 'h') })
  const { config } = await loadConfig({ file: home.configFile })
  const node = await startNode({ config, home, name: 'bench', join: null, extraAgentDirs: [] })
  let left = 0
  let done = () => {}
  const onMessage = () => {
    if (--left === 0) done()
  }
  await Promise.all(Array.from({ length: AGENTS }, (_, index) => node.attach({ id: `agent${index}`, onMessage })))
  say(`${AGENTS} agents attached`)
  const api = node.apiFor({ kind: 'operator', name: 'bench', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] })
  const send = async () => {
    left = AGENTS
    const all = new Promise((resolve) => {
      done = resolve
    })
    const from = performance.now()
    const reply = api.call('message.send', { agent: '*', text: 'hello', type: 'notification' })
    await all
    const took = performance.now() - from
    await reply
    return took
  }
  await times(20, send)
  return {
    send,
    close: async () => {
      await node.close()
      await lab.close()
    }
  }
}
