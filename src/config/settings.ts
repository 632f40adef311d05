import { z } from 'zod'
import { nameFault, nameRule, NODE_NAME } from '../kit/names/rule.js'
import { A2A_AGENTS } from './a2a-agents.js'
import { type AgentImportSetting, agentImportsSchema, MAX_AGENT_IMPORTS } from './agent-imports.js'
import {
  GUARDRAILS,
  type GuardrailSettings,
  guardrailsSchema,
  MAX_DENIED,
  MAX_GUARDED,
  MAX_PATTERN,
  ANONYMOUS_LIMIT,
  RATE_LIMIT,
  type RateLimitSetting,
  rateLimitSchema,
  WRONG_TOKEN_LIMIT
} from './guardrails.js'
import { type LlmProviderSetting, llmProvidersSchema, MAX_LLM_PROVIDERS, shownProviders } from './llm-providers.js'
import { MAX_OAUTH_SCOPES, OAUTH, type OAuthSetting, oauthSchema } from './oauth.js'
import { FAVORITES, RESULT_TOKENS } from './mcp-tools.js'
import { MAX_MCP_SERVERS, type McpServerSetting, mcpServersSchema, shownServers } from './mcp-servers.js'
import { DISCOVERY, TCP } from './network/tcp.js'
import { WEBSOCKET } from './network/websocket.js'
import { NOTIFY } from './notify.js'
import { PROVIDER } from './provider.js'
import { GRPC_LISTEN, GRPC_PUBLIC, hostPort, listenSchema, PUBLIC_URL_ALLOWED, publicUrlSchema } from './public-url.js'

/**
 * Form of a setting in YAML and in the environment. `duration` is a number of milliseconds or `10s`; lists are
 * comma-separated in the environment. `servers` and `mapping` are mappings, in the file only. `servers` names programs
 * to run or receivers of secrets; a list of words cannot express a `mapping`.
 */
export type SettingForm = 'text' | 'number' | 'duration' | 'boolean' | 'list' | 'directories' | 'servers' | 'mapping'

/** Is a setting of this form taken from the file alone? */
export function isFileOnly(form: SettingForm): boolean {
  return form === 'servers' || form === 'mapping'
}

/** One setting: its check, default and words. */
export interface Setting<T> {
  readonly schema: z.ZodType<T>
  readonly fallback: T
  readonly form: SettingForm
  /** null for values without a unit. */
  readonly unit: string | null
  /** The allowed values, for people. */
  readonly allowed: string
  readonly about: string
  /** The exact fault of a value; absent or null: `allowed` describes it. */
  readonly fault?: (value: unknown) => string | null
  /** The value for display; absent: as it is. */
  readonly show?: (value: unknown) => unknown
}

/** Settings by section and key. */
export type SettingTable = Readonly<Record<string, Readonly<Record<string, Setting<unknown>>>>>

/** As many as a card has room for. */
const LABELS_MAX = 32
const DAY_MS = 86_400_000

function choice<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: T[number],
  about: string
): Setting<T[number]> {
  return {
    schema: z.enum(values),
    fallback,
    form: 'text',
    unit: null,
    allowed: values.join(' | '),
    about
  }
}

function count(fallback: number, [min, max]: readonly [number, number], about: string): Setting<number> {
  return {
    schema: z.int().min(min).max(max),
    fallback,
    form: 'number',
    unit: null,
    allowed: `a whole number from ${min} to ${max}`,
    about
  }
}

function duration(fallback: number, [min, max]: readonly [number, number], about: string): Setting<number> {
  const allowed = `milliseconds from ${min} to ${max}, or a duration such as 10s, 5m, 2h`
  return { schema: z.int().min(min).max(max), fallback, form: 'duration', unit: 'ms', allowed, about }
}

function flag(fallback: boolean, about: string): Setting<boolean> {
  return { schema: z.boolean(), fallback, form: 'boolean', unit: null, allowed: 'true | false', about }
}

