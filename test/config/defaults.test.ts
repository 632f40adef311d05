import test, { type Assert } from 'brittle'
import { loadConfig } from '../../src/config/load.js'
import { allSettings } from '../../src/config/settings.js'
import { NodeError } from '../../src/kit/errors.js'

const DAY_MS = 86_400_000

/** Every setting with its default. Those of the MCP runtime are the specification's (mcp-runtime, ServerConfig). */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  'node.name': null,
  'node.labels': [],
  'node.shutdownTimeoutMs': 5000,
  'network.kind': 'public',
  'network.bootstrap': [],
  'network.serveBootstrap': null,
  'network.behindNat': false,
  'network.forward': true,
  'network.maxPeers': 64,
  'network.joinTimeoutMs': 20_000,
  'network.giveUpMs': 60_000,
  'network.localPort': 29_737,
  'tcp.listen': 'auto',
  'tcp.addresses': [],
  'discovery.lan': true,
  'websocket.listen': null,
  'websocket.urls': [],
  'websocket.via': [],
  'http.listen': null,
  'http.publicUrl': null,
  'http.hosts': [],
  'http.origins': [],
  'http.maxConnections': 512,
  'http.anonymousLimit': { perMinute: 1200, burst: 200 },
  'http.wrongTokenLimit': { perMinute: 60, burst: 30 },
  'agents.dirs': [],
  'agents.grants': [],
  'agents.writeGrants': [],
  'agents.imports': {},
  'agents.starters': true,
  'routing.replies': 'exchange',
  'policy.approvalTimeoutMs': 300_000,
  'policy.notify': null,
  'tasks.requestTimeoutMs': 30_000,
  'tasks.maxInFlight': 2048,
  'tasks.maxInFlightPerPeer': 256,
  'ledger.defaultTtlMs': DAY_MS,
  'ledger.durability': 'power',
  'ledger.maxMib': 4096,
  'mcp.eras': 'both',
  'mcp.expose': 'auto',
  'mcp.startNode': true,
  'mcp.schemas': 'fitted',
  'mcp.favorites': [],
  'mcp.maxListedTools': 30,
  'mcp.maxListedTokens': 6000,
  'mcp.maxResultTokens': { default: 10_000 },
  'mcp.servers': {},
  'a2a.oauth': { enabled: false, issuer: null, accessTokenSeconds: 600, refreshTokenDays: 30, keyDays: 90, scopes: {} },
  'a2a.allowPrivate': [],
  'a2a.agents': {},
  'a2a.mesh': true,
  'a2a.grpc': null,
  'a2a.grpcPublic': null,
  'a2a.meshInterface': false,
  'a2a.provider': null,
  'a2a.default': null,
  'llm.providers': {},
  'a2a.guardrails': { input: { maxLength: 100_000, deny: [] }, output: { maxLength: 1_000_000, deny: [] } },
  'a2a.rateLimit': { perMinute: 6000, burst: 1000 },
  'tools.defaultTimeoutMs': 30_000,
  'tools.maxPayloadBytes': 1_048_576,
  'tools.maxStateBytes': 262_144,
  'tools.adminRegistrationEnabled': false,
  'tools.adminPolicy': 'deny_all',
  'resources.maxConcurrentExecutions': 10,
  'security.dynamicRegistrationEnabled': false,
  'security.allowArbitraryCodeTools': false,
  'swarm.leaseMs': 5000,
  'swarm.heartbeatMs': 1000,
  'swarm.deadlineMs': 600_000,
  'log.level': 'info',
  'log.format': 'text',
  'log.redactKeys': []
}

test('every setting has the default that is promised, and none is missing', async (t: Assert) => {
  t.alike(Object.fromEntries(allSettings().map(({ path, setting }) => [path, setting.fallback])), DEFAULTS)
  const { config } = await loadConfig({ file: '/nowhere/config.yaml', env: {} })
  const loaded = config as unknown as Record<string, Record<string, unknown>>
  for (const { path, section, key } of allSettings()) t.alike(loaded[section][key], DEFAULTS[path], path)
})

test('a setting of the runtime that cannot be is refused at the start, by its name', async (t: Assert) => {
  const wrong: Readonly<Record<string, string>> = {
    A2A_NODE_TOOLS_DEFAULT_TIMEOUT_MS: '0',
    A2A_NODE_TOOLS_MAX_PAYLOAD_BYTES: 'many',
    A2A_NODE_TOOLS_ADMIN_POLICY: 'anybody',
    A2A_NODE_RESOURCES_MAX_CONCURRENT_EXECUTIONS: '-1',
    A2A_NODE_SECURITY_DYNAMIC_REGISTRATION_ENABLED: 'maybe',
    A2A_NODE_MCP_ERAS: 'none'
  }
  for (const [name, value] of Object.entries(wrong)) {
    const refused = await loadConfig({ file: '/nowhere/config.yaml', env: { [name]: value } }).catch(
      (error: unknown) => error
    )
    t.ok(
      refused instanceof NodeError && refused.code === 'CONFIG_INVALID' && JSON.stringify(refused.data).includes(name),
      name
    )
  }
})
