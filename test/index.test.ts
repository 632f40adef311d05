import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test from 'brittle'
import * as api from '../src/index.js'
import { freePort, ROOT } from './support/nodes.js'
import { tempDir } from './support/tmp.js'

test('the version is that of package.json', async (t) => {
  const manifest = JSON.parse(await fs.readFile(path.join(ROOT, 'package.json'), 'utf8')) as { version: string }
  t.is(api.VERSION, manifest.version)
})

test('the package exports the documented names, no more', (t) => {
  t.alike(Object.keys(api).sort(), [
    'A2AEnvelopeSchema',
    'A2AObservability',
    'AgentRegistry',
    'DEFAULT_TIER_ASSIGNMENTS',
    'DEFAULT_TIER_RULES',
    'ERROR_CODES',
    'EnvelopeFactory',
    'MESSAGE_TYPES',
    'NodeError',
    'SCHEMA_VERSION',
    'TIERS',
    'Threads',
    'VERSION',
    'acceptPayload',
    'addressText',
    'applyTask',
    'createChannel',
    'createProposal',
    'createSwarm',
    'createTask',
    'decide',
    'decodeEnvelope',
    'defaultCapability',
    'effectiveParty',
    'encodeEnvelope',
    'envelopeFromJson',
    'envelopeToJson',
    'foldTask',
    'isErrorCode',
    'loadConfig',
    'nextTickAt',
    'proposalPayload',
    'randomIds',
    'rejectPayload',
    'resolveHome',
    'retryDelayMs',
    'startNode',
    'stepChannel',
    'stepProposal',
    'stepSwarm',
    'swarmStatus',
    'systemClock',
    'tierFromText',
    'tierText',
    'validateCard'
  ])
})

test('a program starts a node by the public names alone, calls an agent and stops', async (t) => {
  const home = api.resolveHome({ home: await tempDir(t), env: {} })
  const flags = [
    { path: 'network.kind', flag: 'kind', value: 'local' },
    { path: 'network.localPort', flag: 'port', value: await freePort() }
  ]
  const { config } = await api.loadConfig({ file: home.configFile, env: {}, flags })
  const node = await api.startNode({ config, home, name: 'library', join: null, extraAgentDirs: [], log: null })
  t.teardown(() => node.close())
  const mine = node.apiFor({
    kind: 'operator',
    name: 'me',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send', 'admin']
  })
  const reply = await mine.call('message.call', {
    agent: 'text',
    capability: 'text.stats',
    input: { text: 'three small words' }
  })
  t.is(reply.outcome, 'COMPLETED')
  t.is((reply.payload as { words: number }).words, 3)
  await node.close()
  t.is(await node.stopped, null)
})

test('the example of USING.md runs as it is written', async (t) => {
  const [, example = ''] =
    /```js\n(import \{ loadConfig[\s\S]*?)```/.exec(await fs.readFile(path.join(ROOT, 'docs/USING.md'), 'utf8')) ?? []
  const code = example.replace("'./my-node'", JSON.stringify(await tempDir(t)))
  const env = { ...process.env, A2A_NODE_NETWORK_KIND: 'local', A2A_NODE_NETWORK_LOCAL_PORT: String(await freePort()) }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    cwd: ROOT,
    env
  })
  t.ok(stdout.includes('peers:'), stderr)
})

test('a field that a program without types omits is named', async (t) => {
  const home = api.resolveHome({ home: await tempDir(t), env: {} })
  const { config } = await api.loadConfig({ file: home.configFile, env: {} })
  const start = api.startNode as (options?: object) => Promise<unknown>
  for (const [given, lacking] of [
    [undefined, 'config'],
    [{ home }, 'config'],
    [{ config }, 'home']
  ] as const) {
    const error: unknown = await start(given).catch((thrown: unknown) => thrown)
    t.ok(error instanceof api.NodeError && error.message.includes(`needs \`${lacking}\``), String(error))
  }
})

