import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import * as api from '../src/index.js'
import { freePort, ROOT } from './support/nodes.js'
import { tempDir } from './support/tmp.js'

test('the version is that of package.json', async (t) => {
  const manifest = JSON.parse(await fs.readFile(path.join(ROOT, 'package.json'), 'utf8')) as { version: string }
  t.is(api.VERSION, manifest.version)
})

test('what the package exports by name is what it says, no more', (t) => {
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
    'VERSION',
    'addressText',
    'applyTask',
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
    'randomIds',
    'resolveHome',
    'startNode',
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
  const mine = node.apiFor({ kind: 'operator', name: 'me', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] })
  const reply = await mine.call('message.call', { agent: 'text', capability: 'text.stats', input: { text: 'three small words' } })
  t.is(reply.outcome, 'COMPLETED')
  t.is((reply.payload as { words: number }).words, 3)
  await node.close()
  t.is(await node.stopped, null)
})

test('envelopes are made, written and read by the public names', (t) => {
  const factory = new api.EnvelopeFactory(api.randomIds(), api.systemClock())
  const sender = `me@${'y'.repeat(52)}`
  const envelope = factory.create({ sender, recipient: '*', type: 'notification', payload: { text: 'hello' }, metadata: { tier: 1 } })
  const decoded = api.decodeEnvelope(api.encodeEnvelope(envelope))
  t.ok(decoded.ok)
  t.is(decoded.ok && decoded.header.id, envelope.id)
})
