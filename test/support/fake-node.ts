import { NodeError } from '../../src/kit/errors.js'
import type { Assert } from 'brittle'
import { createMemoryLedger } from './memory-ledger.js'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import { MemoryTelemetry } from '../../src/adapters/telemetry/memory-telemetry.js'
import { type IdSource, type NodeId, utf8 } from '../../src/kit/ids.js'
import type { InviteTerms } from '../../src/domain/membership/types.js'
import { DEFAULT_TIER_RULES } from '../../src/domain/routing/tier-rules.js'
import type { MetricName } from '../../src/ports/telemetry.js'
import { createApi } from '../../src/node/api/node-api.js'
import { createNode, type NodeCore } from '../../src/node/node.js'
import type { NodeDeps, NodeSettings } from '../../src/node/dependencies.js'
import type { HostedAgent } from '../../src/ports/agent-runtime.js'
import type { Audit, AuditEvent } from '../../src/ports/audit.js'
import type { ImportedTools } from '../../src/ports/imported-tools.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { GivenAddresses } from '../../src/ports/mesh.js'
import type { NodeApi, Principal } from '../../src/ports/node-api.js'
import type { ContextStore } from '../../src/ports/task-api.js'
import type { PushAdmin } from '../../src/ports/push-api.js'
import { countingIds } from './counting-ids.js'
import { FakeSource } from './fake-agents.js'
import { FakeNet, type FakeLinks } from './fake-links.js'
import { FakeLog, membershipOf } from './fake-log.js'
import { FakePolicy } from './fake-policy.js'
import { FakeStore } from './fake-store.js'
import { ManualClock } from './manual-clock.js'
import { StreamNet } from './memory-streams.js'
import { type Actor, actor, founded, hash, inviteTerms, verify } from './membership.js'

/** A node that imports nothing. */
const NO_SERVERS: ImportedTools = {
  list: () => [],
  named: () => null,
  refresh: (server) =>
    server === null
      ? Promise.resolve([])
      : Promise.reject(new NodeError('TOOL_SERVER_NOT_FOUND', `no MCP server ${server} here`)),
  problems: () => []
}

/** Settings of a node under test, as shipped but for a shorter swarm. */
export const SETTINGS: NodeSettings = {
  requestTimeoutMs: 30_000,
  defaultTtlMs: 86_400_000,
  ledgerMaxBytes: 4 * 1024 ** 3,
  maxInFlight: 2048,
  maxInFlightPerPeer: 256,
  leaseMs: 5000,
  heartbeatMs: 1000,
  approvalTimeoutMs: 300_000,
  swarmDeadlineMs: 600_000,
  channelGiveUpMs: 60_000,
  forward: true,
  maxStateBytes: 262_144,
  maxPayloadBytes: 1_048_576,
  labels: [],
  provider: null,
  defaultAgent: null,
  rules: { tierRules: DEFAULT_TIER_RULES, sandbox: { enforced: true, crossSandboxAllowList: [] }, replies: 'exchange' }
}

/** What an audit log was told. */
export class FakeAudit implements Audit {
  /** Everything, in order. */
  readonly all: AuditEvent[] = []

  append(event: AuditEvent): void {
    this.all.push(event)
  }

  /** What was refused or decided, in order: neither exchanges across tiers nor changes of membership. */
  get events(): readonly AuditEvent[] {
    return this.all.filter(({ kind }) => kind !== 'cross-tier' && kind !== 'membership')
  }

  /** Those of one kind, in order. */
  of(kind: AuditEvent['kind']): readonly AuditEvent[] {
    return this.all.filter((one) => one.kind === kind)
  }

