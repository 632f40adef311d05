import { z } from 'zod'
import { isRecord } from '../kit/json.js'
import { OPERATOR, RESERVED_ID } from '../kit/names/rule.js'
import { parseDuration, parseSize } from '../kit/units.js'
import {
  checkReferences,
  headers,
  HIDDEN,
  hideValues,
  httpUrlWithReferences,
  shownUrl,
  text,
  unit
} from './entry-values.js'

/** MCP servers of one config. */
export const MAX_MCP_SERVERS = 32

const DAY_MS = 86_400_000
const MIB = 1_048_576
const MAX_OUTPUT_BYTES = 16 * MIB

/** One MCP server whose tools this node offers, as the config file names it. */
export interface McpServerSetting {
  /** Program and arguments of a server on stdio, `${...}` as written; null for one that is reached by `url`. */
  readonly command: readonly string[] | null
  /** Variables of the program; `env:NAME` and `${NAME}` take those of the node. */
  readonly env: Readonly<Record<string, string>>
  /** Where the program runs, as it was written; null: the directory of the config file. */
  readonly cwd: string | null
  /** Address of a server on streamable HTTP, `${...}` as written; null for a program. */
  readonly url: string | null
  /** Headers of each request; `env:NAME` and `${NAME}` take variables of the node. */
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

/** A value that may hold `${...}`; numbers and booleans count as text. */
const programText = z
  .union([z.string().max(32_768), z.number(), z.boolean()], { error: 'must be text' })
  .transform(String)
  .superRefine(checkReferences)

const variables = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name that an environment variable may have'), programText)
  .default({})

const COMMAND = 'must be a program, or a list of the program and its arguments: [program, argument]'
/** Words of a command line. */
const MAX_WORDS = 256

/** A program as one text has its arguments in `args`; a list has them behind the program, and takes more in `args`. */
const command = z
  .union([z.string(), z.array(z.unknown())], COMMAND)
  .transform((given) => (typeof given === 'string' ? [given] : given))
  .pipe(z.array(programText).min(1, COMMAND).max(MAX_WORDS))
  .superRefine(([program = ''], context) => {
    if (isCommandLine(program)) context.addIssue('must be a program alone; its arguments go into args')
  })

/** Names of transports in the files of MCP clients. */
const TRANSPORTS = {
  stdio: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamable_http: 'http',
  streamablehttp: 'http'
} as const

const transport = z
  .string('must be text')
  .transform((name) => name.toLowerCase())
  .pipe(
    z.enum(Object.keys(TRANSPORTS) as (keyof typeof TRANSPORTS)[], {
      error: ({ input }) =>
        input === 'sse'
          ? 'is a transport that MCP has replaced; give the address of the server for streamable HTTP, with type http'
          : 'must be stdio, http or streamable-http'
    })
  )
  .transform((name) => TRANSPORTS[name])

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
  maxOutput: unit('must be a size such as 64KiB or 1MiB, at most 16MiB', parseSize, [1, MAX_OUTPUT_BYTES]).default(
    10 * MIB
  )
}

/** sha256 of the only accepted version. */
export const pin = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a sha256: 64 of 0-9 a-f')
  .nullable()
  .default(null)

const entry = z
  .strictObject({
    type: transport.optional(),
    command: command.optional(),
    args: z.array(programText, 'must be a list of arguments: [argument, argument]').max(MAX_WORDS).optional(),
    env: variables,
    cwd: text(4096).superRefine(checkReferences).optional(),
    url: httpUrlWithReferences.optional(),
    headers,
    ...power,
    ...bounds,
    tools: z.array(text(128)).min(1, 'must name a tool').max(512).nullable().default(null),
    idempotent: z.array(text(128)).max(2000).default([]),
    pin
  })
  .superRefine((one, context) => {
    const wrong = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message })
    if (one.command === undefined && one.url === undefined)
      context.addIssue('needs command (a program) or url (an HTTP server)')
    if (one.command !== undefined && one.url !== undefined) wrong('url', 'excludes command: a server has one of them')
    if (one.command === undefined && one.args !== undefined) wrong('args', 'goes with command only')
    if (one.command === undefined && Object.keys(one.env).length > 0) wrong('env', 'goes with command only')
    if (one.command === undefined && one.cwd !== undefined) wrong('cwd', 'goes with command only')
    if (one.url === undefined && Object.keys(one.headers).length > 0) wrong('headers', 'go with url only')
    if (one.type === 'stdio' && one.command === undefined) wrong('type', 'stdio needs command')
    if (one.type === 'http' && one.url === undefined) wrong('type', 'http needs url')
  })
  .transform(
    ({ command: program, args = [], cwd, url: address, timeout, maxOutput, ...rest }): McpServerSetting => ({
      ...withoutType(rest),
      command: program === undefined ? null : [...program, ...args],
      cwd: cwd ?? null,
      url: address ?? null,
      timeoutMs: timeout,
      maxOutputBytes: maxOutput
    })
  )

