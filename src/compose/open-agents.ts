import path from 'node:path'
import type { Clock } from '../kit/clock.js'
import { messageOf } from '../kit/errors.js'
import type { CompileSchema } from '../kit/sign.js'
import { tierFromText } from '../domain/routing/tier.js'
import type { AgentDefinition, AgentSource, HostedAgent } from '../ports/agent-runtime.js'
import type { ToolChooser } from '../ports/agent-tools.js'
import type { ImportedTools } from '../ports/imported-tools.js'
import type { ImportAdapter } from '../ports/imports.js'
import type { NodeStore } from '../ports/storage.js'
import { AgentFiles, type AgentFilesOptions, type ImportedDirectory } from '../adapters/agents/files/agent-source.js'
import type { AgentLog } from '../adapters/agents/files/runtime-type.js'
import { hostAgent } from '../adapters/agents/files/hosted-agent.js'
import { ImportedAgents } from '../adapters/agents/imports/imported-agents.js'
import { LlmToolChooser } from '../adapters/agents/llm/llm-choice.js'
import type { LlmDeps } from '../adapters/agents/llm/llm-parts.js'
import { ProcessGroups } from '../adapters/agents/process/process-groups.js'
import { programStarter } from '../adapters/agents/starters/program-starter.js'
import { RemoteAgent } from '../adapters/a2a/remote/remote-agent.js'
import { RemoteContexts } from '../adapters/a2a/remote/remote-contexts.js'
import type { RemoteNet } from '../adapters/a2a/remote/remote-connect.js'
import {
  CALLER_CAPABILITY,
  CALLER_ID,
  CALLER_MAX_BYTES,
  CALLER_TIMEOUT_MS,
  callOnce
} from '../adapters/a2a/remote/remote-once.js'
import type { RemoteSpec } from '../adapters/a2a/remote/remote-skills.js'
import { connectionsTo, type ImportedAddress } from '../adapters/mcp/imported/imported-connection.js'
import { ListTags } from '../adapters/mcp/imported/imported-http.js'
import { ImportedServer, type ImportedServerSpec } from '../adapters/mcp/imported/imported-server.js'
import { onlyProvider } from '../config/agent-imports.js'
import { configDirectory } from '../config/load.js'
import type { A2AAgentSetting } from '../config/a2a-agents.js'
import type { McpServerSetting } from '../config/mcp-servers.js'
import type { EnvValues } from '../config/env-values.js'
import type { Config } from '../config/settings.js'
import { joinAgents } from './joined-agents.js'
import { addressPolicy, secretOf } from './remote-net.js'
import type { StartDeps, StartOptions } from './open-home.js'
import { serverAddress } from './server-address.js'
import { LateMesh } from './late-mesh.js'
import { AgentApis, openLlm, toolsOfMesh } from './open-llm.js'
import { VERSION } from './version.js'

/** The agents of a node: from files, starters, imported MCP servers, and remote A2A agents. */
export interface OpenedAgents {
  readonly source: AgentSource
  readonly tools: ImportedTools
  /** Chooses a tool by a prompt, with the first LLM provider of the config that names a model. */
  readonly chooser: ToolChooser
  /** Access of agents to the mesh; waits for its `serve`. */
  readonly apis: AgentApis
  /** Access to A2A agents of other members; fails before its `serve`. */
  readonly mesh: LateMesh
  /** Calls A2A agents that the config does not name. */
  readonly caller: HostedAgent
}

/** Makes the sources of agents. Nothing is read or started before their `load`. */
export function openAgents(
  { options, clock, telemetry, reload }: StartDeps,
  { compileSchema, store }: { readonly compileSchema: CompileSchema; readonly store: NodeStore }
): OpenedAgents {
  const { config, home } = options
  const env: EnvValues = { ...process.env, A2A_NODE_HOME: home.home }
  const [groups, apis, mesh] = [new ProcessGroups(home.run), new AgentApis(), new LateMesh(clock)]
  const log: AgentLog = (level, message, fields) => telemetry.log(level, message, fields)
  const llm = llmOf(() => reload.config, apis, { env, clock, compileSchema, store, log })
  const files = new AgentFiles({
    ...directoriesOf(options, config),
    runDir: home.run,
    grants: config.agents.grants,
    writeGrants: config.agents.writeGrants,
    starters: config.agents.starters,
    groups,
    env,
    llm,
    clock,
    compileSchema,
    log
  })
  reload.live(['agents.dirs', 'agents.imports', 'llm.providers'], (next) => files.follow(directoriesOf(options, next)))
  const net: RemoteNet = { clock, mesh, policy: addressPolicy(config) }
  const servers = serversOf(options, { env, groups, clock, compileSchema, telemetry, log })
  let taken: readonly HostedAgent[] = []
  const tools = new ImportedAgents({
    adapters: [...servers, ...remotesOf(options, { env, net, store, log })],
    store,
    clock,
    chance: Math.random,
    log,
    isTaken: (agent) => taken.includes(agent)
  })
  const source = joinAgents([files, tools], (agents) => {
    taken = agents
  })
  const chooser = chooserOf(() => reload.config, llm, { clock, log })
  return { source, tools, chooser, caller: callerOf(net), apis, mesh }
}

