import path from 'node:path'
import type { Clock } from '../kit/clock.js'
import { messageOf } from '../kit/errors.js'
import type { CompileSchema } from '../kit/sign.js'
import { tierFromText } from '../domain/routing/tier.js'
import type { AgentDefinition, AgentSource, HostedAgent } from '../ports/agent-runtime.js'
import type { ImportedServerInfo, ImportedTools } from '../ports/imported-tools.js'
import type { Problem } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import { AgentFiles } from '../adapters/agents/files/agent-source.js'
import { hostAgent } from '../adapters/agents/files/hosted-agent.js'
import { ProcessGroups } from '../adapters/agents/process/process-groups.js'
import { programStarter } from '../adapters/agents/starters/program-starter.js'
import { allowedHost } from '../adapters/a2a/net/address-guard.js'
import { RemoteAgents } from '../adapters/a2a/remote/remote-agents.js'
import type { RemoteNet, RemoteSecret } from '../adapters/a2a/remote/remote-connect.js'
import { CALLER_CAPABILITY, CALLER_ID, CALLER_MAX_BYTES, CALLER_TIMEOUT_MS, callOnce } from '../adapters/a2a/remote/remote-once.js'
import type { RemoteSpec } from '../adapters/a2a/remote/remote-skills.js'
import { connectionsTo, type ImportedAddress } from '../adapters/mcp/imported/imported-connection.js'
import { ListTags } from '../adapters/mcp/imported/imported-http.js'
import { ImportedServers } from '../adapters/mcp/imported/imported-servers.js'
import type { ImportedServerSpec } from '../adapters/mcp/imported/imported-server.js'
import type { A2AAgentSetting, A2ASecretSetting } from '../config/a2a-agents.js'
import type { McpServerSetting } from '../config/mcp-servers.js'
import { type EnvValues, resolvedValue } from './env-values.js'
import type { Config } from '../config/settings.js'
import { joinAgents } from './joined-agents.js'
import { joinTools } from './joined-tools.js'
import type { StartDeps } from './open-home.js'
import { LateMesh } from './late-mesh.js'
import { AgentApis, openLlm, toolsOfMesh } from './open-llm.js'
import { VERSION } from './version.js'

/** The agents of a node: those of files, the starters, its imported MCP servers, and A2A agents elsewhere. */
export interface OpenedAgents {
  readonly source: AgentSource
  readonly tools: ImportedTools
  /** How agents reach the mesh, once it is told that the node is up. */
  readonly apis: AgentApis
  /** How A2A agents of other members are reached, likewise. */
  readonly mesh: LateMesh
  /** Asks A2A agents that the config does not name. */
  readonly caller: HostedAgent
  /** What is wrong with what is imported. */
  problems(): readonly Problem[]
}

/** Makes the sources of agents. Nothing is read or started before they are loaded. */
export function openAgents(
  { options, clock, telemetry }: StartDeps,
  { compileSchema, store }: { readonly compileSchema: CompileSchema; readonly store: NodeStore }
): OpenedAgents {
  const { config, home, extraAgentDirs } = options
  const env: EnvValues = { ...process.env, A2A_NODE_HOME: home.home }
  const groups = new ProcessGroups(home.run)
  const [apis, mesh] = [new AgentApis(), new LateMesh(clock)]
  const log: ImportedLog = (level, message, fields) => telemetry.log(level, message, fields)
  const files = new AgentFiles({
    dirs: [home.agents, ...config.agents.dirs, ...extraAgentDirs],
    runDir: home.run,
    grants: config.agents.grants,
    starters: config.agents.starters,
    groups,
    env,
    llm: llmOf(config, apis, { env, clock, compileSchema, store, log }),
    clock,
    compileSchema,
    log
  })
  // A server of others has no business with the home of this node.
  const programs = programStarter(groups, { ...env, A2A_NODE_HOME: undefined })
  const servers = Object.entries(config.mcp.servers).map(([name, setting]) => {
    const spec = specOf(name, setting, home.configFile)
    const address = (): ImportedAddress => addressOf(name, setting, { env, dir: path.dirname(home.configFile) })
    const { maxOutputBytes } = spec
    return { spec, open: connectionsTo({ address, programs, clock, version: VERSION, maxOutputBytes, tags: new ListTags(), fetch }) }
  })
  const hosting = (parts: Omit<Parameters<typeof hostAgent>[0], 'clock'>): ReturnType<typeof hostAgent> => hostAgent({ ...parts, clock })
  const imported = new ImportedServers({ servers, store, compileSchema, clock, chance: Math.random, log, hostAgent: hosting })
  const { remote, net } = openRemotes({ config, source: home.configFile, env, mesh }, { store, clock, log, hostAgent: hosting })
  let taken: readonly HostedAgent[] = []
  const source = joinAgents([files, imported, remote], (agents) => {
    taken = agents
  })
  const tools = withTaken(joinTools(imported, remote), () => taken)
  const runtime = { run: callOnce.bind(null, net), end: () => Promise.resolve() }
  const caller = hosting({ definition: callerDefinition, runtime })
  return { source, tools, caller, apis, mesh, problems: () => [...tools.problems(), ...taken.map(takenProblem)] }
}

