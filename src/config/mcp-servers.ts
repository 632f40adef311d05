import { z } from 'zod'
import { isRecord } from '../kit/json.js'
import { parseDuration, parseSize } from '../kit/units.js'
import { headers, HIDDEN, hideValues, httpUrl, shownUrl, text, unit } from './entry-values.js'

/** MCP servers of one config. */
export const MAX_MCP_SERVERS = 32

const DAY_MS = 86_400_000
const MIB = 1_048_576
const MAX_OUTPUT_BYTES = 16 * MIB

/** One MCP server whose tools this node offers, as the config file names it. */
export interface McpServerSetting {
  /** Program and arguments of a server on stdio; null for one that is reached by `url`. */
  readonly command: readonly string[] | null
  /** Variables of the program; `env:NAME` takes that of the node. */
  readonly env: Readonly<Record<string, string>>
  /** Where the program runs, as it was written; null: the directory of the config file. */
  readonly cwd: string | null
  /** Address of a server on streamable HTTP; null for a program. */
  readonly url: string | null
  /** Headers of each request; `env:NAME` takes a variable of the node. */
  readonly headers: Readonly<Record<string, string>>
  /** Of its agent; null: the certificate's. */
  readonly tier: 'L0' | 'L1' | 'L2' | 'L3' | null
  readonly sandbox: string | null
  /** Milliseconds that a call may take. */
  readonly timeoutMs: number
  /** Globs of the tools that are offered (`*` any text); null: all. */
  readonly tools: readonly string[] | null
  /** Names of tools that may be repeated after an unknown outcome. */
  readonly idempotent: readonly string[]
  /** Side effect of its tools for the policy. */
  readonly sideEffect: 'none' | 'read' | 'write' | 'exec'
  /** Calls at once. */
  readonly concurrency: number
  /** Bytes of one result. */
  readonly maxOutputBytes: number
  /** sha256 of the only tool list that is offered; null: the list that is seen first. */
  readonly pin: string | null
}

const variables = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name that an environment variable may have'),
    z.union([z.string().max(32_768), z.number(), z.boolean()], { error: 'must be text' }).transform(String)
  )
  .default({})

const COMMAND = 'must be a list of the program and its arguments: [program, argument]'

/** Tier and sandbox of an agent that represents others, as in agent files. */
export const power = {
  tier: z.enum(['L0', 'L1', 'L2', 'L3'], 'must be L0, L1, L2 or L3').nullable().default(null),
  sandbox: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits and . _ -')
    .nullable()
    .default(null)
}

/** Limits of its calls, and their side effect for the policy. */
export const bounds = {
  timeout: unit('must be a duration such as 10s or 5m, at most 24h', parseDuration, [1, DAY_MS]).default(60_000),
  sideEffect: z.enum(['none', 'read', 'write', 'exec'], 'must be none, read, write or exec').default('exec'),
  concurrency: z.int('must be a whole number').min(1, 'must be at least 1').max(256, 'must be at most 256').default(4),
  maxOutput: unit('must be a size such as 64KiB or 1MiB, at most 16MiB', parseSize, [1, MAX_OUTPUT_BYTES]).default(10 * MIB)
}

/** sha256 of the only accepted version. */
export const pin = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a sha256: 64 of 0-9 a-f')
  .nullable()
  .default(null)

const entry = z
  .strictObject({
    command: z
      .array(z.union([z.string().max(32_768), z.number(), z.boolean()], { error: 'must be text' }).transform(String), COMMAND)
      .min(1, COMMAND)
      .max(256)
      .optional(),
    env: variables,
    cwd: text(4096).optional(),
    url: httpUrl.optional(),
    headers,
    ...power,
    ...bounds,
    tools: z.array(text(128)).min(1, 'must name a tool').max(512).nullable().default(null),
    idempotent: z.array(text(128)).max(2000).default([]),
    pin
  })
  .superRefine((one, context) => {
    const wrong = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message })
    if (one.command === undefined && one.url === undefined) context.addIssue('needs command (a program) or url (an HTTP server)')
    if (one.command !== undefined && one.url !== undefined) wrong('url', 'excludes command: a server has one of them')
    if (one.command === undefined && Object.keys(one.env).length > 0) wrong('env', 'goes with command only')
    if (one.command === undefined && one.cwd !== undefined) wrong('cwd', 'goes with command only')
    if (one.url === undefined && Object.keys(one.headers).length > 0) wrong('headers', 'go with url only')
  })
  .transform(
    ({ command, cwd, url: address, timeout, maxOutput, ...rest }): McpServerSetting => ({
      ...rest,
      command: command ?? null,
      cwd: cwd ?? null,
      url: address ?? null,
      timeoutMs: timeout,
      maxOutputBytes: maxOutput
    })
  )

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** Name of a server, which is the id of its agent. */
export const serverName: z.ZodType<string, string> = z
  .string()
  .max(32, 'must be a name of at most 32 characters')
  .regex(NAME, 'must be a name of a-z, 0-9 and single dashes between them')
  .refine((name) => name !== 'operator', 'is reserved by the node; choose another name')

/** The map of servers by name. */
export const mcpServersSchema: z.ZodType<Readonly<Record<string, McpServerSetting>>> = z
  .record(serverName, entry, 'must be a mapping of server names')
  .refine((servers) => Object.keys(servers).length <= MAX_MCP_SERVERS, `has more than ${MAX_MCP_SERVERS} servers`)

/** The servers for display: values of variables and headers, arguments after the program and the query of a URL are hidden. */
export function shownServers(value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value as Record<string, McpServerSetting>).map(([name, one]) => [name, shownServer(one)]))
}

function shownServer(one: McpServerSetting): unknown {
  return {
    ...one,
    command:
      one.command === null ? null : one.command.map((word, i) => (i > 0 && looksSecret(word, one.command?.[i - 1] ?? '') ? HIDDEN : word)),
    env: hideValues(one.env),
    url: one.url === null ? null : shownUrl(one.url),
    headers: hideValues(one.headers)
  }
}

/** An argument that names itself a secret, or follows a flag that does. */
function looksSecret(word: string, before: string): boolean {
  const flag = /^-{1,2}[\w-]*(?:key|token|secret|password|auth)[\w-]*$/i
  return (flag.test(before) && !word.startsWith('-')) || /(?:key|token|secret|password|auth)[\w-]*=/i.test(word)
}