function callerOf(net: RemoteNet): HostedAgent {
  const runtime = { run: callOnce.bind(null, net), end: () => Promise.resolve() }
  return hostAgent({ definition: callerDefinition, runtime, clock: net.clock })
}

/** The first provider with a model chooses. */
function chooserOf(config: () => Config, llm: LlmDeps, deps: Pick<LlmNeeds, 'clock' | 'log'>): ToolChooser {
  const provider = (): string | null =>
    Object.entries(config().llm.providers).find(([, { model }]) => model !== null)?.[0] ?? null
  return new LlmToolChooser({ llm, provider, ...deps })
}

function directoriesOf(
  { home, extraAgentDirs }: StartOptions,
  config: Config
): Required<Pick<AgentFilesOptions, 'dirs' | 'imports'>> {
  return {
    dirs: [home.agents, ...config.agents.dirs, ...extraAgentDirs],
    imports: importsOf(config, path.dirname(home.configFile))
  }
}

/** The directories of sub-agent files of the config. */
function importsOf({ agents, llm }: Config, base: string): readonly ImportedDirectory[] {
  return Object.values(agents.imports).map((one) => ({
    ...one,
    dir: configDirectory(one.dir, base),
    model: one.model ?? onlyProvider(llm.providers)
  }))
}

interface LlmNeeds {
  readonly env: EnvValues
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  readonly store: NodeStore
  readonly log: AgentLog
}

function llmOf(
  config: () => Config,
  apis: AgentApis,
  { env, clock, compileSchema, store, log }: LlmNeeds
): ReturnType<typeof openLlm> {
  const onFault = (error: unknown): void =>
    log('warn', 'what agents of language models used today could not be kept', { reason: messageOf(error) })
  return openLlm({
    providers: () => config().llm.providers,
    env,
    clock,
    tools: toolsOfMesh(apis, { clock, compileSchema }),
    kept: { store, onFault }
  })
}

interface ServerNeeds {
  readonly env: EnvValues
  readonly groups: ProcessGroups
  readonly clock: Clock
  readonly compileSchema: CompileSchema
  readonly telemetry: StartDeps['telemetry']
  readonly log: AgentLog
}

/** The MCP servers of the config. */
function serversOf(
  { config, home }: StartOptions,
  { env, groups, clock, compileSchema, telemetry, log }: ServerNeeds
): readonly ImportAdapter[] {
  // Third-party servers do not get the path of the home.
  const programs = programStarter(groups, { ...env, A2A_NODE_HOME: undefined })
  return Object.entries(config.mcp.servers).map(([name, setting]) => {
    const spec = specOf(name, setting, home.configFile)
    const address = (): ImportedAddress => serverAddress(name, setting, { env, dir: path.dirname(home.configFile) })
    const { maxOutputBytes } = spec
    const onNote = (reason: string): void => log('warn', 'an MCP server breaks its protocol', { server: name, reason })
    const open = connectionsTo({
      address,
      programs,
      clock,
      version: VERSION,
      maxOutputBytes,
      tags: new ListTags(),
      fetch,
      onNote,
      onUnclaimedLine: () => telemetry.count('mcp_log_lines_dropped', name)
    })
    return new ImportedServer({ spec, open, compileSchema, clock })
  })
}

/** The A2A agents of the config. */
function remotesOf(
  { config, home }: StartOptions,
  { env, net, store, log }: Pick<LlmNeeds, 'env' | 'store' | 'log'> & { readonly net: RemoteNet }
): readonly ImportAdapter[] {
  const onFault = (error: unknown): void =>
    log('warn', 'contexts at A2A agents could not be kept', { reason: messageOf(error) })
  const contexts = new RemoteContexts({ store, onFault })
  return Object.entries(config.a2a.agents).map(([name, setting]) => {
    const secret = setting.auth === null ? null : secretOf(name, setting.auth, env)
    return new RemoteAgent({ spec: remoteSpec(name, setting, home.configFile), secret, net, contexts, log })
  })
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

function specOf(name: string, setting: McpServerSetting, source: string): ImportedServerSpec {
  const { tier, url, ...rest } = setting
  return {
    ...rest,
    name,
    source,
    url,
    transport: url === null ? 'stdio' : 'http',
    tier: tier === null ? null : tierFromText(tier)
  }
}

function remoteSpec(name: string, setting: A2AAgentSetting, source: string): RemoteSpec {
  const { tier } = setting
  return { ...setting, name, source, tier: tier === null ? null : tierFromText(tier) }
}
