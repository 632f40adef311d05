import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { withServers } from '../../../config/add-servers.js'
import { MAX_CONFIG_BYTES, parseConfigText } from '../../../config/file.js'
import { loadConfig } from '../../../config/load.js'
import { importedServer, type ServerImport } from '../../../config/mcp-import.js'
import { mcpServersSchema, type McpServerSetting, secretPlaces } from '../../../config/mcp-servers.js'
import { userHome } from '../../../config/paths.js'
import type { Config } from '../../../config/settings.js'
import { NodeError } from '../../../kit/errors.js'
import { shellWord, shown } from '../../../kit/text.js'
import { type ClientFile, readClientFile, writeClientFile } from '../../clients/client-file.js'
import { serversIn } from '../../clients/server-list.js'
import type { ImportStatus } from '../../../ports/imports.js'
import type { Action } from '../../context.js'
import { EXIT_CODES } from '../../exit-codes.js'
import { importExit, statusText } from '../../import-report.js'
import { isSet } from '../../options.js'
import type { Output } from '../../terminal/output.js'

/** The result for one server of the file. */
interface ServerReport {
  /** Its name in the file. */
  readonly from: string
  /** Its name in the config; null when it is not taken. */
  readonly name: string | null
  readonly status: ImportStatus
  readonly reason: string | null
  readonly variables: readonly { readonly name: string; readonly isSet: boolean }[]
  readonly ignored: readonly string[]
  /** Places of values that go into the config as they are, and may be secrets. */
  readonly secrets: readonly string[]
}

/** `mcp import <file>`: adds the servers of a client's file to the config. An entry that is there is never changed. */
export const importServers: Action = async ({ output, paths, env }, [source = ''], options) => {
  const file = path.resolve(source)
  const { configFile } = paths()
  // Before it is loaded: another program that adds servers meanwhile is a conflict, and its servers stay.
  const before = await readClientFile(configFile)
  const { config } = await loadConfig({ file: configFile, env })
  const found = serversIn(await readClientFile(file))
  const isDryRun = isSet(options, 'dryRun')
  const added: Record<string, Readonly<Record<string, unknown>>> = {}
  const origin = { dir: path.dirname(file), hasPlainReferences: hasPlainReferences(file) }
  const servers = found.map(({ name: from, entry, project }) => {
    const one = importedServer(from, entry, { ...origin, workspace: project ?? workspaceOf(file, userHome(env)) })
    const report = reportOf(from, one, { config, added, env })
    if (one.ok && report.status === 'imported') added[one.name] = one.entry
    return report
  })
  const hasSecrets = servers.some(({ status, secrets }) => status === 'imported' && secrets.length > 0)
  const again = `a2a-node mcp import ${shellWord(file)}`
  const backup =
    Object.keys(added).length === 0 ? null : await write(before, added, { isDryRun, isPrivate: hasSecrets, again })
  const isWritten = !isDryRun && Object.keys(added).length > 0
  const next = (isWritten ? ['a2a-node config check', 'a2a-node start'] : []).map((one) => output.hint(one))
  if (output.json)
    output.object('mcp-import@1', { isDryRun, file, config: configFile, backup, hasSecrets, servers, next })
  else print(output, servers, { isDryRun, backup, configFile, next, isWritten, hasSecrets })
  return importExit(
    servers.map(({ status }) => status),
    EXIT_CODES.CONFIG_INVALID
  )
}

/**
 * The project of a file that clients keep in one: `.mcp.json`, `.cursor/mcp.json`, `.vscode/mcp.json`,
 * `.codex/config.toml`.
 */
function workspaceOf(file: string, home: string): string | null {
  const dir = path.dirname(file)
  if (path.basename(file) === '.mcp.json') return dir
  const isOfClient = ['.cursor', '.vscode', '.codex', '.gemini'].includes(path.basename(dir))
  return isOfClient && path.dirname(dir) !== home ? path.dirname(dir) : null
}

/** Is the file of Gemini CLI, whose references have two forms? null when its place does not show a client. */
function hasPlainReferences(file: string): boolean | null {
  const [dir, name] = [path.basename(path.dirname(file)), path.basename(file)]
  if (dir === '.gemini') return true
  const isOfOther = ['.cursor', '.vscode', '.codex', '.claude'].includes(dir)
  return isOfOther || ['.mcp.json', '.claude.json', 'claude_desktop_config.json'].includes(name) ? false : null
}

