import fs from 'node:fs'
import path from 'node:path'
import type { Assert } from 'brittle'
import { createSchemaCompiler } from '../../../src/adapters/agents/schemas/compile-schema.js'
import { ImportedAgents } from '../../../src/adapters/agents/imports/imported-agents.js'
import { ProcessGroups } from '../../../src/adapters/agents/process/process-groups.js'
import { programStarter } from '../../../src/adapters/agents/starters/program-starter.js'
import { connectionsTo, type ImportedAddress } from '../../../src/adapters/mcp/imported/imported-connection.js'
import { ListTags } from '../../../src/adapters/mcp/imported/imported-http.js'
import { ImportedServer, type ImportedServerSpec } from '../../../src/adapters/mcp/imported/imported-server.js'
import type { AgentOutcome, HostedAgent } from '../../../src/ports/agent-runtime.js'
import type { ImportedServerInfo } from '../../../src/ports/imported-tools.js'
import type { NodeStore } from '../../../src/ports/storage.js'
import { eventually } from '../agents/eventually.js'
import { realClock } from '../agents/real-clock.js'
import { type RecordedRun, recordedRun, taskOf } from '../agents/task.js'
import { FakeStore } from '../fake-store.js'
import { ROOT } from '../nodes.js'
import { tempDir } from '../tmp.js'

const SERVER = path.join(ROOT, 'test/support/mcp/imported-server.mjs')

/** What a scripted server of a test offers and how it behaves; see `imported-server.mjs`. */
export type Plan = Readonly<Record<string, unknown>> & { readonly tools: readonly object[] }

/** Tools of a scripted server by name, each taking any object. */
export function toolsOf(...names: readonly string[]): readonly object[] {
  return names.map((name) => ({ name, description: `Does ${name}.`, inputSchema: { type: 'object' } }))
}

/** A scripted server as the config would name it. */
export interface Scripted {
  readonly name: string
  readonly plan: Plan
  readonly spec?: Partial<ImportedServerSpec>
  /** Instead of the script. */
  readonly address?: ImportedAddress
  readonly env?: Readonly<Record<string, string>>
  /** Instead of that of this machine. */
  readonly fetch?: typeof fetch
}

/** Servers of one test, imported. */
export interface ImportedScene {
  readonly imported: ImportedAgents
  readonly dir: string
  /** Notes on servers that break the protocol: `<server>: <note>`. */
  readonly logged: readonly string[]
  agents(): readonly HostedAgent[]
  info(name: string): ImportedServerInfo
  /** Calls a tool; the outcome without its form for MCP. */
  call(server: string, tool: string, input?: unknown, run?: RecordedRun): Promise<AgentOutcome>
  /** Gives a server another plan; it notices by itself. */
  replan(server: string, plan: Plan): void
  /** What the server noted: `start <pid>`, `list`, `call <tool>`, in order. */
  notes(server: string): readonly string[]
  /** The process of the server now. */
  pid(server: string): number
  ready(server: string): Promise<void>
  close(): Promise<void>
}

/** Imports scripted servers; all is gone when the test ends. `store`: of a node that was there before. */
export async function importedScene(
  t: Assert,
  servers: readonly Scripted[],
  {
    store = new FakeStore(),
    dir: givenDir,
    ttlMs
  }: { readonly store?: NodeStore; readonly dir?: string; readonly ttlMs?: number } = {}
): Promise<ImportedScene> {
  const dir = givenDir ?? (await tempDir(t))
  const groups = new ProcessGroups(path.join(dir, 'run'))
  const programs = programStarter(groups, { PATH: process.env['PATH'], HOME: dir, SECRET: 'of the node' })
  const planFile = (name: string): string => path.join(dir, `${name}.json`)
  const notesFile = (name: string): string => path.join(dir, `${name}.notes`)
  let agents: readonly HostedAgent[] = []
  const logged: string[] = []
  for (const { name, plan } of servers) fs.writeFileSync(planFile(name), JSON.stringify(plan))
  const imported = new ImportedAgents({
    adapters: servers.map(({ name, spec, address, env = {}, fetch: send = fetch }) => {
      const program = {
        command: [process.execPath, SERVER, planFile(name), notesFile(name)] as [string, ...string[]],
        env,
        cwd: dir
      }
      const full = specOf(name, spec)
      const { maxOutputBytes } = full
      const parts = {
        programs,
        clock: realClock,
        version: '0.0.0',
        maxOutputBytes,
        tags: new ListTags(),
        fetch: send,
        onNote: (note: string) => void logged.push(`${name}: ${note}`)
      }
      const open = connectionsTo({ ...parts, address: () => address ?? { kind: 'stdio', program } })
      return new ImportedServer({ spec: full, open, compileSchema: createSchemaCompiler(), clock: realClock })
    }),
    store,
    clock: realClock,
    chance: () => 0,
    log: () => {},
    isTaken: () => false,
    ...(ttlMs === undefined ? {} : { ttlMs })
  })
  const close = async (): Promise<void> => {
    await imported.close()
    await groups.close()
  }
  t.teardown(close)
  agents = (await imported.load()).agents
  imported.watch((now) => {
    agents = now
  })
  const scene: ImportedScene = {
    imported,
    dir,
    logged,
    agents: () => agents,
    info: (name) => imported.list().find((one) => one.name === name) as ImportedServerInfo,
    call: async (server, tool, input = {}, run = recordedRun()) => {
      const agent = agents.find(({ definition }) => definition.id === server)
      if (agent === undefined) throw new Error(`no agent ${server}`)
      const { content: _content, ...plain } = await agent.run(taskOf(`mcp_${server}_${tool}`, input), run)
      return plain
    },
    replan: (server, plan) => {
      // Whole at once: the server reads it whenever it likes.
      fs.writeFileSync(`${planFile(server)}.new`, JSON.stringify(plan))
      fs.renameSync(`${planFile(server)}.new`, planFile(server))
    },
    notes: (server) =>
      fs.existsSync(notesFile(server)) ? fs.readFileSync(notesFile(server), 'utf8').trim().split('\n') : [],
    pid: (server) =>
      Number(
        scene
          .notes(server)
          .findLast((line) => line.startsWith('start '))
          ?.slice(6)
      ),
    ready: (server) => eventually(() => scene.info(server).state === 'ready'),
    close
  }
  return scene
}

/** What the config says of a server of a test. */
function specOf(name: string, more: Partial<ImportedServerSpec> = {}): ImportedServerSpec {
  return {
    name,
    transport: 'stdio',
    url: null,
    tier: null,
    sandbox: null,
    timeoutMs: 20_000,
    concurrency: 4,
    maxOutputBytes: 1_048_576,
    sideEffect: 'exec',
    idempotent: [],
    tools: null,
    pin: null,
    source: '/config.yaml',
    ...more
  }
}

/** The text of a failure; fails the test for a result. */
export function failureOf(t: Assert, outcome: AgentOutcome): string {
  if (outcome.ok) t.fail(`it did not fail: ${JSON.stringify(outcome.result)}`)
  return outcome.ok ? '' : `${outcome.code}: ${outcome.message}`
}
