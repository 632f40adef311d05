import path from 'node:path'
import { isRecord } from '../kit/json.js'
import { entryFaults } from './entry-values.js'
import { mcpServersSchema, serverNameOf } from './mcp-servers.js'
import { neededVariables, rewriteReferences } from './references.js'

/** Where the file of an MCP client is from. */
export interface ImportOrigin {
  /** Directory of the file. */
  readonly dir: string
  /** Directory of the project that the file belongs to; null for a file of the user. */
  readonly workspace: string | null
}

/** A server of another client in the form of `mcp.servers`; or the reason why it is not taken. */
export type ServerImport =
  | {
      readonly ok: true
      readonly name: string
      readonly entry: Readonly<Record<string, unknown>>
      /** Variables that must be set in the environment of the node. */
      readonly variables: readonly string[]
      /** Keys that this node has no use for. */
      readonly ignored: readonly string[]
    }
  | { readonly ok: false; readonly status: 'skipped' | 'refused'; readonly reason: string }

const TAKEN = new Set(['type', 'transport', 'command', 'args', 'env', 'cwd', 'url', 'serverUrl', 'httpUrl', 'headers', 'http_headers'])
const CODEX = ['env_http_headers', 'bearer_token_env_var', 'env_vars', 'enabled_tools', 'tool_timeout_sec', 'disabled', 'enabled']
for (const key of [...CODEX, 'includeTools', 'timeout']) TAKEN.add(key)

/** Translates a server of Claude, Cursor, VS Code, Gemini CLI or Codex. `${input:id}` becomes a variable, `${workspaceFolder}` the project. */
export function importedServer(given: string, from: unknown, origin: ImportOrigin): ServerImport {
  if (!isRecord(from)) return refused('is no object')
  if (from['disabled'] === true || from['enabled'] === false) return { ok: false, status: 'skipped', reason: 'is turned off there' }
  if (isThisNode(from)) return { ok: false, status: 'skipped', reason: 'is this node itself' }
  const reason = lossOf(from)
  if (reason !== null) return refused(reason)
  const name = serverNameOf(given)
  if (name === null) return refused('has a name that this node cannot have: rename it in the file')
  const entry = mapTexts(entryOf(from, origin), (text) => rewritten(text, origin)) as Record<string, unknown>
  const checked = mcpServersSchema.safeParse({ [name]: entry })
  if (!checked.success) {
    const [first] = entryFaults(checked.error)
    return refused(`${(first?.path ?? []).slice(1).map(String).join('.')} ${first?.reason ?? ''}`.trim())
  }
  const { command, env, cwd, url, headers } = checked.data[name] ?? {}
  const texts = [...(command ?? []), ...Object.values(env ?? {}), cwd ?? '', url ?? '', ...Object.values(headers ?? {})]
  const variables = [...new Set(texts.flatMap(neededVariables))]
  return { ok: true, name, entry, variables, ignored: Object.keys(from).filter((key) => !TAKEN.has(key)) }
}

function refused(reason: string): ServerImport {
  return { ok: false, status: 'refused', reason }
}

/** `a2a-node connect` writes this node into such files: it would start itself. */
function isThisNode({ command, args }: Readonly<Record<string, unknown>>): boolean {
  const words = [command, args].flat(2).map(String)
  const at = words.indexOf('mcp')
  return at > 0 && words[at + 1] === 'serve' && words.slice(0, at).some((word) => /(?:^|[/\\])a2a-node(?:\.js|\.cmd|\.exe)?$/i.test(word))
}

/** A part of an entry without which the server would be another one. */
function lossOf(from: Readonly<Record<string, unknown>>): string | null {
  if (from['envFile'] !== undefined) return 'takes variables of a file (envFile): write them into env'
  for (const key of ['excludeTools', 'disabled_tools']) {
    if (Array.isArray(from[key]) && from[key].length > 0)
      return `leaves out tools (${key}), which tools of mcp.servers cannot say: add it by hand`
  }
  return null
}

function entryOf(from: Readonly<Record<string, unknown>>, { dir, workspace }: ImportOrigin): Record<string, unknown> {
  const { command, args } = from
  const url = from['httpUrl'] ?? from['url'] ?? from['serverUrl']
  const cwd = typeof from['cwd'] === 'string' && !from['cwd'].startsWith('${') ? path.resolve(workspace ?? dir, from['cwd']) : from['cwd']
  const isProgram = command !== undefined
  const entry = {
    type: from['type'] ?? from['transport'],
    command,
    args: Array.isArray(args) && args.length === 0 ? undefined : args,
    env: filled({ ...record(from['env']), ...forwarded(from['env_vars']) }),
    cwd: cwd ?? (isProgram ? (workspace ?? undefined) : undefined),
    url,
    headers: filled(headersOf(from)),
    tools: from['enabled_tools'] ?? from['includeTools'],
    timeout: timeoutOf(from)
  }
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined))
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}

function filled(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  return Object.keys(value).length === 0 ? undefined : value
}

/** Codex: variables of its own environment, as names or `{name}`. */
function forwarded(given: unknown): Record<string, string> {
  const names = Array.isArray(given) ? given.map((one: unknown) => String(isRecord(one) ? one['name'] : one)) : []
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]))
}

function headersOf(from: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const named = Object.entries(record(from['env_http_headers'])).map(([header, name]) => [header, `\${${String(name)}}`])
  const bearer = from['bearer_token_env_var']
  return {
    ...record(from['headers']),
    ...record(from['http_headers']),
    ...Object.fromEntries(named),
    ...(typeof bearer === 'string' ? { authorization: `Bearer \${${bearer}}` } : {})
  }
}

/** Seconds of Codex, or milliseconds; a small number may be seconds, and is not taken. */
function timeoutOf(from: Readonly<Record<string, unknown>>): number | undefined {
  const seconds = from['tool_timeout_sec']
  if (typeof seconds === 'number' || typeof seconds === 'bigint') return Math.ceil(Number(seconds) * 1000)
  return typeof from['timeout'] === 'number' && from['timeout'] >= 1000 ? from['timeout'] : undefined
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapTexts(one, change)]))
}

function rewritten(text: string, { workspace }: ImportOrigin): string {
  return rewriteReferences(text, (inner) => {
    if (inner.startsWith('input:')) return `\${${variableOf(inner.slice('input:'.length))}}`
    if (workspace === null) return null
    if (inner === 'workspaceFolder') return workspace
    return inner === 'workspaceFolderBasename' ? path.basename(workspace) : null
  })
}

/** The variable for a question of VS Code: `api-key` is API_KEY. */
function variableOf(id: string): string {
  const name = id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
  return /^[A-Z_]/.test(name) ? name : `INPUT_${name}`
}