test('the layer of a running node has every operation of the specification', async (t) => {
  const home = api.resolveHome({ home: await tempDir(t), env: {} })
  const flags = [
    { path: 'network.kind', flag: 'kind', value: 'local' },
    { path: 'network.localPort', flag: 'port', value: await freePort() }
  ]
  const { config } = await api.loadConfig({ file: home.configFile, env: {}, flags })
  const node = await api.startNode({ config, home, name: 'layer', join: null, extraAgentDirs: [], log: null })
  t.teardown(() => node.close())
  const { layer } = node
  t.is(node.layer, layer)
  const operations = {
    registry: [
      ...['getById', 'findByCapability', 'findByTier', 'listAll', 'getLocalCards', 'getRemoteCards'],
      ...['enableDiscovery', 'disableDiscovery', 'serialize']
    ],
    envelopes: ['create', 'reply'],
    router: ['send', 'onReceive', 'setTierConfig', 'setSandboxConfig'],
    channels: ['openChannel', 'getChannel', 'listChannels', 'closeAll'],
    negotiator: ['propose', 'accept', 'reject', 'getProposal', 'listPending', 'onProposalReceived'],
    swarms: ['createSwarm', 'joinSwarm', 'completeSubTask', 'failSubTask', 'getSwarm', 'listActiveSwarms'],
    agents: ['registerAgent', 'unregisterAgent', 'sendMessage', 'getAgentState', 'onStateChange']
  } as const
  for (const [part, names] of Object.entries(operations)) {
    const object = layer[part as keyof typeof operations] as unknown as Record<string, unknown>
    for (const name of names) t.is(typeof object[name], 'function', `${part}.${name}`)
  }
  for (const name of ['emit', 'getMetrics', 'getRecentEvents', 'resetMetrics'] as const)
    t.is(typeof node.observability[name], 'function')

  const heard: string[] = []
  const mine = await node.attach({ id: 'mine' })
  layer.router.onReceive('mine', (envelope) => heard.push(envelope.type))
  const sender = mine.address
  const payload = { requestId: 'req_1', attempt: 1, capability: 'text.stats', input: { text: 'one two' } }
  const answered = new Promise<void>((resolve) => layer.router.onReceive('mine', () => resolve()))
  const envelope = layer.envelopes.create({ sender, recipient: 'text', type: 'request', payload })
  t.alike((await layer.router.send(envelope)).path, 'local')
  await answered
  t.alike(heard, ['response'])
  t.is(layer.thread(envelope.id).length, 2)
})

test('envelopes are made, written and read by the public names', (t) => {
  const factory = new api.EnvelopeFactory(api.randomIds(), api.systemClock())
  const sender = `me@${'y'.repeat(52)}`
  const envelope = factory.create({
    sender,
    recipient: '*',
    type: 'notification',
    payload: { text: 'hello' },
    metadata: { tier: 1 }
  })
  const decoded = api.decodeEnvelope(api.encodeEnvelope(envelope))
  t.ok(decoded.ok)
  t.is(decoded.ok && decoded.header.id, envelope.id)
})

test('an agent of a program has a state between messages, within tools.maxStateBytes of the config', async (t) => {
  const home = api.resolveHome({ home: await tempDir(t), env: {} })
  const flags = [
    { path: 'network.kind', flag: 'kind', value: 'local' },
    { path: 'network.localPort', flag: 'port', value: await freePort() },
    { path: 'tools.maxStateBytes', flag: 'state', value: 32 }
  ]
  const { config } = await api.loadConfig({ file: home.configFile, env: {}, flags })
  const node = await api.startNode({ config, home, name: 'states', join: null, extraAgentDirs: [], log: null })
  t.teardown(() => node.close())
  const { agents } = node.layer
  await agents.registerAgent('notes', ({ payload }, { state }) => state.set('note', payload).size)
  t.is(await agents.sendMessage('notes', { type: 'keep', payload: 'short' }), 1)
  const refused = await agents
    .sendMessage('notes', { type: 'keep', payload: 'x'.repeat(32) })
    .catch((error: unknown) => error)
  t.ok(refused instanceof api.NodeError && refused.message.includes('at most 32 are allowed'), String(refused))
  t.is(agents.getAgentState('notes')?.get('note'), 'short')
})