interface ImportState {
  readonly config: Config
  readonly added: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
}

function reportOf(from: string, one: ServerImport, { config, added, env }: ImportState): ServerReport {
  if (!one.ok)
    return { from, name: null, status: one.status, reason: one.reason, variables: [], ignored: [], secrets: [] }
  const { name, setting, ignored } = one
  const variables = one.variables.map((variable) => ({ name: variable, isSet: env[variable] !== undefined }))
  const report = (status: ServerReport['status'], reason: string | null): ServerReport => ({
    from,
    name,
    status,
    reason,
    variables,
    ignored,
    secrets: secretPlaces(setting)
  })
  const old = ownValue(config.mcp.servers, name)
  if (old !== undefined) {
    const isSame = isDeepStrictEqual(setting, old)
    return isSame
      ? report('unchanged', null)
      : report('skipped', `mcp.servers.${name} of the config is another server, and stays`)
  }
  if (Object.hasOwn(config.a2a.agents, name))
    return report('refused', `${name} is an agent of a2a.agents of the config`)
  const all = mcpServersSchema.safeParse(
    Object.fromEntries([...Object.keys({ ...config.mcp.servers, ...added }), name].map(bare))
  )
  if (Object.hasOwn(added, name)) return report('refused', `${name} is the name of another server of the file too`)
  return all.success
    ? report('imported', null)
    : report('refused', all.error.issues[0]?.message ?? 'has a name that is not allowed')
}

/** A name may be that of a member of every object, such as `constructor`. */
function ownValue(servers: Readonly<Record<string, McpServerSetting>>, name: string): McpServerSetting | undefined {
  return Object.hasOwn(servers, name) ? servers[name] : undefined
}

/** An entry for a check of names and their number. */
function bare(name: string): readonly [string, unknown] {
  return [name, { command: 'x' }]
}

/** Writes the config with further servers, after a check of the whole. Returns the path of the copy of the old one. */
async function write(
  before: ClientFile,
  added: Readonly<Record<string, unknown>>,
  { isDryRun, ...how }: { readonly isDryRun: boolean; readonly isPrivate: boolean; readonly again: string }
): Promise<string | null> {
  const { file: configFile } = before
  const text = await withServers(before.text ?? '', added)
  const { faults } = await parseConfigText(text, configFile)
  if (faults.length > 0 || Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    throw new NodeError(
      'CONFIG_INVALID',
      `${configFile} would not be a config that this node reads; nothing was written`,
      {
        next: ['a2a-node config check']
      }
    )
  if (isDryRun) return null
  await mkdir(path.dirname(configFile), { recursive: true, mode: 0o700 })
  return await writeClientFile(before, text, { now: Date.now(), ...how })
}

interface Printed {
  readonly isDryRun: boolean
  readonly isWritten: boolean
  readonly backup: string | null
  readonly configFile: string
  readonly next: readonly string[]
  readonly hasSecrets: boolean
}

function print(output: Output, servers: readonly ServerReport[], { isDryRun, ...rest }: Printed): void {
  const { isWritten, backup, configFile, next, hasSecrets } = rest
  for (const { from, name, status, reason, variables, ignored, secrets } of servers) {
    const renamed = name === null || name === from ? '' : ` as ${name}`
    output.print(
      `${statusText(output, status, isDryRun)}  ${shown(from)}${renamed}${reason === null ? '' : `: ${shown(reason, 1000)}`}`
    )
    const unset = variables.filter((one) => !one.isSet).map((one) => one.name)
    if (unset.length > 0) output.print(`  set in the environment of the node: ${shown(unset.join(', '), 1000)}`)
    if (status === 'imported' && secrets.length > 0)
      output.print(`  values as they are in the file: ${shown(secrets.join(', '), 1000)}`)
    if (ignored.length > 0) output.print(`  not used: ${shown(ignored.join(', '), 1000)}`)
  }
  if (servers.length === 0) output.print('no MCP servers there')
  if (isWritten)
    output.print(
      `written: ${shown(configFile, 4096)}${hasSecrets ? ' (mode 600: only you may read these values)' : ''}`
    )
  if (backup !== null) output.print(`before:  ${shown(backup, 4096)}`)
  for (const one of next) output.print(`  ${shown(one, 5000)}`)
}
