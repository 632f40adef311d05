import path from 'node:path'
import { isRecord, jsonFault, RESULT_LIMITS } from '../kit/json.js'
import { withoutNulls } from '../kit/schema/nulls.js'
import { entryFaults } from './entry-values.js'
import { mcpServersSchema, type McpServerSetting, serverNameOf } from './mcp-servers.js'
import { literalText, neededVariables, rewriteReferences } from './references.js'

/** Where the file of an MCP client is from. */
export interface ImportOrigin {
  /** Directory of the file. */
  readonly dir: string
  /** Directory of the project that the file belongs to; null for a file of the user. */
  readonly workspace: string | null
  /** Does the client replace `$NAME` as well as `${NAME}`, as Gemini CLI does? null: the file may be of any client. */
  readonly hasPlainReferences: boolean | null
}

/** A server of another client in the form of `mcp.servers`; or the reason why it is not taken. */
export type ServerImport =
  | {
      readonly ok: true
      readonly name: string
      readonly entry: Readonly<Record<string, unknown>>
      /** The same as the config gives it. */
      readonly setting: McpServerSetting
      /** Variables that must be set in the environment of the node. */
      readonly variables: readonly string[]
      /** Keys that this node has no use for. */
      readonly ignored: readonly string[]
    }
  | { readonly ok: false; readonly status: 'skipped' | 'refused'; readonly reason: string }

const TAKEN = new Set([
  'type',
  'transport',
  'command',
  'args',
  'env',
  'cwd',
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
  'http_headers'
])
const CODEX = [
  'env_http_headers',
  'bearer_token_env_var',
  'env_vars',
  'enabled_tools',
  'tool_timeout_sec',
  'disabled',
  'enabled'
]
for (const key of [...CODEX, 'includeTools', 'timeout']) TAKEN.add(key)

/** Predefined variables of VS Code that neither the node nor the import resolves; `${env:file}` is none. */
const PREDEFINED = new RegExp(
  String.raw`(?<!\$)\$\{(${[
    ...['file', 'fileBasename', 'fileBasenameNoExtension', 'fileDirname', 'fileDirnameBasename', 'fileExtname'],
    ...['fileWorkspaceFolder', 'fileWorkspaceFolderBasename', 'relativeFile', 'relativeFileDirname', 'cwd'],
    ...['lineNumber', 'columnNumber', 'selectedText', 'execPath', 'defaultBuildTask', 'extensionInstallFolder']
  ].join('|')})(?::(?!-)[^}]*)?\}`
)
/** Null is absent in files of clients. */
const NULLS = { data: new Set<string>() }
/** `$NAME` as a text, and in one where names of variables stand: not in the middle of a word, as in a password. */
const PLAIN = /^\$[A-Za-z_]\w*$|(?<![\w$])\$[A-Z_][A-Z0-9_]*(?!\w)/

/**
 * Translates a server of Claude, Cursor, VS Code, Gemini CLI or Codex. `${input:id}` becomes a variable,
 * `${workspaceFolder}` the project.
 */
export function importedServer(given: string, file: unknown, origin: ImportOrigin): ServerImport {
  if (file === null) return { ok: false, status: 'skipped', reason: 'is null there' }
  const written = withoutNulls(file, NULLS)
  if (!isRecord(written)) return refused('is no object')
  const fault = jsonFault(written, RESULT_LIMITS)
  if (fault !== null) return refused(`has a value that cannot be taken: ${fault}`)
  const from = origin.hasPlainReferences === true ? mapTexts(written, withBraces) : written
  if (from['disabled'] === true || from['enabled'] === false)
    return { ok: false, status: 'skipped', reason: 'is turned off there' }
  if (isThisNode(from)) return { ok: false, status: 'skipped', reason: 'is this node itself' }
  const reason = lossOf(from) ?? otherMeaning(from) ?? openMeaning(from, origin)
  if (reason !== null) return refused(reason)
  const name = serverNameOf(given)
  if (name === null) return refused('has a name that this node cannot have: rename it in the file')
  const entry = entryOf(
    mapTexts(from, (text) => rewritten(text, origin)),
    origin
  )
  const checked = mcpServersSchema.safeParse({ [name]: entry })
  const setting = checked.data?.[name]
  if (!checked.success || setting === undefined) {
    const [first] = checked.success ? [] : entryFaults(checked.error)
    return refused(`${(first?.path ?? []).slice(1).map(String).join('.')} ${first?.reason ?? ''}`.trim())
  }
  const { command, env, cwd, url, headers } = setting
  const texts = [...(command ?? []), ...Object.values(env), cwd ?? '', url ?? '', ...Object.values(headers)]
  const variables = [...new Set(texts.flatMap(neededVariables))]
  return { ok: true, name, entry, setting, variables, ignored: Object.keys(from).filter((key) => !TAKEN.has(key)) }
}