interface LlmNeeds {
  readonly env: EnvValues
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  readonly store: NodeStore
  readonly log: ImportedLog
}

function llmOf({ llm }: Config, apis: AgentApis, { env, clock, compileSchema, store, log }: LlmNeeds): ReturnType<typeof openLlm> {
  const onFault = (error: unknown): void =>
    log('warn', 'what agents of language models used today could not be kept', { reason: messageOf(error) })
  return openLlm({
    providers: () => llm.providers,
    env,
    clock,
    tools: toolsOfMesh(apis, { clock, compileSchema }),
    kept: { store, onFault }
  })
}

type AgentHosting = Pick<ConstructorParameters<typeof RemoteAgents>[0], 'store' | 'clock' | 'log' | 'hostAgent'>

/** The A2A agents of the config, and where requests for others may go. */
function openRemotes(
  {
    config: { a2a },
    source,
    env,
    mesh
  }: { readonly config: Config; readonly source: string; readonly env: EnvValues; readonly mesh: LateMesh },
  hosting: AgentHosting
): { readonly remote: RemoteAgents; readonly net: RemoteNet } {
  const net: RemoteNet = { clock: hosting.clock, mesh, policy: { allowed: a2a.allowPrivate.flatMap((text) => allowedHost(text) ?? []) } }
  const agents = Object.entries(a2a.agents).map(([name, setting]) => ({
    spec: remoteSpec(name, setting, source),
    secret: setting.auth === null ? null : secretOf(name, setting.auth, env)
  }))
  return { remote: new RemoteAgents({ ...hosting, agents, net, chance: Math.random }), net }
}

const callerDefinition: AgentDefinition = {
  id: CALLER_ID,
  name: CALLER_ID,
  version: '1.0.0',
  description: 'Asks any A2A agent by the URL of its card, for its own node alone.',
  tier: null,
  sandboxId: null,
  protocols: [],
  capabilities: [CALLER_CAPABILITY],
  limits: { timeoutMs: CALLER_TIMEOUT_MS, concurrency: 16, maxOutputBytes: CALLER_MAX_BYTES },
  runtime: 'a2a',
  source: 'built-in'
}

type ImportedLog = (level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Readonly<Record<string, unknown>>) => void

/** Tools of a server whose agent is not in service since its id is taken are not offered, whatever the server itself says. */
function withTaken(imported: ImportedTools, taken: () => readonly HostedAgent[]): ImportedTools {
  const seen = (info: ImportedServerInfo): ImportedServerInfo => {
    const isTaken = taken().some(
      ({ definition: { id, runtime } }) => id === info.agent && (runtime === 'a2a') === (info.transport === 'a2a')
    )
    if (!isTaken) return info
    const reason = `an agent ${info.agent} is on this node already`
    return { ...info, tools: info.tools.map((tool) => (tool.offered ? { ...tool, offered: false, reason } : tool)) }
  }
  return {
    list: () => imported.list().map(seen),
    named: (text) => {
      const info = imported.named(text)
      return info === null ? null : seen(info)
    },
    refresh: async (server, accept) => (await imported.refresh(server, accept)).map(seen),
    problems: () => imported.problems()
  }
}

function takenProblem({ definition }: HostedAgent): Problem {
  const { id, source, runtime } = definition
  const [place, what] = runtime === 'a2a' ? ['a2a.agents', 'it'] : ['mcp.servers', 'the server']
  return {
    code: 'AGENT_ID_TAKEN',
    message: `${source}: ${place}.${id}: an agent ${id} is on this node already: call ${what} otherwise`,
    next: 'a2a-node config path'
  }
}

function specOf(name: string, setting: McpServerSetting, source: string): ImportedServerSpec {
  const { tier, url, ...rest } = setting
  return { ...rest, name, source, url, transport: url === null ? 'stdio' : 'http', tier: tier === null ? null : tierFromText(tier) }
}

function remoteSpec(name: string, setting: A2AAgentSetting, source: string): RemoteSpec {
  const { tier } = setting
  return { ...setting, name, source, tier: tier === null ? null : tierFromText(tier) }
}

function secretOf(name: string, { header, value, isBearer, origins }: A2ASecretSetting, env: EnvValues): RemoteSecret {
  const headers = (): Record<string, string> => {
    const secret = resolvedValue(value, env, `a2a.agents.${name}.auth`)
    return { [header]: isBearer ? `Bearer ${secret}` : secret }
  }
  return { headers, origins }
}

/** Where a server is, with its secrets. @throws NodeError CONFIG_INVALID when a variable is not set */
function addressOf(
  name: string,
  setting: McpServerSetting,
  { env, dir }: { readonly env: EnvValues; readonly dir: string }
): ImportedAddress {
  const { command, url, cwd } = setting
  const given = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, resolvedValue(value, env, `mcp.servers.${name}: ${key}`)]))
  if (url !== null) return { kind: 'http', url, headers: given(setting.headers) }
  const [program = '', ...args] = command ?? []
  return { kind: 'stdio', program: { command: [program, ...args], env: given(setting.env), cwd: path.resolve(dir, cwd ?? '.') } }
}