function directories(about: string): Setting<readonly string[]> {
  const allowed = 'a list of directories (absolute, ~/..., or relative to the config file), at most 64'
  return {
    schema: z.array(z.string().min(1).max(4096)).max(64),
    fallback: [],
    form: 'directories',
    unit: null,
    allowed,
    about
  }
}

function rate(fallback: RateLimitSetting, about: string): Setting<RateLimitSetting> {
  const allowed = 'a mapping of perMinute (1 to 1000000) and burst (1 to 100000); in the config file only'
  return { schema: rateLimitSchema(fallback), fallback, form: 'mapping', unit: null, allowed, about }
}

function define<T>(one: Setting<T>): Setting<T> {
  return one
}

/**
 * Every setting there is. The config file, the environment, `config show` and the type {@link Config} follow from it.
 */
export const SETTINGS = {
  node: {
    name: define<string | null>({
      schema: z
        .string()
        .refine((name) => nameFault(name.trim(), NODE_NAME) === null)
        .nullable(),
      fallback: null,
      form: 'text',
      unit: null,
      allowed: nameRule(NODE_NAME),
      fault: (value) => (typeof value === 'string' ? (nameFault(value.trim(), NODE_NAME)?.reason ?? null) : null),
      about: 'Name of this node in its mesh; without one the name of the machine.'
    }),
    labels: define<readonly string[]>({
      schema: z.array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/=:-]{0,63}$/)).max(LABELS_MAX),
      fallback: [],
      form: 'list',
      unit: null,
      allowed: `a list of at most ${LABELS_MAX} labels of 1 to 64 letters, digits and . _ / = : -, a letter or digit first`,
      about: 'Labels of this node, e.g. gpu or zone=eu, on the cards of its agents; plans of swarms choose by them.'
    }),
    shutdownTimeoutMs: duration(5000, [100, 10_000], 'Longest clean shutdown; after it the process ends all the same.')
  },
  network: {
    kind: choice(
      ['public', 'private', 'local'],
      'public',
      'How members find each other: the public DHT, an own bootstrap list, or this machine only.'
    ),
    bootstrap: define<readonly string[]>({
      schema: z.array(hostPort).max(32),
      fallback: [],
      form: 'list',
      unit: null,
      allowed: 'a list of host:port, at most 32',
      about: 'Bootstrap nodes of a private network.'
    }),
    serveBootstrap: define<string | null>({
      schema: hostPort.nullable(),
      fallback: null,
      form: 'text',
      unit: null,
      allowed: 'host:port under which the other machines reach this one',
      about: 'Serve a bootstrap node of a private network from this process.'
    }),
    behindNat: flag(
      false,
      'Members of a private network sit behind NAT; needs several bootstrap nodes. Without it they connect directly (LAN, VPN).'
    ),
    forward: flag(true, 'Carry messages between members that reach this node, but not each other.'),
    maxPeers: count(64, [1, 64], 'Links to members at most; the others are reached through those.'),
    joinTimeoutMs: duration(20_000, [500, DAY_MS], 'How long a join waits for an admin of the mesh to answer.'),
    giveUpMs: duration(
      60_000,
      [1000, 3_600_000],
      'A channel to a lost peer closes after this, with the messages that wait for it.'
    ),
    localPort: count(
      29_737,
      [1, 65_535],
      'Port of the bootstrap node of the local network (env A2A_NODE_LOCAL_PORT); best below 32768.'
    )
  },
  tcp: TCP,
  discovery: DISCOVERY,
  websocket: WEBSOCKET,
  agents: {
    dirs: directories('Further directories with agent files.'),
    grants: directories('Directories that the starter agent `files` may read. None by default.'),
    writeGrants: directories('Directories that the starter agent `files` may write. None by default.'),
    imports: define<Readonly<Record<string, AgentImportSetting>>>({
      schema: agentImportsSchema,
      fallback: {},
      form: 'servers',
      unit: null,
      allowed: `a mapping of at most ${MAX_AGENT_IMPORTS} names, each with dir and runtime; in the config file only`,
      about: 'Directories with sub-agent files of other clients, whose agents this node offers.'
    }),
    starters: flag(true, 'Offer the starter agents host, text and files.')
  },
  http: {
    listen: define<string | null>({
      schema: listenSchema,
      fallback: null,
      form: 'text',
      unit: null,
      allowed: '[host:]port, a port from 0 (a free one) to 65535; without a host this machine only (127.0.0.1)',
      about: 'Serve HTTP here; every request but those for public things needs a token. null: no HTTP.'
    }),
    publicUrl: define<string | null>({
      schema: publicUrlSchema,
      fallback: null,
      form: 'text',
      unit: null,
      allowed: PUBLIC_URL_ALLOWED,
      about:
        'Where clients reach the HTTP listener, as cards and OAuth name it; its host is one of http.hosts. null: where it is bound.'
    }),
    hosts: define<readonly string[]>({
      schema: z.array(z.string().regex(/^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/)).max(64),
      fallback: [],
      form: 'list',
      unit: null,
      allowed: 'a list of name or name:port, at most 64',
      about:
        'Further names under which clients reach the HTTP listener (Host header); without a port, with that of the listener.'
    }),
    origins: define<readonly string[]>({
      schema: z.array(z.string().regex(/^[a-z][a-z0-9+.-]{0,31}:\/\/[^\s/?#@A-Z]{1,253}$/)).max(64),
      fallback: [],
      form: 'list',
      unit: null,
      allowed:
        'a list of origins such as https://example.org or http://localhost:3000, in lower case and without a path, at most 64',
      about: 'Web pages that may call the HTTP listener, by their origin; they need a token too.'
    }),
    maxConnections: count(
      512,
      [1, 16_384],
      'Connections of clients at once; further ones are dropped. A stream holds one.'
    ),
    anonymousLimit: rate(
      ANONYMOUS_LIMIT,
      'Requests of one client address without a valid token, public cards included; further ones get 429 and Retry-After.'
    ),
    wrongTokenLimit: rate(
      WRONG_TOKEN_LIMIT,
      'Of them, requests with a wrong token. Valid tokens are never refused for them.'
    )
  },
  routing: {
    replies: choice(
      ['exchange', 'strict'],
      'exchange',
      'exchange lets replies back along an exchange that was let in; strict binds them by tier too.'
    )
  },
  policy: {
    approvalTimeoutMs: duration(
      300_000,
      [1000, DAY_MS],
      'How long a message waits for a person to allow it; then it is denied.'
    ),
    notify: NOTIFY
  },
  tasks: {
    requestTimeoutMs: duration(
      30_000,
      [100, DAY_MS],
      'How long a request waits for its response when the caller names no time.'
    ),
    maxInFlight: count(2048, [1, 16_384], 'Tasks in flight on this node.'),
    maxInFlightPerPeer: count(256, [1, 2048], 'Tasks in flight for one peer.')
  },
  ledger: {
    defaultTtlMs: duration(DAY_MS, [1000, 30 * DAY_MS], 'How long a request without a waiting caller lives.'),
    durability: choice(
      ['power', 'process'],
      'power',
      'Durability of an acknowledged message: power (fsynced) survives a power failure, process the end of the node.'
    ),
    maxMib: count(
      4096,
      [1, 1_048_576],
      'MiB of disk that requests on record may take; beyond it new ones are refused until old ones expire.'
    )
  },
  mcp: {
    eras: choice(
      ['both', 'legacy', 'modern'],
      'both',
      'Versions of MCP that are served: with a handshake (legacy), without one (modern), or both.'
    ),
    expose: choice(
      ['auto', 'all', 'search'],
      'auto',
      'Tools of the mesh in tools/list: every tool, or tools to find and call them; auto changes to those for a long list.'
    ),
    schemas: choice(['fitted', 'whole'], 'fitted', 'Listed input schemas: fitted to every model API, or whole.'),
    startNode: flag(true, 'MCP clients of this machine start the node when none runs; it ends after the last one.'),
    maxListedTools: count(30, [1, 20_000], 'Tools of the mesh from which on auto lists tools to find and call them.'),
    maxListedTokens: count(6000, [1, 1_000_000], 'The same by the estimated tokens of their definitions.'),
    maxResultTokens: RESULT_TOKENS,
    favorites: FAVORITES,
    servers: define<Readonly<Record<string, McpServerSetting>>>({
      schema: mcpServersSchema,
      fallback: {},
      form: 'servers',
      unit: null,
      allowed: `a mapping of at most ${MAX_MCP_SERVERS} names, each with command or url; in the config file only`,
      about: 'MCP servers whose tools this node offers, each as an agent of that name.',
      show: shownServers
    })
  },
  a2a: {
    mesh: flag(
      true,
      'Take A2A calls of members over their links: the same tasks and rules as over HTTP, for agents of this node alone.'
    ),
    grpc: GRPC_LISTEN,
    grpcPublic: GRPC_PUBLIC,
    meshInterface: flag(false, 'Name the interface over the mesh on cards over HTTP, which strict clients refuse.'),
    default: define<string | null>({
      schema: z.string().min(1).max(256).nullable(),
      fallback: null,
      form: 'text',
      unit: null,
      allowed: 'the name of an agent, of another node as agent@node',
      about:
        'Agent for messages to the node that name neither agent nor skill, and its card at the root. null: the only agent besides the starters, else the only one with the tag general.'
    }),
    provider: PROVIDER,
    guardrails: define<GuardrailSettings>({
      schema: guardrailsSchema,
      fallback: GUARDRAILS,
      form: 'mapping',
      unit: null,
      allowed: `a mapping of input and output, each with maxLength (characters, at most ${MAX_GUARDED}) and deny (at most ${MAX_DENIED} patterns in RE2 syntax of at most ${MAX_PATTERN} characters); in the config file only`,
      about: 'Rules of the gateway for texts to agents (input) and back (output).'
    }),
    rateLimit: rate(
      RATE_LIMIT,
      'Calls of one token to the gateway over all protocols; further ones get 429 and Retry-After.'
    ),
    oauth: define<OAuthSetting>({
      schema: oauthSchema,
      fallback: OAUTH,
      form: 'mapping',
      unit: null,
      allowed: `a mapping of enabled, issuer (the URL by which clients reach this node), accessTokenSeconds (60 to 3600), refreshTokenDays and keyDays (1 to 365) and scopes (at most ${MAX_OAUTH_SCOPES}, each with may, tier and capabilities); in the config file only`,
      about: 'Give tokens to registered clients by OAuth 2.0 (docs/OAUTH.md). Off by default.'
    }),
    allowPrivate: define<readonly string[]>({
      schema: z.array(z.string().regex(/^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/)).max(64),
      fallback: [],
      form: 'list',
      unit: null,
      allowed: 'a list of host or host:port as addresses have them, at most 64',
      about:
        'Hosts of this machine or its own networks that A2A agents and push notifications may reach; all others must be public.'
    }),
    agents: A2A_AGENTS
  },
  llm: {
    providers: define<Readonly<Record<string, LlmProviderSetting>>>({
      schema: llmProvidersSchema,
      fallback: {},
      form: 'servers',
      unit: null,
      allowed: `a mapping of at most ${MAX_LLM_PROVIDERS} names, each with url; in the config file only`,
      about: 'Servers with the chat completions of OpenAI that agents of the runtime llm may use.',
      show: shownProviders
    })
  },
  tools: {
    defaultTimeoutMs: duration(
      30_000,
      [100, DAY_MS],
      'How long the caller of a tool waits for its answer, unless the tool says otherwise.'
    ),
    maxPayloadBytes: count(
      1_048_576,
      [2, 16_777_216],
      'Bytes of JSON that the arguments of one tool call, and a message of another node, may have.'
    ),
    maxStateBytes: count(
      262_144,
      [2, 16_777_216],
      'Bytes of state that one agent of a program may keep between messages.'
    ),
    adminRegistrationEnabled: flag(
      false,
      'Offer tools that register and remove tools; takes security.dynamicRegistrationEnabled as well.'
    ),
    adminPolicy: choice(
      ['deny_all', 'local_stdio_only', 'token'],
      'deny_all',
      'Callers of those: nobody, clients over stdio, or clients over HTTP with a token of this node.'
    )
  },
  resources: {
    maxConcurrentExecutions: count(10, [1, 1024], 'Calls of tools that run at once; further ones wait.')
  },
  security: {
    dynamicRegistrationEnabled: flag(
      false,
      'Let tools be registered at run time; also takes adminRegistrationEnabled.'
    ),
    allowArbitraryCodeTools: flag(false, 'Reserved: code of clients is never run.')
  },
  swarm: {
    leaseMs: duration(5000, [500, 60_000], 'An item whose agent is silent for this long goes to another one.'),
    heartbeatMs: duration(1000, [100, 30_000], 'Time between heartbeats of an item, at most half of swarm.leaseMs.'),
    deadlineMs: duration(600_000, [1000, 7 * DAY_MS], 'How long a swarm may take when its launcher names no time.')
  },
  log: {
    level: choice(['debug', 'info', 'warn', 'error'], 'info', 'Least important lines that are logged.'),
    format: choice(['text', 'json'], 'text', 'Form of log lines on stderr: text for people, json for programs.'),
    redactKeys: define<readonly string[]>({
      schema: z.array(z.string().min(1).max(64)).max(100),
      fallback: [],
      form: 'list',
      unit: null,
      allowed: 'a list of names, at most 100',
      about: 'Further names of fields whose values are never logged, beside those of passwords, tokens and keys.'
    })
  }
} as const satisfies SettingTable

type Values<T extends SettingTable> = {
  readonly [S in keyof T]: { readonly [K in keyof T[S]]: T[S][K] extends Setting<infer V> ? V : never }
}

/** The settings of one start, checked and complete. */
export type Config = Values<typeof SETTINGS> & {
  /** `section.key` of each setting that a flag, the environment or the file named; all others are defaults. */
  readonly given: ReadonlySet<string>
}

/** Where a value came from; `remembered`: a flag of the last start. */
export type ConfigSource = 'flag' | 'remembered' | 'env' | 'file' | 'default'

/** One setting with its section and key. */
export interface NamedSetting {
  /** `section.key`. */
  readonly path: string
  readonly section: string
  readonly key: string
  readonly setting: Setting<unknown>
}

/** All settings in the order of the table. */
export function allSettings(table: SettingTable = SETTINGS): NamedSetting[] {
  return Object.entries(table).flatMap(([section, keys]) =>
    Object.entries(keys).map(([key, setting]) => ({ path: `${section}.${key}`, section, key, setting }))
  )
}

/** A value of a setting for display, without secrets. */
export function shownValue({ setting }: NamedSetting, value: unknown): unknown {
  return setting.show === undefined ? value : setting.show(value)
}

/** The settings for display, without secrets. */
export function shownConfig(config: Config): Record<string, Record<string, unknown>> {
  const values = config as unknown as Record<string, Record<string, unknown>>
  const sections: Record<string, Record<string, unknown>> = {}
  for (const one of allSettings())
    (sections[one.section] ??= {})[one.key] = shownValue(one, values[one.section]?.[one.key])
  return sections
}

/** `swarm.leaseMs` becomes `A2A_NODE_SWARM_LEASE_MS`. */
export function envName(path: string): string {
  return `A2A_NODE_${path
    .replace('.', '_')
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .toUpperCase()}`
}