function refused(reason: string): ServerImport {
  return { ok: false, status: 'refused', reason }
}

/** `a2a-node connect` writes this node into such files: it would start itself. */
function isThisNode({ command, args }: Readonly<Record<string, unknown>>): boolean {
  const words = [command, args].flat(2).map(String)
  const at = words.indexOf('mcp')
  return (
    at > 0 &&
    words[at + 1] === 'serve' &&
    words.slice(0, at).some((word) => /(?:^|[/\\])a2a-node(?:\.js|\.cmd|\.exe)?$/i.test(word))
  )
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

/** A text that means something else in `mcp.servers` than for the client; null when there is none. */
function otherMeaning(from: Readonly<Record<string, unknown>>): string | null {
  const taken = Object.entries(from).filter(([key]) => TAKEN.has(key))
  for (const [key, value] of taken) {
    if (textsIn(value).some((text) => text.includes('$${')))
      return `${key} has $\${, which is a literal \${ in mcp.servers: write it in another form`
    if (!['env', 'headers', 'http_headers'].includes(key)) continue
    const named = textsIn(value).find((text) => /^env:[A-Za-z_][A-Za-z0-9_]*$/.test(text))
    if (named !== undefined)
      return `${key} has the text ${named}, which is a variable in mcp.servers: write it in another form`
  }
  return null
}

/** A reference of which the file does not show its meaning, or that only VS Code resolves; null when there is none. */
function openMeaning(from: Readonly<Record<string, unknown>>, { hasPlainReferences }: ImportOrigin): string | null {
  for (const [key, value] of Object.entries(from).filter(([name]) => TAKEN.has(name)))
    for (const text of textsIn(value)) {
      const editor = PREDEFINED.exec(text)?.[1]
      if (editor !== undefined) return `${key} has \${${editor}}, which only VS Code resolves: write its value`
      if (hasPlainReferences === null && PLAIN.test(text))
        return `${key} has a $NAME, which only Gemini CLI replaces: write \${NAME}, or add the server by hand`
    }
  return null
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) || isRecord(value) ? Object.values(value).flatMap(textsIn) : []
}

function entryOf(from: Readonly<Record<string, unknown>>, { dir, workspace }: ImportOrigin): Record<string, unknown> {
  const { command, args } = from
  const url = from['httpUrl'] ?? from['url'] ?? from['serverUrl']
  const [base, project] = [literalText(workspace ?? dir), workspace === null ? undefined : literalText(workspace)]
  const cwd =
    typeof from['cwd'] === 'string' && !from['cwd'].startsWith('${') ? path.resolve(base, from['cwd']) : from['cwd']
  const isProgram = command !== undefined
  const entry = {
    type: from['type'] ?? from['transport'],
    command,
    args: Array.isArray(args) && args.length === 0 ? undefined : args,
    env: filled({ ...record(from['env']), ...forwarded(from['env_vars']) }),
    cwd: cwd ?? (isProgram ? project : undefined),
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
  const named = Object.entries(record(from['env_http_headers'])).map(([header, name]) => [
    header,
    `\${${String(name)}}`
  ])
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
  if (typeof seconds === 'number') return Math.ceil(seconds * 1000)
  return typeof from['timeout'] === 'number' && from['timeout'] >= 1000 ? from['timeout'] : undefined
}

function mapTexts(
  values: Readonly<Record<string, unknown>>,
  change: (text: string) => string
): Record<string, unknown> {
  const mapped = (value: unknown): unknown => {
    if (typeof value === 'string') return change(value)
    if (Array.isArray(value)) return value.map(mapped)
    return isRecord(value) ? mapTexts(value, change) : value
  }
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, mapped(value)]))
}

/** `$NAME` as `${NAME}`. */
function withBraces(text: string): string {
  return text.replaceAll(/\$([A-Za-z_]\w*)/g, '$${$1}')
}

function rewritten(text: string, { workspace }: ImportOrigin): string {
  return rewriteReferences(text, (inner) => {
    if (inner.startsWith('input:')) return `\${${variableOf(inner.slice('input:'.length))}}`
    if (workspace === null) return null
    if (inner === 'workspaceFolder') return literalText(workspace)
    return inner === 'workspaceFolderBasename' ? literalText(path.basename(workspace)) : null
  })
}

/** Variables that shells and logins set: an answer to a question is none of them. */
const OF_SHELLS = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'PWD',
  'OLDPWD',
  'LANG',
  'TERM',
  'TMPDIR',
  'HOSTNAME',
  'EDITOR',
  'MAIL'
])

/** The variable for a question of VS Code: `api-key` is API_KEY, and `path` is INPUT_PATH. */
function variableOf(id: string): string {
  const name = id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
  return /^[A-Z]/.test(name) && !OF_SHELLS.has(name) ? name : `INPUT_${name}`
}