  flush(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** The rules of refusals and strikes, in order. */
  rules(): string[] {
    return this.events.flatMap((one) => one.rule ?? [])
  }
}

/** A whole node but for its adapters. */
export interface FakeNode {
  readonly name: string
  readonly id: NodeId
  readonly actor: Actor
  readonly core: NodeCore
  readonly links: FakeLinks
  readonly source: FakeSource
  readonly store: FakeStore
  readonly ledger: Ledger
  readonly audit: FakeAudit
  readonly policy: FakePolicy
  /** Log lines of level warn and error. */
  readonly lines: string[]
  /** A counter's value. */
  counted(name: MetricName, label?: string | null): number
  /** The API of a caller; the operator unless told otherwise. */
  api(principal?: Partial<Principal>): NodeApi
}

/** How a node of a test is. */
export interface FakeNodeOptions {
  readonly agents?: readonly HostedAgent[]
  readonly settings?: Partial<NodeSettings>
  readonly store?: FakeStore
  /** What survives its restarts beside its store. */
  readonly ledger?: Ledger
  /** Text of a policy file. */
  readonly policy?: string
  /** What it is made of in place of the world's clock, an even chance and a compiler of its own. */
  readonly parts?: Partial<
    Pick<NodeDeps, 'clock' | 'chance' | 'compileSchema' | 'givenAddresses' | 'lastFault' | 'reach'>
  >
  /** What its API shows of push notifications. Default: it sends none. */
  readonly push?: () => PushAdmin | null
  /** The contexts of its API. Default: it has no gateway. */
  readonly contexts?: () => ContextStore | null
}

/** Several whole nodes in one process, on a net, a log and a clock that the test holds. */
export class World {
  readonly clock: ManualClock
  readonly net: FakeNet
  readonly log: FakeLog
  readonly streams: StreamNet
  readonly #t: Pick<Assert, 'teardown'>
  readonly #ids = new Map<string, IdSource>()

  /** At the end of the test all its nodes close. */
  constructor(
    t: Pick<Assert, 'teardown'>,
    {
      clock = new ManualClock(),
      net = new FakeNet(),
      log = new FakeLog(founded())
    }: Partial<Pick<World, 'clock' | 'net' | 'log'>> = {}
  ) {
    this.#t = t
    this.clock = clock
    this.net = net
    this.log = log
    this.streams = new StreamNet(net)
  }

  /** The owner's node, L0. */
  owner(options: FakeNodeOptions = {}): Promise<FakeNode> {
    return this.start(actor('owner'), options)
  }

  /** A member's node: admitted by the owner on these terms (L1 unless told otherwise), started, linked to nobody. */
  async member(
    name: string,
    options: FakeNodeOptions & { readonly terms?: Partial<InviteTerms> } = {}
  ): Promise<FakeNode> {
    const owner = actor('owner')
    const terms = inviteTerms(`owner/${name}`, options.terms)
    this.log.model.invite(owner, terms)
    this.log.model.admit(owner, actor(name), terms)
    this.log.changed()
    return this.start(actor(name), options)
  }

