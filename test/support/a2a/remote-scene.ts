import type { Assert } from 'brittle'
import { ImportedAgents } from '../../../src/adapters/agents/imports/imported-agents.js'
import { allowedHost } from '../../../src/adapters/a2a/net/address-guard.js'
import { RemoteAgent } from '../../../src/adapters/a2a/remote/remote-agent.js'
import { RemoteContexts } from '../../../src/adapters/a2a/remote/remote-contexts.js'
import type { RemoteSecret } from '../../../src/adapters/a2a/remote/remote-connect.js'
import type { RemoteSpec } from '../../../src/adapters/a2a/remote/remote-skills.js'
import type { Resolve } from '../../../src/adapters/a2a/net/ssrf-fetch.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import type { AgentOutcome, AgentTask, HostedAgent } from '../../../src/ports/agent-runtime.js'
import type { ImportedServerInfo } from '../../../src/ports/imported-tools.js'
import { eventually } from '../agents/eventually.js'
import { FakeStore } from '../fake-store.js'

/** Remote agents of a config without a node around them. */
export interface RemoteScene {
  readonly remotes: ImportedAgents
  agents(): readonly HostedAgent[]
  info(name?: string): ImportedServerInfo
  /** Resolves when the card of all was fetched, or failed to be. */
  settled(): Promise<void>
  /** Runs a capability; `progress` gets what is reported. */
  call(
    capability: string,
    input: unknown,
    options?: {
      progress?: unknown[]
      signal?: AbortSignal
      task?: Partial<AgentTask>
      onProgress?(data: unknown): void
    }
  ): Promise<AgentOutcome>
  readonly lines: string[]
}

/** A spec with what config files have by default. */
export function remoteSpec(card: string, more: Partial<RemoteSpec> = {}): RemoteSpec {
  return {
    name: 'far',
    card,
    url: null,
    tier: null,
    sandbox: null,
    skills: null,
    sideEffect: 'exec',
    idempotent: [],
    passJustification: false,
    timeoutMs: 20_000,
    concurrency: 4,
    maxOutputBytes: 1_048_576,
    pin: null,
    key: null,
    source: 'config.yaml',
    ...more
  }
}

/** Starts them; loopback is on the allow list unless told otherwise. */
export async function remoteScene(
  t: Pick<Assert, 'teardown'>,
  spec: RemoteSpec,
  options: { store?: FakeStore; secret?: RemoteSecret; allow?: readonly string[]; resolve?: Resolve } = {}
): Promise<RemoteScene> {
  const { store = new FakeStore(), secret = null, allow = ['127.0.0.1'], resolve } = options
  const clock = systemClock()
  const lines: string[] = []
  const log = (_level: string, message: string, fields: Readonly<Record<string, unknown>>): void => {
    const reason = fields['reason']
    lines.push(typeof reason === 'string' ? `${message}: ${reason}` : message)
  }
  const net = {
    clock,
    policy: { allowed: allow.flatMap((text) => allowedHost(text) ?? []) },
    ...(resolve === undefined ? {} : { resolve })
  }
  const remotes = new ImportedAgents({
    adapters: [new RemoteAgent({ spec, secret, net, contexts: new RemoteContexts({ store, onFault: () => {} }), log })],
    store,
    clock,
    chance: () => 0.5,
    log,
    isTaken: () => false
  })
  let agents = (await remotes.load()).agents
  remotes.watch((next) => {
    agents = next
  })
  t.teardown(() => remotes.close())
  const info = (name = spec.name): ImportedServerInfo => {
    const found = remotes.list().find((one) => one.name === name)
    if (found === undefined) throw new Error('no such agent')
    return found
  }
  let count = 0
  return {
    remotes,
    agents: () => agents,
    info,
    settled: () => eventually(() => info().state !== 'starting'),
    call: async (
      capability,
      input,
      { progress = [], signal = new AbortController().signal, task = {}, onProgress } = {}
    ) => {
      const [agent] = agents
      if (agent === undefined) throw new Error('it is not offered')
      const base = {
        taskId: 't',
        requestId: `r${++count}`,
        attempt: 1,
        capability,
        description: '',
        swarm: null,
        input
      }
      return await agent.run({ ...base, ...task }, { signal, progress: (data) => report(progress, data, onProgress) })
    },
    lines
  }
}

function report(progress: unknown[], data: unknown, onProgress?: (data: unknown) => void): void {
  progress.push(data)
  onProgress?.(data)
}