/** The transport follows from `command` and `url`. */
function withoutType<T extends { type?: unknown }>({ type: _type, ...rest }: T): Omit<T, 'type'> {
  return rest
}

/** Is it a program of the PATH with arguments? A path may hold spaces. */
function isCommandLine(program: string): boolean {
  return program.trim() === '' || /^[^\s/\\]+\s+\S/.test(program)
}

const NAME = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/
const NAME_MAX = 32

/** Name of a server, which is the id of its agent. */
export const serverName: z.ZodType<string, string> = z
  .string()
  .max(NAME_MAX, `must be a name of at most ${NAME_MAX} characters`)
  .refine((name) => NAME.test(name), {
    error: ({ input }) => {
      const near = serverNameOf(String(input))
      return `must be a name of a-z, 0-9 and single - or _ between them${near === null ? '' : `; write ${near}`}`
    }
  })
  .refine((name) => name !== OPERATOR, RESERVED_ID)

/**
 * The nearest allowed name of a server with another name, e.g. of other clients; null when no letter or digit of ASCII
 * is in it.
 */
export function serverNameOf(given: string): string | null {
  const near = given
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/[-_]*-[-_]*/g, '-')
    .replace(/_+/g, '_')
    .replace(/^[-_]+/, '')
    .slice(0, NAME_MAX)
    .replace(/[-_]+$/, '')
  return near === '' || near === OPERATOR ? null : near
}

/** The names whose capabilities would have the same names: they differ in `-` and `_` alone. */
function sameNames(names: readonly string[]): readonly [string, string] | null {
  for (const [i, name] of names.entries()) {
    const other = names.slice(0, i).find((one) => one.replaceAll('_', '-') === name.replaceAll('_', '-'))
    if (other !== undefined) return [other, name]
  }
  return null
}

/** The map of servers by name. */
export const mcpServersSchema: z.ZodType<Readonly<Record<string, McpServerSetting>>> = z
  .record(serverName, entry, 'must be a mapping of server names')
  .refine((servers) => Object.keys(servers).length <= MAX_MCP_SERVERS, `has more than ${MAX_MCP_SERVERS} servers`)
  .superRefine((servers, context) => {
    const same = sameNames(Object.keys(servers))
    if (same === null) return
    context.addIssue({
      code: 'custom',
      path: [same[1]],
      message: `differs from ${same[0]} in - and _ alone; choose another name`
    })
  })

/**
 * The servers for display: values of variables and headers, arguments after the program and the query of a URL are
 * hidden.
 */
export function shownServers(value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value as Record<string, McpServerSetting>).map(([name, one]) => [name, shownServer(one)])
  )
}

function shownServer(one: McpServerSetting): McpServerSetting {
  return {
    ...one,
    command:
      one.command?.map((word, i, words) => (i > 0 && looksSecret(word, words[i - 1] ?? '') ? HIDDEN : word)) ?? null,
    env: hideValues(one.env),
    url: one.url === null ? null : shownUrl(one.url),
    headers: hideValues(one.headers)
  }
}

/**
 * Places of values that are hidden for display: these may be secrets, as they do not come from the environment of the
 * node.
 */
export function secretPlaces(one: McpServerSetting): string[] {
  const server = shownServer(one)
  const hiddenOf = (key: string, values: Readonly<Record<string, string>>): string[] =>
    Object.entries(values).flatMap(([name, value]) => (value === HIDDEN ? [`${key}.${name}`] : []))
  const args = server.command?.includes(HIDDEN) === true ? ['args'] : []
  return [
    ...hiddenOf('env', server.env),
    ...hiddenOf('headers', server.headers),
    ...args,
    ...(server.url === one.url ? [] : ['url'])
  ]
}

/** A name that says that its value is a secret. */
const SECRET_NAME = String.raw`(?:key|token|secret|passw|credential|cookie|auth|(?<![a-z])(?:pass|pwd|pat)(?![a-z]))[\w-]*`
const SECRET_FLAG = new RegExp(`^-{1,2}[\\w-]*${SECRET_NAME}$`, 'i')
/** `name=value`, also in a text of several, or `Name: value`. */
const SECRET_VALUE = new RegExp(`${SECRET_NAME}["']?(?:=|:\\s)\\s*\\S`, 'i')
const HEADER_FLAG = /^(?:-H|--headers?)$/
/** Variables of the environment, each with the scheme of a header before it. */
const REFERENCES = /(?:(?:Bearer|Basic|Token) )?\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}/g
/** A URL with a password, or with a query. */
const SECRET_URL = /[a-z]:\/\/(?:[^/@\s]*:[^/@\s]+@|\S+\?\S)/i

/**
 * An argument that names itself a secret, follows a flag that does, or is a header or a URL that holds one; without its
 * references.
 */
function looksSecret(given: string, before: string): boolean {
  const word = given.replaceAll(REFERENCES, '')
  if (SECRET_VALUE.test(word) || SECRET_URL.test(word)) return true
  if (HEADER_FLAG.test(before)) return /:\s*\S/.test(word)
  return SECRET_FLAG.test(before) && word !== '' && !word.startsWith('-')
}