  /** Starts the node of a member. */
  async start(
    node: Actor,
    {
      agents = [],
      settings = {},
      store = new FakeStore(),
      ledger = createMemoryLedger(),
      policy: policyText = '',
      parts = {},
      push = () => null,
      contexts = () => null
    }: FakeNodeOptions = {}
  ): Promise<FakeNode> {
    const { log } = this
    const clock = parts.clock ?? this.clock
    const membership = membershipOf(log, node)
    const links = this.net.linksOf(node.id, membership.certificate)
    const source = new FakeSource(agents)
    const audit = new FakeAudit()
    const policy = new FakePolicy(policyText)
    const lines: string[] = []
    const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => lines.push(line) })
    const ids = this.#idsOf(node.name)
    const core = createNode({
      clock,
      ids,
      chance: parts.chance ?? (() => 0.5),
      ...(parts.lastFault === undefined ? {} : { lastFault: parts.lastFault }),
      ...(parts.reach === undefined ? {} : { reach: parts.reach }),
      ledger,
      sign: node.sign,
      verify,
      hash,
      secret: () => hash(utf8(`secret of ${ids.next('secret')}`)),
      compileSchema: parts.compileSchema ?? createSchemaCompiler(),
      toAgentJson: (value) => value,
      telemetry,
      audit,
      problems: () => [],
      logState: { problems: () => [], onChange: () => () => {} },
      store,
      membership,
      links,
      givenAddresses: parts.givenAddresses ?? memoryAddresses(),
      log: log.of(node),
      pairing: {
        create: ({ tier, admin, uses, ttlMs, sandboxId }) => {
          const createdAt = clock.now()
          const sandbox = sandboxId === null ? {} : { sandboxId }
          const terms = { tier, admin, uses, createdAt, expiresAt: createdAt + ttlMs, ...sandbox }
          return {
            terms: inviteTerms(`${node.name}/${log.submitted.length}`, terms),
            code: 'code'.repeat(10),
            shortCode: null
          }
        },
        announced: () => Promise.resolve(),
        close: () => Promise.resolve()
      },
      documents: this.streams.of(node.id),
      agents: source,
      policy,
      settings: { ...SETTINGS, ...settings },
      process: {
        pid: 1,
        home: '/home',
        network: 'local',
        version: '0.0.0',
        socket: '/home/control.sock',
        startedAt: clock.now()
      }
    })
    this.#t.teardown(() => core.close())
    await core.start()
    const host = {
      node: core,
      config: { path: '/home/config.yaml', config: {} },
      stop: () => {},
      tools: NO_SERVERS,
      push,
      contexts,
      findRemote: () => Promise.reject(new NodeError('INTERNAL', 'nobody to ask here')),
      backup: () => Promise.reject(new NodeError('INTERNAL', 'no backup here')),
      isStopping: () => false,
      reload: () => null,
      oauth: () => null,
      http: () => null
    }
    return {
      name: node.name,
      id: node.id,
      actor: node,
      core,
      links,
      source,
      store,
      ledger,
      audit,
      policy,
      lines,
      counted: (name, label = null) =>
        telemetry.snapshot().counters.find((one) => one.name === name && one.label === label)?.value ?? 0,
      api: (principal = {}) =>
        createApi(host, {
          kind: 'operator',
          name: 'operator',
          tier: membership.certificate().body.maxTier,
          sandboxId: null,
          scopes: ['read', 'send', 'admin'],
          ...principal
        })
    }
  }

  /** The ids of a node go on when it starts again: no two things ever have one. */
  #idsOf(name: string): IdSource {
    const ids = this.#ids.get(name) ?? prefixed(name)
    this.#ids.set(name, ids)
    return ids
  }

  /** Links nodes, each with each, and lets them tell of their cards. */
  async link(...nodes: readonly FakeNode[]): Promise<void> {
    for (const [index, a] of nodes.entries()) for (const b of nodes.slice(index + 1)) this.net.connect(a.id, b.id)
    await this.settle()
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    this.streams.changed()
    await this.net.idle()
    while (this.clock.isDue) {
      this.clock.advance(0)
      await this.net.idle()
    }
  }

  /** Lets time pass, in steps short enough for every timer to have its consequences. */
  async pass(ms: number, stepMs = 250): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs))
      await this.settle()
    }
  }
}

/** The cards of another node that a node knows: `id revision`, sorted. */
export function knownCards(node: FakeNode, other: FakeNode): string[] {
  return node.core.registry
    .ofNode(other.id)
    .map(({ id, revision }) => `${id} ${revision}`)
    .sort()
}

function prefixed(name: string): ReturnType<typeof countingIds> {
  const ids = countingIds()
  return { next: (prefix) => `${ids.next(prefix)}_${name}`.slice(0, 40) }
}

/** Addresses of peers, without a home. */
export function memoryAddresses(): GivenAddresses {
  const all = new Map<NodeId, Set<string>>()
  const of = (peer: NodeId): Set<string> => all.get(peer) ?? new Set()
  return {
    list: (peer) => [...of(peer)].map((address) => ({ address, fault: null })),
    add: async (peer, address) => {
      const isNew = !of(peer).has(address)
      all.set(peer, of(peer).add(address))
      return isNew
    },
    remove: async (peer, address) => of(peer).delete(address)
  }
}
